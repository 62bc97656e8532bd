"""Find keys that stand in a team file, and show values without them."""

import re
from collections.abc import Iterator
from typing import Any, cast

from replan.ports.failures import mask_secrets
from replan.settings.yaml_source import Where

MEND = (
    "Put the key in an environment variable and name that one: api_key_env: OPENAI_API_KEY. "
    "A key that was shared in a file should be replaced."
)
MASK = "***"
_NAME = re.compile(
    r"(?:^|_)(?:api_?keys?|keys?|tokens?|secrets?|passw(?:or)?d|credentials?)$", re.IGNORECASE
)
# A digit tells a key from words that are joined by dashes. Bounds keep the search linear.
_KEY = re.compile(
    r"(?<![A-Za-z0-9])(?:sk|pk|rk|gsk|xai|hf|r8|ghp|gho|ghs|github_pat|glpat|xox[a-z]|lsv2)[-_]"
    r"(?=[\w-]{0,200}\d)[\w-]{16,}"
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{12,}"
    r"|\bAIza[\w-]{30,}"
    r"|\beyJ[\w-]{8,1000}\.[\w-]{8,}"
    r"|(?i:\bbearer\s+)(?=[\w.~+/=-]{0,200}\d)[\w.~+/=-]{16,}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----"
)
_CREDENTIALS = re.compile(r"://[^\s/@:]+:[^\s/@]+@")
_LONGEST = 60


def names_secret(name: str) -> bool:
    """Whether a field of this name is meant to hold a key, a token or a password."""
    return _NAME.search(name) is not None


def holds_key(text: str) -> bool:
    """Whether a text has something in it that looks like a key."""
    return _KEY.search(text) is not None or _CREDENTIALS.search(text) is not None


def keys_in(value: Any, where: Where = ()) -> Iterator[Where]:
    """Where in a value something looks like a key."""
    if isinstance(value, dict):
        for name, inner in cast("dict[str, Any]", value).items():
            yield from keys_in(inner, (*where, name))
    elif isinstance(value, list):
        for index, inner in enumerate(cast("list[Any]", value)):
            yield from keys_in(inner, (*where, index))
    elif isinstance(value, str) and holds_key(value):
        yield where


def shown(value: object) -> str:
    """Write a single value for people: short, and without secrets; nothing for none."""
    if value is None or isinstance(value, dict | list):
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    text = str(value)
    if holds_key(text):
        return MASK
    text = mask_secrets(text)
    text = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
    return repr(text) if isinstance(value, str) else text
