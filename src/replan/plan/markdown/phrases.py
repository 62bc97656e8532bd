"""Read attributes in the words that people and models use: "depends on steps 1 and 2"."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from replan.plan.markdown import words
from replan.plan.markdown.attributes import Attributes
from replan.plan.markdown.encoding import decode
from replan.plan.model import Condition

# More than 64 bits are a number that no store keeps.
_MOST_DIGITS = 18
_LONGEST_RANGE = 1000
_LONGEST_TRAILING = 200
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}

_COLON = r"\s*+[:：=]?\s*+"
_WAITS = rf"(?:{words.DEPENDS_ON}|{words.NEEDS}|{words.AFTER})"
_STEP_ID = rf"(?:{words.STEP}\s*+)?#?\d++(?:\s*+步)?"
_STEP_IDS = rf"{_STEP_ID}(?:\s*+(?:-|–|{words.THROUGH})\s*+{_STEP_ID})?"
_STEP_LIST = rf"[\[(（]?\s*+{_STEP_IDS}(?:(?:\s*+{words.AND})+\s*+{_STEP_IDS})*\s*+[\])）]?"
_AT_NAME = rf"[`*_]*+@{words.NAME}[`*]*+"
_AT_NAMES = rf"{_AT_NAME}(?:(?:\s*+{words.AND})*\s*+{_AT_NAME})*"
_ANY_NAME = rf"[`*_]*+@?{words.NAME}[`*]*+"
_NAME_LIST = rf"{_AT_NAMES}|{_ANY_NAME}(?:\s*+(?:and|&|\+|和)\s*+{_ANY_NAME})*"
_FORMAL_ASSIGNMENT = r"(?:assigned|assign|zugewiesen|asignado|assigné)\s++(?:to|an|a|à)\s++"
_YES_OR_NO = rf"(?:{_COLON}(?:{words.YES}|(?P<no>{words.NO})))?"
_AMOUNT = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?"

_RESOURCE = (
    r"(?:`[^`]+`|\"[^\"]+\"|(?:&\#[0-9]{1,7};|[^\s;；,，、()（）@`\"'])++(?=[\s;；,，、]|$))"
)
_BETWEEN_RESOURCES = (
    r"(?:(?:(?<!\s)\s++)?(?:[,，、+]|&(?!\#))\s*+|(?<!\s)\s++(?:and|und|et|y|和|与|及|と)\s++)"
)
_GROUP = re.compile(r"\(\?P<\w+>")

# A phrase must end where the next one can begin, so that "(after 1st draft)" is only text.
_END = rf"(?=\s*+(?:$|[;；,，、]|{words.AND}\s))"


@dataclass(frozen=True, slots=True)
class Phrase:
    """A piece of text between separators: attributes, a wrong value of one, or neither."""

    text: str
    attributes: Attributes | None = None
    kind: Literal["attribute", "bad_number", "unknown"] = "unknown"


Reader = Callable[[re.Match[str]], Attributes | None]


def read_phrases(text: str) -> Iterator[Phrase]:
    """Read the content of a parenthesis from left to right."""
    at = 0
    while at < len(text):
        separator = _SEPARATORS.match(text, at)
        at = separator.end() if separator else at
        if at < len(text):
            phrase = _phrase_at(text, at)
            yield phrase
            at += max(1, len(phrase.text))


def read_key_line(text: str) -> Phrase | None:
    """Read a line such as `- **Depends on:** 1, 2`; None if it is not such a line."""
    line = _KEY_LINE.fullmatch(text)
    if line is None:
        return None
    content = f"{line['key'].strip()}: {line['value'].strip().rstrip('.。')}"
    for pattern, reader in (*_KEY_ONLY, *_ATTRIBUTES):
        if match := pattern.fullmatch(content):
            return _phrase(text, reader(match))
    return Phrase(text, kind="bad_number") if _WRONG_VALUE.fullmatch(content) else None


def read_trailing(text: str) -> tuple[int, Attributes] | None:
    """Read an attribute that ends a title without parentheses: "…, depends on step 1"."""
    # Only the end is looked at, so that no title is long enough to make the search slow.
    start = max(0, len(text) - _LONGEST_TRAILING)
    for pattern, reader in _TRAILING:
        match = pattern.search(text[start:])
        attributes = reader(match) if match else None
        if match and attributes is not None:
            return start + match.start(), attributes
    return None


def read_names(text: str) -> tuple[str, ...]:
    """Read a list of specialists' names, with or without `@`."""
    names = _AT.findall(text)
    if not names:
        names = [match[0] for piece in _BETWEEN_NAMES.split(text) if (match := _NAME.search(piece))]
    return tuple(dict.fromkeys(decode(name) for name in names))


