"""The only place that uses private, beta or undocumented parts of LangGraph and LangChain.

No other code touches these parts, and each has a contract test: what a new version of
either changes shows there, in terms of what Replan needs it for.
"""
