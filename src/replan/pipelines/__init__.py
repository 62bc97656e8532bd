"""Pipelines: phases of a conversation, whose messages hold their own conversations."""

from replan.base.public_names import names_of

__getattr__, __dir__ = names_of(__name__, __file__)
