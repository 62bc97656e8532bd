"""The stateless agent: a context in, a result with updates out, no state between calls."""

from replan.base.public_names import names_of

__getattr__, __dir__ = names_of(__name__, __file__)
