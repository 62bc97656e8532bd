"""What knows nothing of plans: texts, secrets, values, private parts of LangGraph, event loops."""
