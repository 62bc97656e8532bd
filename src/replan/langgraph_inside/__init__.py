"""The one door to what is private, beta or undocumented in LangGraph and LangChain.

No other code touches these parts, and each has a contract test: what a new version of
either changes shows there, in terms of what Replan needs it for.
"""
