"""Find keys that are in a file, and show values without them."""

from collections.abc import Iterator
from typing import Any, cast

from replan.declared.fields import Where
from replan.secrets.known import MASK
from replan.secrets.masking import without_secrets
from replan.secrets.shapes import holds_key


def key_fix(field: str, variable: str) -> str:
    """Return what to do with a key in a file, where a field names the variable that holds it."""
    put = f"Put the key in an environment variable and name that one: {field}: {variable}."
    return f"{put} A key that was shared in a file should be replaced."


FIX = key_fix("api_key_env", "OPENAI_API_KEY")
_LONGEST = 60


def keys_in(value: Any, where: Where = ()) -> Iterator[Where]:
    if isinstance(value, dict):
        for name, inner in cast("dict[str, Any]", value).items():
            yield from keys_in(inner, (*where, name))
    elif isinstance(value, list):
        for index, inner in enumerate(cast("list[Any]", value)):
            yield from keys_in(inner, (*where, index))
    elif isinstance(value, str) and holds_key(value):
        yield where


def shown(value: object) -> str:
    """Write a single value for people: short, and without secrets; empty for None."""
    if value is None or isinstance(value, dict | list):
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    text = str(value)
    if holds_key(text):
        return MASK
    text = without_secrets(text)
    text = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
    return repr(text) if isinstance(value, str) else text
