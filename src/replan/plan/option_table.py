"""The options of a step: one table from which they are read, written, checked and described.

A new option is a field of `PlanStep` and a row of `OPTIONS`. Keywords are English, with their
Chinese equivalents; the first word of an option is the one that is written.
"""

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Literal, TypeVar

from replan.plan.encoding import NAME, decode, encode_resource
from replan.plan.model import Condition, PlanStep

T = TypeVar("T")

# These are for texts in which one blank stands for all.
_AND = re.compile(r" ?(?:[,，;；、&+]|和|与|及|(?<= )and(?= )) ?", re.IGNORECASE)
_TO = r"(?:-|–|~|to|到|至)"
_STEP = r"(?:steps?|步骤|第)? ?#?(\d{1,18}) ?步?"
_RANGE = re.compile(rf"{_STEP}(?: ?{_TO} ?{_STEP})?", re.IGNORECASE)
_CONDITION = re.compile(
    rf"(?:if |如果)? ?{_STEP} ?(?:(failed|fails|失败)|completed|completes|succeeded|succeeds"
    r"|完成|成功)",
    re.IGNORECASE,
)
_AMOUNT = re.compile(r"(\d{1,18}(?:\.\d{1,18})?(?:e[+-]?\d{1,3})?) ?(\S*)", re.IGNORECASE)
_SECONDS = {
    **dict.fromkeys(("ms", "millisecond", "milliseconds", "毫秒"), 0.001),
    **dict.fromkeys(("", "s", "sec", "second", "seconds", "秒"), 1),
    **dict.fromkeys(("m", "min", "minute", "minutes", "分钟"), 60),
    **dict.fromkeys(("h", "hour", "hours", "小时"), 3600),
}
_FLAGS = {
    **dict.fromkeys(("", "yes", "true", "是"), True),
    **dict.fromkeys(("no", "false", "否"), False),
}
_NONE = ("none", "无", "-")
_BETWEEN = ("and", "和", "与", "&", "+")
_LONGEST_RANGE = 1_000
_RESOURCE = r"(?:(?:&#[0-9]{1,7};|[^\s,，;；、()（）@`\"'])++|`[^`]+`|\"[^\"]+\")"
_NEXT_RESOURCE = rf"(?:\s*+[,，;；、]\s*+|\s++(?:and|和|与|[&+])\s++){_RESOURCE}"
_RESOURCES = re.compile(rf"{_RESOURCE}(?:{_NEXT_RESOURCE})*+")
_ONE_RESOURCE = re.compile(rf"(?:^|(?<=[\s,，;；、])){_RESOURCE}")
_TIMES = re.compile(r" ?(?:times?|x|次)\Z", re.IGNORECASE)
_WHOLE = re.compile(r"[+-]?\d{1,18}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of value of an option."""

    read: Callable[[str], Any]  # returns none if a text is no such value
    write: Callable[[Any], str] = str
    normal: Callable[[Any], Any] | None = None  # gives the form that a document can hold
    is_list: bool = False  # whether a comma can be followed by more of it


def _tidied(text: str) -> str:
    return " ".join(text.split())


def _steps(text: str) -> tuple[int, ...] | None:
    text = _tidied(text)
    inner = text[1:-1] if text[:1] + text[-1:] in ("[]", "()") else text
    ranges = [_RANGE.fullmatch(piece) for piece in _AND.split(inner.strip())]
    numbers: dict[int, None] = {}
    for match in ranges:
        if match is None:
            return () if text.casefold() in _NONE else None
        first, last = int(match[1]), int(match[2] or match[1])
        if last - first > _LONGEST_RANGE:
            return None
        numbers |= dict.fromkeys(range(first, last + 1) if last > first else (first, last))
    return tuple(numbers)


def _condition(text: str) -> Condition | None:
    match = _CONDITION.fullmatch(_tidied(text))
    if match is None or not int(match[1]):
        return None
    return Condition(step=int(match[1]), outcome="failed" if match[2] else "completed")


def _whole_number(text: str) -> int | None:
    return int(text) if _WHOLE.fullmatch(text) else None


def _count(text: str) -> int | None:
    text = _TIMES.sub("", text)
    number = _whole_number(text)
    return None if number is None or number < 0 or text.startswith("-") else number


def _duration(text: str) -> float | None:
    match = _AMOUNT.fullmatch(_tidied(text))
    unit = _SECONDS.get(match[2].lower()) if match else None
    if match is None or unit is None:
        return None
    seconds = float(match[1]) / 1000 if unit == _SECONDS["ms"] else float(match[1]) * unit
    return seconds if 0 < seconds < math.inf else None


def _resources(text: str) -> tuple[str, ...] | None:
    if text.casefold() in _NONE:
        return ()
    if _RESOURCES.fullmatch(text) is None:
        return None
    names = (name for name in _ONE_RESOURCE.findall(text) if name not in _BETWEEN)
    return _unique(name[1:-1] if name[0] in '`"' else decode(name) for name in names)


def _specialists(text: str) -> tuple[str, ...] | None:
    names = [name.strip("`*_ ").removeprefix("@") for name in _AND.split(_tidied(text))]
    if text.casefold() in _NONE:
        return ()
    return _unique(map(decode, names)) if all(map(_NAME.fullmatch, names)) else None


def _unique(values: Iterable[T]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(values))


def _word(text: str) -> str | None:
    names = _resources(text)
    return names[0] if names and len(names) == 1 else None


def _named(names: tuple[str, ...]) -> tuple[str, ...]:
    return _unique(filter(None, names))


def _write_resources(names: tuple[str, ...]) -> str:
    return ", ".join(encode_resource(name, guarded=_is_reserved(name)) for name in names)


def _is_reserved(name: str) -> bool:
    is_word = name.casefold() in (*_NONE, *_BETWEEN) or _WORD.match(name) is not None
    return is_word or name.startswith((":", "="))


STEPS = Kind(read=_steps, write=lambda ids: ", ".join(map(str, ids)), normal=_unique, is_list=True)
CONDITION = Kind(read=_condition, write=lambda it: f"{it.step} {it.outcome}")
FLAG = Kind(read=lambda text: _FLAGS.get(text.casefold()), write=lambda _: "")
WHOLE = Kind(read=_whole_number)
COUNT = Kind(read=_count)
DURATION = Kind(
    read=_duration,
    write=lambda seconds: f"{repr(seconds).removesuffix('.0')}s",
    normal=lambda seconds: None if seconds == math.inf else seconds,
)
RESOURCES = Kind(
    read=_resources,
    write=_write_resources,
    normal=_named,
    is_list=True,
)
SPECIALISTS = Kind(read=_specialists, is_list=True)
WORD = Kind(read=_word, write=lambda name: _write_resources((name,)))

Effect = Literal["task", "order", "attempt", "nothing"]
"""What an option changes: what is done, when or by whom, how it is tried, or none of these.

The result of a step is valid for its task, and a failure for its task tried in the same way. Task
and order are what the fingerprint of a settled step is of.
"""


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a step.

    Attributes:
        field: The field of a step that it sets.
        words: Its words, divided by `|`; the first one is the one that is written.
        kind: The kind of its value.
        example: How it is written.
        changes: What it changes.
        removed_by: Who may take it away again; what only the team may remove stays in a revision
            of a model, and a client is refused.
        meaning: What the prompts of models say about it; those without one they do not name.
    """

    field: str
    words: str
    kind: Kind
    example: str
    changes: Effect = "nothing"
    removed_by: Literal["anybody", "team"] = "anybody"
    meaning: str = ""

    @property
    def word(self) -> str:
        """The word that is written."""
        return self.words.partition("|")[0]


_WAITS = "after|depends on|dependencies|依赖于|依赖|前置步骤|前置"
_IF = "if|condition|如果|条件"
OPTIONS = (
    Option("dependencies", _WAITS, STEPS, "after 1, 2", "order", meaning="uses their results"),
    Option("condition", _IF, CONDITION, "if 2 failed", "order", meaning="else skipped"),
    Option("optional", "optional|可选", FLAG, "optional", meaning="its failure stops nothing"),
    Option("priority", "priority|优先级", WHOLE, "priority 2", "attempt"),
    Option("max_retries", "retries|retry|重试", COUNT, "retries 1", "attempt"),
    Option("timeout", "timeout|time limit|超时", DURATION, "timeout 30s", "attempt"),
    Option("idle_timeout", "idle timeout|空闲超时", DURATION, "idle timeout 20s", "attempt"),
    Option("writes", "writes|写入", RESOURCES, "writes report.md", "attempt"),
    Option("estimated_duration", "estimate|预计", DURATION, "estimate 5m"),
    Option("model", "model|模型", WORD, "model fast", "task"),
    Option(
        "ask_first", "ask first|ask me first|先询问|先问我", FLAG, "ask first", removed_by="team"
    ),
)
"""The options that are written in parentheses, in the order in which they are written."""

_WHO = "assigned to|assignee|specialist|负责人|执行者"
ASSIGNED = Option("specialists", _WHO, SPECIALISTS, "@name", "order")
"""Who does the step; it is written as `@name` in front of the parentheses."""

_BY_WORD = {word: option for option in (*OPTIONS, ASSIGNED) for word in option.words.split("|")}
_WORD = re.compile(
    "|".join(
        re.escape(word).replace(r"\ ", r"\s+") + (r"(?!\w)" if word.isascii() else "")
        for word in sorted(_BY_WORD, key=len, reverse=True)
    ),
    re.IGNORECASE,
)
WORDS = {option.field: option.word for option in OPTIONS}
"""The word of each option, by field."""

IN_LINE = ("description", "assigned_to", "joined_by", *WORDS)
"""The fields of a step that its line says."""

STRUCTURAL = (*IN_LINE, "brief", "parameters")
"""The fields of a step that a revision may change; the others record its outcome."""

_DEFAULTS = {option.field: PlanStep.model_fields[option.field].default for option in OPTIONS}
_ALL_DEFAULTS = tuple(_DEFAULTS.values())
_all_options = attrgetter(*_DEFAULTS)
_NAME = re.compile(NAME)
_SPLIT = re.compile(r"(?:&#[0-9]{1,7};|`[^`]*`|\"[^\"]*\"|[^;；,，、])+")
_LETTERS = re.compile(r"[a-z]+", re.IGNORECASE)
_LEAST_LETTERS = 5

PROMPTED = ", ".join(
    f"`{option.example}` ({option.meaning})" for option in OPTIONS if option.meaning
)
"""The options that the prompts of models name."""

KNOWN = "; ".join(option.example for option in (*OPTIONS, ASSIGNED))
"""All options, as they are written."""


def set_options(step: PlanStep, effect: Effect | None = None) -> dict[str, Any]:
    """The values of the options that a step has, by field; with an effect only those with it."""
    if _all_options(step) == _ALL_DEFAULTS:
        return {}
    return {
        option.field: value
        for option in OPTIONS
        if effect in (None, option.changes)
        if (value := getattr(step, option.field)) != _DEFAULTS[option.field]
    }


def removed_options(before: PlanStep, after: PlanStep) -> dict[str, Any]:
    """What a step had, and only the team may remove, by field; empty if it still has all."""
    had, kept = set_options(before), set_options(after)
    of_team = (
        option.field for option in OPTIONS if option.removed_by == "team" and option.field in had
    )
    return {field: had[field] for field in of_team if kept.get(field) != had[field]}


@dataclass(frozen=True, slots=True)
class Phrase:
    """A piece of a parenthesis, or a key line: an option with its value, or only text."""

    text: str
    option: Option | None = None
    value: Any = None  # none if it is not a value of the option

    @property
    def is_read(self) -> bool:
        return self.value is not None


def pieces_of(text: str) -> list[str]:
    """Cut a text at its commas and semicolons, but for those in quotes."""
    return [piece for each in _SPLIT.findall(text) if (piece := each.strip())]


def read_group(text: str) -> list[Phrase]:
    """Read the content of a parenthesis."""
    phrases: list[Phrase] = []
    for piece in pieces_of(text):
        phrase, before = _phrase(piece), phrases[-1] if phrases else Phrase("")
        if phrase.option is None and before.option and before.option.kind.is_list:
            more = before.option.kind.read(piece) if before.is_read else None
            if more is not None:
                phrases[-1] = Phrase(
                    f"{before.text}, {piece}", before.option, (*before.value, *more)
                )
                continue
        phrases.append(phrase)
    return phrases


def _phrase(text: str) -> Phrase:
    if text.startswith("@"):
        return Phrase(text, ASSIGNED, ASSIGNED.kind.read(text))
    match = _WORD.match(text)
    if match is None:
        return Phrase(text)
    option = _BY_WORD[" ".join(match[0].casefold().split())]
    return Phrase(text, option, option.kind.read(text[match.end() :].lstrip(" \t:：=")))


def read_key(key: str, value: str) -> Phrase | None:
    """Read a line such as `depends on: 1`; none if its key is no option's word.

    A key that is one slip from such a word is a mistake if the value is one of that option.
    """
    text = f"{key}: {value}"
    option = _BY_WORD.get(" ".join(key.casefold().split()))
    if option is not None:
        return Phrase(text, option, option.kind.read(value))
    near = slip_of(key)
    option = _BY_WORD.get(near)
    is_meant = option is not None and value and option.kind.read(value) is not None
    return Phrase(text) if is_meant else None


def slip_of(text: str) -> str:
    """The word of an option from which the first word of a text is one slip; else nothing.

    That is a letter that is missing, too many, or wrong, or in another place.
    """
    match = _LETTERS.match(text)
    word = match[0].casefold() if match else ""
    long = (word for word in _BY_WORD if len(word) >= _LEAST_LETTERS and word.isalpha())
    return next((each for each in long if each != word and _cut(each) & _cut(word)), "")


def _cut(word: str) -> set[str]:
    """A word, and what is left of it without one of its letters."""
    return {word, *(word[:at] + word[at + 1 :] for at in range(len(word)))}


def write_options(step: PlanStep) -> str:
    """Write the options of a step in their order, without the parentheses."""
    values = set_options(step)
    return "; ".join(
        f"{option.word} {option.kind.write(values[option.field])}".rstrip()
        for option in OPTIONS
        if option.field in values
    )
