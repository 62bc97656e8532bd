"""Pipelines: phases of a conversation, whose messages hold their own conversations."""
