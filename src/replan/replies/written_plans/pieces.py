"""Pieces of a line of text: its brackets, what is between separators, its ends without signs."""

import re
import unicodedata
from collections.abc import Iterator
from difflib import get_close_matches
from functools import lru_cache

from replan.plan.markdown import words
from replan.plan.markdown.lines import without_comments

PAIRS = {"(": ")", "（": "）", "[": "]", "【": "】", "{": "}", "<": ">", "［": "］"}
_EDGE = " \t,;|，；、:：–—→⇒&\\"
_GRAMMAR = (
    *("depends_on", "after", "needs", "optional", "priority", "retries", "timeout", "writes"),
)
_WORD = re.compile(r"[^\W\d_]{4,}")
_NEARLY = 0.75


def uncommented(text: str) -> str:
    """Drop HTML comments; one that is never closed hides nothing of what follows."""
    return without_comments(text).replace("<!--", "")


def groups(text: str) -> Iterator[tuple[int, int]]:
    """Find the outermost brackets; one that is never closed reaches to the end of its line."""
    start, close = -1, ""
    depth = 0
    for at, sign in enumerate(text):
        if start < 0 and sign in PAIRS and not text.startswith("<-", at):
            start, close, depth = at, PAIRS[sign], 1
        elif start >= 0 and sign == text[start]:
            depth += 1
        elif start >= 0 and sign == close:
            depth -= 1
            if depth == 0:
                yield start, at
                start = -1


def pieces(content: str) -> list[str]:
    found = re.split(
        r"[,;|，；、،·/]|\s[-–—]\s|\s(?=(?:and|und|et)\s+(?:after|nach|après)\b)", content
    )
    return [piece.strip() for piece in found if piece and piece.strip()]


def is_misspelt(text: str) -> bool:
    """Whether a word in it is nearly one of the grammar, as in `(aftr 1)`."""
    return any(_is_nearly_known(found[0].casefold()) for found in _WORD.finditer(text))


# A line is read several times, and a comparison costs more than all else in it.
@lru_cache(maxsize=4_096)
def _is_nearly_known(word: str) -> bool:
    return bool(get_close_matches(word, _near_in_length(len(word)), n=1, cutoff=_NEARLY))


@lru_cache(maxsize=64)
def _near_in_length(length: int) -> tuple[str, ...]:
    """The words of the grammar that are not too long or too short to be nearly another."""
    known = {word for name in _GRAMMAR for word in words.listed(name)}
    return tuple(
        word for word in known if 2 * min(len(word), length) >= _NEARLY * (len(word) + length)
    )


def trimmed(text: str) -> str:
    """Return a text without blanks, separators, emoji and unpaired stress at its ends."""
    text = text.strip(_EDGE)
    while text and _is_sign(text[-1]):
        text = text[:-1].rstrip(_EDGE)
    while text and _is_sign(text[0]):
        text = text[1:].lstrip(_EDGE)
    for mark in ("**", "__"):
        if text.count(mark) % 2:
            text = text.removeprefix(mark) if text.startswith(mark) else text.removesuffix(mark)
        inner = text.removeprefix(mark).removesuffix(mark)
        if f"{mark}{inner}{mark}" == text and mark not in inner:
            text = inner
    if text.startswith(("- ", "-> ", "=> ")):
        text = text.partition(" ")[2]
    return text.removesuffix(" -").removesuffix(" ->").removesuffix(" by").strip(_EDGE)


def _is_sign(character: str) -> bool:
    return unicodedata.category(character) in ("So", "Cf") or character == "\ufe0f"
