"""Jobs: a slot-filling engine that corrects itself."""

from replan.base.public_names import names_of

__getattr__, __dir__ = names_of(__name__, __file__)
