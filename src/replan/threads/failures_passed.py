"""Failures that do not belong to a phase: those that end or pause the whole work."""

from langgraph.errors import GraphBubbleUp

from replan.errors import LimitReachedError, StaleThreadError, StorageError

PASSED = (GraphBubbleUp, LimitReachedError, StaleThreadError, StorageError)
"""A question, a limit, and a thread that cannot be stored; a thread records none of them."""
