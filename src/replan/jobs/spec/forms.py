"""The form of a slot with a pattern, if values of it are recognised in a text by their form."""

import re
from collections.abc import Iterable
from functools import cache

# A pattern that takes any of the words, or all of the numbers, says nothing about a text.
_WORDS = (
    "a",
    "Anna",
    "tomorrow",
    "Stockholm",
    "hello there",
    "\u597d\u7684",
    "\u5317\u4eac\u5e02\u671d\u9633\u533a",
)
_NUMBERS = ("3", "42", "365")


@cache
def form_of(pattern: str | None) -> re.Pattern[str] | None:
    """What finds values of a pattern in a text, as words of their own; None if it tells nothing."""
    if pattern is None:
        return None
    bare = _without_anchors(pattern)
    takes = re.compile(bare).fullmatch
    if any(map(takes, _WORDS)) or all(map(takes, _NUMBERS)):
        return None
    return re.compile(rf"(?<![A-Za-z0-9_])(?:{bare})(?![A-Za-z0-9_])")


def _without_anchors(pattern: str) -> str:
    while pattern.startswith(("^", r"\A")):
        pattern = pattern.removeprefix("^").removeprefix(r"\A")
    while pattern.endswith((r"\Z", "$")) and not pattern.endswith(r"\$"):
        pattern = pattern.removesuffix("$").removesuffix(r"\Z")
    return pattern


def without_forms(patterns: Iterable[str | None], text: str, mask: str) -> str:
    """A text with a mask in place of everything that has the form of a pattern."""
    for form in map(form_of, patterns):
        text = text if form is None else form.sub(mask, text)
    return text