def _phrase_at(text: str, at: int) -> Phrase:
    for pattern, reader in _ATTRIBUTES:
        if match := pattern.match(text, at):
            return _phrase(match[0], reader(match))
    rest = _UP_TO_SEPARATOR.match(text, at)
    chunk = rest[0] if rest else text[at:]
    is_wrong = _WRONG_VALUE.fullmatch(chunk) or _NAMELESS.fullmatch(chunk)
    return Phrase(chunk, kind="bad_number" if is_wrong else "unknown")


def _phrase(text: str, attributes: Attributes | None) -> Phrase:
    return Phrase(text, attributes, "bad_number" if attributes is None else "attribute")


def _whole(text: str) -> int | None:
    return int(text) if len(text) <= _MOST_DIGITS else None


def _numbers(text: str) -> tuple[int, ...] | None:
    """Read "1, 2 and 4-6"; None if a number is too large."""
    numbers: list[int] = []
    for match in _ONE_OR_RANGE.finditer(text):
        first, last = _whole(match[1]), _whole(match[2] or match[1])
        if first is None or last is None or last - first > _LONGEST_RANGE:
            return None
        numbers.extend(range(first, last + 1) if last > first else dict.fromkeys((first, last)))
    return tuple(dict.fromkeys(numbers))


def _dependencies(match: re.Match[str]) -> Attributes | None:
    numbers = _numbers(match["steps"])
    return None if numbers is None else Attributes(dependencies=numbers)


def _condition(match: re.Match[str]) -> Attributes | None:
    number = _whole(match["step"])
    if not number:
        return None
    outcome = "failed" if match["failed"] else "completed"
    return Attributes(condition=Condition(step=number, outcome=outcome))


def _number(name: Literal["priority", "max_retries"]) -> Reader:
    def read(match: re.Match[str]) -> Attributes | None:
        number = _whole(match["number"])
        return None if number is None else replace(Attributes(), **{name: number})

    return read


def _none(name: Literal["specialists", "dependencies", "writes"]) -> Reader:
    """Read the word for none, which is something else than saying nothing."""
    return lambda _: replace(Attributes(), **{name: ()})


def _timeout(match: re.Match[str]) -> Attributes | None:
    unit = words.UNITS[(match["unit"] or "s").lower()]
    amount = float(match["number"])
    seconds = amount / 1000 if unit == "ms" else amount * _SECONDS[unit]
    return Attributes(timeout=seconds) if 0 < seconds < float("inf") else None


def _assignment(match: re.Match[str]) -> Attributes | None:
    return Attributes(specialists=read_names(match["names"]))


def _writing(match: re.Match[str]) -> Attributes | None:
    found: list[str] = _ONE_RESOURCE.findall(match["names"])
    names = (name[1:-1] if name[0] in '`"' else decode(name) for name in found)
    return Attributes(writes=tuple(dict.fromkeys(names)))


def _compiled(*pairs: tuple[str, Reader]) -> tuple[tuple[re.Pattern[str], Reader], ...]:
    return tuple((re.compile(pattern, re.IGNORECASE), reader) for pattern, reader in pairs)


_OTHERS: tuple[tuple[str, Reader], ...] = (
    (rf"(?P<names>{_AT_NAMES}){_END}", _assignment),
    (rf"{_WAITS}{_COLON}(?P<steps>{_STEP_LIST}){_END}", _dependencies),
    (rf"{_WAITS}\s*+[:：]\s*+{words.NONE}{_END}", _none("dependencies")),
    (
        (
            rf"(?:{words.CONDITION}{_COLON}(?:{words.IF}\s*+)?|{words.IF}{_COLON})"
            rf"(?:{words.STEP}\s*+)?#?(?P<step>\d+)(?:\s*+步)?\s*+"
            rf"(?:(?P<failed>{words.FAILED})|{words.COMPLETED}){_END}"
        ),
        _condition,
    ),
    (rf"{words.OPTIONAL}{_YES_OR_NO}{_END}", lambda it: Attributes(optional=it["no"] is None)),
    (rf"{words.REQUIRED}{_YES_OR_NO}{_END}", lambda it: Attributes(optional=it["no"] is not None)),
    (rf"{words.PRIORITY}{_COLON}(?P<number>[+-]?\d+){_END}", _number("priority")),
    (rf"{words.RETRIES}{_COLON}(?P<number>\d+){_END}", _number("max_retries")),
    (rf"{words.TIMEOUT}{_COLON}(?P<number>{_AMOUNT})\s*+(?P<unit>{words.UNIT})?{_END}", _timeout),
    (rf"{words.ASSIGNED_TO}\s*+[:：]\s*+{words.NONE}{_END}", _none("specialists")),
    (
        rf"(?:{words.ASSIGNED_TO}\s*+[:：]\s*+|{_FORMAL_ASSIGNMENT})(?P<names>{_NAME_LIST}){_END}",
        _assignment,
    ),
)

