"""The words by which people and models say what a plan's attributes mean, in several languages."""

import re
import tomllib
from collections.abc import Iterable
from importlib.resources import files
from typing import cast

_LISTS = cast(
    "dict[str, list[str]]",
    tomllib.loads((files("replan.plan.markdown") / "words.toml").read_text(encoding="utf-8")),
)
FIELDS = cast("dict[str, list[str]]", _LISTS.pop("fields"))
"""What the parts of a step are called where each has a key, a column or a tag of its own."""

UNITS = {
    word: unit
    for unit, names in cast("dict[str, list[str]]", _LISTS.pop("units")).items()
    for word in names
}
"""The units of a time by their names: `ms`, `s`, `m` or `h`."""


def listed(name: str) -> tuple[str, ...]:
    return tuple(_LISTS[name])


def _any_of(*names: str) -> str:
    """Return a pattern for any word of the lists, the longest first; blanks are any white space."""
    return any_of(word for name in names for word in _LISTS[name])


def any_of(words: Iterable[str]) -> str:
    ordered = sorted(set(words), key=lambda word: (-len(word), word))
    return "(?:" + "|".join(re.escape(word).replace(r"\ ", r"\s++") for word in ordered) + ")"


STEP = _any_of("step")
AND = _any_of("and")
BETWEEN_NAMES = _any_of("between_names")
THROUGH = _any_of("through")
BY = _any_of("by")
DEPENDS_ON = _any_of("depends_on")
NEEDS = _any_of("needs")
AFTER = _any_of("after")
ASSIGNED_TO = _any_of("assigned_to")
IF = _any_of("if")
CONDITION = _any_of("condition")
FAILED = _any_of("failed")
COMPLETED = _any_of("completed")
OPTIONAL = _any_of("optional")
REQUIRED = _any_of("required")
PRIORITY = _any_of("priority")
RETRIES = _any_of("retries")
TIMEOUT = _any_of("timeout")
WRITES = _any_of("writes")
YES = _any_of("yes")
NO = _any_of("no")
NONE = _any_of("none")
VAGUE = _any_of("vague")
UNIT = any_of(UNITS)

NAME = r"(?:\w|&#[0-9]{1,7};)(?:[.-]*+(?:\w|&#[0-9]{1,7};))*+"
"""A specialist's name as it can follow an `@`."""
