"""Checkpoints of LangGraph in a database."""
