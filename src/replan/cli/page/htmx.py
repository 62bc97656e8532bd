"""The one script of the pages: htmx's core, read out of a package and compared with its digest."""

import base64
import hashlib
from functools import cache
from importlib.resources import files

from replan.base.errors import ConfigurationError

_SHA256 = "491955cd1810747d7d7b9ccb936400afb760e06d25d53e4572b64b6563b2784e"


@cache
def script() -> bytes:
    """The text of htmx 2.0.3.

    Raises:
        ConfigurationError: The package holds another script.
    """
    text = (files("js_lib_htmx") / "static" / "htmx" / "htmx.min.js").read_bytes()
    if hashlib.sha256(text).hexdigest() != _SHA256:
        problem = "its htmx.min.js is not the one that was reviewed"
        fix = "Install it again: pip install --force-reinstall 'django-js-lib-htmx==2.0.3.1'."
        raise ConfigurationError("ui", "django-js-lib-htmx", problem, fix)
    return text


@cache
def integrity() -> str:
    """What a browser compares the script with."""
    return f"sha384-{base64.b64encode(hashlib.sha384(script()).digest()).decode()}"
