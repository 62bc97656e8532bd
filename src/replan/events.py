"""What is reported of a run: its events."""

from replan.base.public_names import names_of

__getattr__, __dir__ = names_of(__name__, __file__)
