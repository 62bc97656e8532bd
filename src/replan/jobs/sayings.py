"""What the engine says and understands without a model, in English and in Chinese."""

import re
import tomllib
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from replan.prompts.templates import render

Language = Literal["en", "zh"]
"""A language that a job speaks."""

LANGUAGES: tuple[Language, ...] = ("en", "zh")

_CHINESE = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]")
_LETTER = re.compile(r"[A-Za-z]")
_AROUND = " \t\r\n.!,;\u3002\uff01\uff0c\uff1b\u3001~\uff5e'\"\u201c\u201d\u2018\u2019"


def say(key: str, language: Language, **values: object) -> str:
    """Return a sentence of the engine; values are put in, and never read as a template."""
    return render(_words()[language][key], **values)


def problem(code: str, language: Language, **values: object) -> str:
    """Describe what is wrong with a value."""
    return render(_words()[language]["problems"][code], **values)


def joined(names: Iterable[str], language: Language) -> str:
    return say("separator", language).join(names)


Meaning = Literal["yes", "no", "cancel", "nothing", "later", "thanks"]
"""What a whole message can say."""


def means(text: str, what: Meaning) -> bool:
    """Whether a whole message has a meaning, in any of the languages."""
    return bare(text) in _words_that_mean(what)


def is_later(text: str) -> bool:
    """Whether a text says that an answer comes later, or begins by saying so."""
    begins = (words["heard"]["later_begins"] for words in _words().values())
    return means(text, "later") or any(re.match(form, bare(text)) for form in begins)


def is_acknowledgement(text: str) -> bool:
    """Whether a message only says yes, no or thanks, or takes back what is over."""
    return any(means(text, what) for what in ("yes", "no", "cancel", "thanks"))


def count_words(text: str) -> int:
    """How many words a text has; two Chinese signs are about a word."""
    signs = len(_CHINESE.findall(text))
    return len(_CHINESE.sub(" ", text).split()) + (signs + 1) // 2


def says_yes(text: str) -> bool:
    """Whether a message has a yes in it, no no and nothing that limits it, and asks nothing."""
    is_limited = _has_word(text, "no") or _has_word(text, "however") or is_question(text)
    return _has_word(text, "yes") and not is_limited


def _has_word(text: str, what: str) -> bool:
    wanted = bare(text)
    words = (re.escape(word) for word in _words_that_mean(what))
    pattern = "|".join(rf"(?<!\w){word}(?!\w)" if word[0].isascii() else word for word in words)
    return re.search(pattern, wanted) is not None


def is_question(text: str) -> bool:
    """Whether a message asks something itself."""
    words = bare(text)
    return text.rstrip().endswith(("?", "\uff1f")) or any(
        re.search(each["heard"]["question"], words) for each in _words().values()
    )


def bare(text: str) -> str:
    """A message without case and without the marks around it."""
    return " ".join(text.strip(_AROUND).casefold().replace("\u2019", "'").split())


def language_of(text: str, spoken: Iterable[Language], before: Language) -> Language:
    """The language of a message among those that a job speaks; without a sign the one before."""
    known: list[Language] = [*spoken]
    found: Language | None = None
    signs, letters = len(_CHINESE.findall(text)), len(_LETTER.findall(text))
    # A sign is about as much as a short word.
    if signs and signs * _LETTERS_OF_SIGN >= letters:
        found = "zh"
    elif letters > _FEW:
        found = "en"
    if found in known:
        return found
    return before if before in known else known[0]


# So many letters may be a code or a name.
_FEW = 8
_LETTERS_OF_SIGN = 3


@cache
def _words() -> dict[str, Any]:
    return tomllib.loads(files("replan.jobs").joinpath("words.toml").read_text("utf-8"))


@cache
def _words_that_mean(what: str) -> frozenset[str]:
    return frozenset(word for words in _words().values() for word in words["heard"][what])
