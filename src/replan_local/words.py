"""The words of a text, in any case and number, and names as a person lists them."""

import re
from collections.abc import Iterable

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_WORD = re.compile(r"\d+(?:\.\d+)?(?![^\W_])|[^\W_]+|[<>=!]+|,")


def words_of(text: str) -> list[str]:
    """The words of a text in their order, folded and in the singular; signs and commas count."""
    return [_singular(word.casefold()) for word in as_written(text)]


def as_written(text: str) -> list[str]:
    """The same words, spelt as they stand."""
    return _WORD.findall(_CAMEL.sub(" ", text))


def joined(names: Iterable[str]) -> str:
    """Names as a person lists them."""
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > len("xies"):
        return word[:-3] + "y"
    if word.endswith(("sses", "xes", "ches", "shes")) and len(word) > len("axes"):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")) and len(word) > len("abs"):
        return word[:-1]
    return word