# What begins like another attribute is the next one, and not one more thing to write.
_NO_OTHER = "(?!" + "|".join(_GROUP.sub("(?:", pattern) for pattern, _ in _OTHERS) + ")"
_ATTRIBUTES = _compiled(
    *_OTHERS,
    (rf"{words.WRITES}\s*+[:：]\s*+{words.NONE}{_END}", _none("writes")),
    (
        (
            rf"{words.WRITES}(?:{_COLON}|\s++)(?P<names>{_RESOURCE}"
            rf"(?:{_BETWEEN_RESOURCES}{_NO_OTHER}{_RESOURCE})*){_END}"
        ),
        _writing,
    ),
)

# On its own line a bare list of names cannot be confused with other attributes.
_KEY_ONLY = _compiled(
    (
        rf"{words.ASSIGNED_TO}:\s*+(?P<names>{_ANY_NAME}(?:\s*+{words.AND}\s*+{_ANY_NAME})+)",
        _assignment,
    ),
)

_LEAD = r"(?:^|(?<=[^\w@&#]))(?:[,;，；]|[—–-]{1,2}(?=\s))?\s*+[*_]{0,2}"
_STRESS = r"[*_]{0,2}"
_TRAILING = _compiled(
    (
        rf"{_LEAD}{words.DEPENDS_ON}{_STRESS}{_COLON}{_STRESS}\s*+(?P<steps>{_STEP_LIST})\s*+$",
        _dependencies,
    ),
    (
        rf"{_LEAD}{words.AFTER}\s*+(?P<steps>(?=#\d|{words.STEP}\s*+#?\d){_STEP_LIST})\s*+$",
        _dependencies,
    ),
    (
        rf"{_LEAD}{words.ASSIGNED_TO}{_STRESS}\s*+[:：]{_STRESS}\s*+(?P<names>{_NAME_LIST})\s*+$",
        _assignment,
    ),
)

_SEPARATORS = re.compile(r"(?:[\s;；,，、]|(?:and|und|et|和)\s)*", re.IGNORECASE)
_UP_TO_SEPARATOR = re.compile(r"[^;；,，]*[^;；,，\s]")
# "after 2.1" is not a time but a step's number as others count, and must not be lost as text.
_WRONG_VALUE = re.compile(
    rf"{_WAITS}{_COLON}(?:{words.STEP}\s*+)?#?\d+(?:\.\d+)+.*"
    rf"|(?:{words.PRIORITY}|{words.RETRIES}|{words.TIMEOUT}){_COLON}"
    rf"(?:{words.VAGUE}|[+-]?\d\S*(?:\s++\w+)?)",
    re.IGNORECASE,
)
# On its own line this is text, as in "Dependencies: numpy".
_NAMELESS = re.compile(rf"{words.DEPENDS_ON}\s*+[:：]\s*+\S.*", re.IGNORECASE)
_KEY_LINE = re.compile(
    r"[ \t]*+(?:[-*+][ \t]++)?[*_]{0,2}(?P<key>[^:：*`>]{1,30})[*_]{0,2}[ \t]*+[:：]"
    r"[ \t]*+(?:[*_]{1,2}(?=\s))?(?P<value>[^\n]{0,200})",
)
_AT = re.compile(rf"@({words.NAME})")
_NAME = re.compile(words.NAME)
_BETWEEN_NAMES = re.compile(rf"[,，、&+]|\s{words.BETWEEN_NAMES}\s", re.IGNORECASE)
_ONE_RESOURCE = re.compile(rf"(?:{_BETWEEN_RESOURCES})?({_RESOURCE})", re.IGNORECASE)
_ONE_OR_RANGE = re.compile(rf"(\d+)(?:\s*+(?:步)?\s*+(?:-|–|{words.THROUGH})\s*+\D{{0,8}}?(\d+))?")
