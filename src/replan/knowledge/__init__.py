"""Knowledge for a request: searched, and shortened if the options say so."""

from replan.base.public_names import names_of

__getattr__, __dir__ = names_of(__name__, __file__)
