"""Pipelines: phases of a conversation, whose messages hold conversations of their own."""
