"""What a phrase says about order: the steps that it names, in any words and word order.

A phrase is cut into tokens by the word lists of plans. It is about order if it has a word for it
and nothing but steps, words for steps and fillers beside; so no grammar of any language is needed.
"""

import re
import unicodedata
from collections.abc import Collection, Iterator
from functools import lru_cache
from typing import NamedTuple

from replan.plan.markdown import words

CHINESE = "一二三四五六七八九十百"
PREVIOUS, ALL = "<", "*"
"""Instead of the name of a step: the one right above, and all above."""

LONGEST = 400
"""No phrase about order is longer, so other texts are skipped quickly."""

_KINDS = (
    *("depends_on", "needs", "after", "after_behind", "step", "previous", "all", "and", "none"),
    *("order_words", "order_fillers"),
)
_STRONG = frozenset(("depends_on", "needs", "after", "after_behind"))
_TEXT = r"""["'“”„«»\u2018\u2019`*_]"""
_DENSE = r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
_LONGEST_RANGE = 100
_TEN = 10
_PLURAL = ("s", "ten", "ов", "ат", "ات")
_ASCII_WORD = re.compile(r"[a-z]+")
_NAMED = re.compile(rf"(?:{words.STEP})[-_#]?(\d{{1,6}})")


class Order(NamedTuple):
    refs: tuple[str, ...]  # the labels of steps, and the signs for the one above and for all above
    is_said: bool  # whether a word says that it is about order; else there are only labels
    is_strong: bool  # whether that word means an order anywhere


class _Token(NamedTuple):
    kind: str
    text: str


@lru_cache(maxsize=1)
def _vocabulary() -> tuple[re.Pattern[str], dict[str, str]]:
    kinds: dict[str, str] = {}
    for kind in _KINDS:
        for word in words.listed(kind):
            kinds.setdefault(_folded(word), kind)
    ordered = sorted(kinds, key=lambda word: (-len(word), word))
    dense = [word for word in ordered if re.search(_DENSE, word)]
    spaced = [word for word in ordered if word.replace(" ", "").isalpha() and word not in dense]
    other = [word for word in ordered if word not in dense and word not in spaced]
    known = (
        f"(?:{_alternation(dense)})|(?<![^\\W\\d_])(?:{_alternation(spaced)})(?![^\\W_])"
        f"|(?:{_alternation(other)})(?=\\s|$|\\d|[,;:])|←|<-"
    )
    pattern = (
        rf"(?P<ref>\#?\d{{1,6}}(?:\.\d{{1,3}})*(?![^\W_])(?!\d)|\d{{1,6}}(?={_DENSE})"
        rf"|\#?[A-Za-z]{{1,6}}[-_]?\d{{1,4}}(?![^\W_]))"
        rf"|(?P<range>\.{{2,3}}|[-–—~〜](?=\s*[\#\w])|(?<!\w){words.THROUGH}(?!\w)|[至到])"
        rf"|(?P<known>{known})|(?P<numeral>[{CHINESE}]{{1,3}})"
        rf"|(?P<blank>[\s:：=,，、;()（）\[\]{{}}]+|{_TEXT}+)"
        r"|(?P<word>\w+|.)"
    )
    return re.compile(pattern, re.IGNORECASE | re.DOTALL), kinds


def _may_mean_order(text: str) -> bool:
    """Whether a text can have a word that means an order anywhere in it; most have none."""
    if not text.isascii() or "<-" in text:
        return True
    return not _first_words().isdisjoint(_ASCII_WORD.findall(text.casefold()))


@lru_cache(maxsize=1)
def _first_words() -> frozenset[str]:
    found = (_folded(word) for kind in _STRONG for word in words.listed(kind))
    return frozenset(first[0] for each in found if (first := _ASCII_WORD.match(each)))


def _alternation(found: list[str]) -> str:
    return "|".join(re.escape(word).replace(r"\ ", r"\s+") for word in found)


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


