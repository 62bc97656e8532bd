"""Free text as an answer: the value without the words around it, or none if it may be more."""

import re
from dataclasses import dataclass

from replan.jobs.extraction.names import NAME, small_words
from replan.jobs.extraction.numbers import WORDS
from replan.jobs.sayings import count_words, is_later, means
from replan.jobs.spec.slot import Slot

_SAID = WORDS["answers"]
# Capital letters inside belong to a title.
_BEFORE = re.compile(_SAID["before"])
_BEFORE_CHINESE = re.compile(_SAID["signs_before"])
_AFTER = re.compile(_SAID["after"], re.IGNORECASE)
_SENTENCE = re.compile(_SAID["sentence"], re.IGNORECASE)
_QUOTES = "\"'“”"
_FEW = 4
_LONGEST_END = 40


@dataclass(frozen=True)
class Answer:
    """A free text that was asked for."""

    value: str
    is_bare: bool  # whether it is a short value, and nothing more


def is_no_answer(text: str) -> bool:
    """Whether a text says yes, no, later or nothing, so that it is no free text."""
    return is_later(text) or any(means(text, what) for what in ("yes", "no", "nothing"))


def answer_in(text: str, asked: Slot) -> Answer | None:
    """The value in an answer; None for a sentence, in which it may be anywhere."""
    value = text.strip()
    value = value[:-_LONGEST_END] + _AFTER.sub("", value[-_LONGEST_END:])
    inner = value.removeprefix(_matched(_BEFORE, value))
    first, _, behind = value.partition(" ")
    is_called = first.casefold() in small_words(asked)
    inner = behind if is_called else inner
    if inner != value and NAME.fullmatch(inner):
        return Answer(inner, is_bare=True)
    value = value.removeprefix(_matched(_BEFORE_CHINESE, value))
    if not value or is_called or _SENTENCE.search(value):
        return None
    is_bare = count_words(value) < _FEW and "," not in value and "，" not in value
    return Answer(value.strip(_QUOTES), is_bare)


def _matched(form: re.Pattern[str], text: str) -> str:
    found = form.match(text)
    return "" if found is None else found[0]
