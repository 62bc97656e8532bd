"""The errors that Replan raises on purpose."""

from replan.base.public_names import names_of

__getattr__, __dir__ = names_of(__name__, __file__)