def label_of(text: str) -> str:
    """Return a label as it is compared: numbers of any script as digits, and without a `#`."""
    word = text.strip().lstrip("#").casefold()
    if word.isdecimal():
        return str(int(word))
    values = [unicodedata.numeric(sign, 0) for sign in word]
    if not (values and all(values)) or word.isascii():
        return word.replace(" ", "")
    number = 0
    for value in values:
        # A sign for ten is multiplied by the one before it.
        number = (number or 1) * int(value) if value >= _TEN else number + int(value)
    return str(number)


def read_order(text: str, labels: Collection[str]) -> Order | None:
    """Read a phrase that says nothing but which steps come first; None if it says more."""
    tokens = _only_order(text, labels)
    kinds = {token.kind for token in tokens}
    refs = _refs(tokens, labels)
    if not (refs or "none" in kinds):
        return None
    return Order(
        tuple(dict.fromkeys(refs)),
        is_said=bool(kinds & (_STRONG | {"order_words"})),
        is_strong=bool(kinds & _STRONG),
    )


def speaks_of_order(text: str) -> bool:
    """Whether a phrase is only about order, even if it names no step."""
    kinds = {token.kind for token in _only_order(text, ())}
    return bool(kinds & (_STRONG | {"order_words", "previous"}))


def _only_order(text: str, labels: Collection[str]) -> list[_Token]:
    """The tokens of a phrase that consists only of words of order; empty for any other."""
    found: list[_Token] = []
    for token in _tokens(text, labels) if len(text) <= LONGEST else ():
        if token.kind == "word":
            return []
        found.append(token)
    return found


def _refs(tokens: Collection[_Token], labels: Collection[str]) -> list[str]:
    """Return the steps that are named; of a range all of them."""
    refs: list[str] = []
    is_range = is_plural = False
    for token in tokens:
        is_plural |= token.kind == "step" and token.text.endswith(_PLURAL)
        if token.kind == "range":
            is_range = bool(refs)
        elif token.kind == "ref":
            refs += _range(refs[-1], token.text, labels) if is_range else [token.text]
            is_range = False
    kinds = {token.kind for token in tokens}
    if "all" in kinds or ("previous" in kinds and is_plural and not refs):
        refs.append(ALL)
    elif "previous" in kinds and not refs:
        refs.append(PREVIOUS)
    return refs


def _tokens(text: str, labels: Collection[str]) -> Iterator[_Token]:
    pattern, kinds = _vocabulary()
    for found in pattern.finditer(text):
        kind, word = found.lastgroup or "", found[0]
        if kind == "blank":
            continue
        label = label_of(word)
        if named := _NAMED.fullmatch(label):
            label = named[1]
        if kind in ("ref", "numeral") and (label.isdecimal() or label in labels):
            yield _Token("ref", label)
        elif kind in ("ref", "word") or (len(word) == 1 and label in labels and word.isalpha()):
            yield _Token("ref" if label in labels else "word", label)
        elif kind == "known":
            known = "after" if word in ("←", "<-") else kinds.get(_folded(word), "word")
            yield _Token(known, _folded(word))
        else:
            yield _Token(kind, word)


def _range(first: str, last: str, labels: Collection[str]) -> list[str]:
    """Return the rest of a range after its first number; of a very long one, its existing steps."""
    if not (first.isdecimal() and last.isdecimal()):
        return [last]
    after, end = int(first), int(last)
    if end - after <= _LONGEST_RANGE:
        return [str(number) for number in range(after + 1, end + 1)] or [last]
    numbers = sorted(int(label) for label in labels if label.isdecimal())
    return [*(str(number) for number in numbers if after < number < end), last]


def keyword_places(text: str) -> Iterator[int]:
    """Find the words that mean an order anywhere in a text."""
    if _may_mean_order(text):
        found = _vocabulary()[0].finditer(text)
        yield from (each.start() for each in found if _is_keyword(each))


def begins_with_keyword(text: str) -> bool:
    """Whether the first word of a text means an order anywhere."""
    first = _vocabulary()[0].match(text)
    return first is not None and _is_keyword(first)


def _is_keyword(found: re.Match[str]) -> bool:
    if found.lastgroup != "known":
        return False
    return found[0] in ("←", "<-") or _vocabulary()[1].get(_folded(found[0])) in _STRONG
