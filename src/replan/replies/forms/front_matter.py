"""The lines of a reply's front matter: which of them are keys, and where the body begins."""

import html
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from replan.replies.forms.wrapping import BLANK, opens_fence
from replan.replies.vocabulary.keys import (
    BODY_KEYS,
    LABEL_KEYS,
    find_key,
    fits,
    spelled_out,
    squeezed,
)

DELIMITER = re.compile(
    r"^[ \t\u200b-\u200f\ufeff]*"
    r"(?:-{3,}|\.{3,}|\*{3,}|_{3,}|\+{3}|={3,}|\u2014{1,3}|\u2013{2,3})[ \t]*$",
    re.MULTILINE,
)
"""A line that opens or closes a front matter: `---`, or what models write instead."""

_REACH = 80
MAX_LINES = 400
_SEPARATOR = re.compile(r"[:=\uff1a]")
_ARROW = re.compile(r"\s[-\u2013\u2014]\s|→|->")
_MARKS = "*_`\"'“”\u2018\u2019«»「」【】"
_BULLET = re.compile(r"(?:[-+•·*]\s+|#{1,6}\s+|\d{1,3}[.)]\s+|>\s*)+")
_UNKNOWN_KEY = re.compile(r"[\"'`*]{0,3}[a-z][a-z0-9_-]{0,30}[\"'`*]{0,3}\s?:(?:\s|\*|$)")
_CANNOT_BELONG = re.compile(r"\s?(?:#{1,6}\s|[-*+]\s+\[.\]\s)")
_BLOCK_SCALAR = re.compile(r"[|>][+-]?\d?\s*(?:#.*)?")
_PAIRS = (("**", "**"), ("__", "__"), ("*", "*"), ("`", "`"), ('"', '"'), ("'", "'"), ("“", "”"))


class KeyLine(NamedTuple):
    key: str  # the key's own name
    value: str  # what is after the colon, without marks
    # Whether the line is the key's own name at the start of a line, without a bullet.
    is_plain: bool


class Parts(NamedTuple):
    """A reply as fields and body, and whether it ends within its markup."""

    fields: dict[str, str]
    body: str
    is_cut: bool = False


class Header(NamedTuple):
    """The front matter between two delimiters."""

    fields: dict[str, str]  # the values by key
    body: str  # a body that stood under its own key
    end: int  # how many of the lines are front matter; those that follow belong to the body


def match_key(line: str, known: Collection[str]) -> KeyLine | None:
    """Read a line that begins with a known key."""
    stripped = line.strip(BLANK)
    if stripped.startswith("|"):
        return _table_row(stripped, known)
    separator = _SEPARATOR.search(stripped[:_REACH]) or _ARROW.search(stripped[:_REACH])
    if separator is None:
        return None
    bullet = _BULLET.match(stripped[:_REACH])
    written = stripped[bullet.end() if bullet else 0 : separator.start()]
    found = find_key(written.partition("(")[0], known)
    if found is None or "{" in written:
        return None
    key, is_own_name = found
    value = spelled_out(written, _unmarked(written, stripped[separator.end() :]))
    if separator[0] not in ":=\uff1a" and not fits(key, value):
        return None
    return KeyLine(key, value, is_plain=is_own_name and bullet is None)


def _table_row(row: str, known: Collection[str]) -> KeyLine | None:
    name, line, value = row[: _REACH * 10].strip("|").partition("|")
    found = find_key(name, known) if line and "|" not in value else None
    return KeyLine(found[0], _unmarked("", value), is_plain=False) if found else None


def _unmarked(written: str, value: str) -> str:
    """Return a value without the marks around it, also those that began before the key."""
    text = value.strip(BLANK).removesuffix(",").rstrip()
    opened = written[: len(written) - len(written.lstrip(_MARKS))]
    if opened and not written.rstrip(BLANK).endswith(tuple(_MARKS)):
        text = text.removeprefix(opened) if text.startswith(opened) else text.removesuffix(opened)
    text = text.strip(BLANK)
    for left, right in _PAIRS:
        inner = text[len(left) : -len(right)]
        if text.startswith(left) and text.endswith(right) and inner and left not in inner:
            text = inner
    return html.unescape(text).strip(BLANK)


def begins_bare(line: str, known: Collection[str]) -> KeyLine | None:
    """Read the first line of a front matter without delimiters; plain text may look similar."""
    found = match_key(line, known)
    return found if found and (found.is_plain or fits(found.key, found.value)) else None


class _Prose(NamedTuple):
    """Lines after a blank line that may belong to the value above or to the body."""

    line: int
    key: str | None
    parts: int


@dataclass
class _Reading:
    known: Collection[str]
    values: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    current: str | None = None
    """The key whose value continues; None if the value of an unknown key is skipped."""
    blank_at: int | None = None
    """The first blank line since the last known key."""
    prose: "_Prose | None" = None
    """The lines after that blank line that begin with no key."""


def read_header(
    lines: Sequence[str], known: Collection[str], *, text_follows: bool
) -> Header | None:
    """Read the lines between two delimiters; none of them may begin with a known key.

    A line without a key continues the value above it, an unknown key and its value are passed over.
    A task, a heading or a code block cannot belong to a front matter, so the closing delimiter is
    missing and the body begins there. The body also begins after a blank line, if what is above
    it is a label, which prose cannot continue, or if it would otherwise be empty.
    """
    reading = _Reading(known)
    end = len(lines)
    for place, line in enumerate(lines):
        if place >= MAX_LINES or not _add_line(reading, place, line):
            end = place
            break
    prose = reading.prose
    if prose and (not text_follows or prose.key is None or prose.key in LABEL_KEYS):
        end = prose.line
        if prose.key is not None:
            del reading.values[prose.key][prose.parts :]
    values = {key: "\n".join(parts).strip(BLANK) for key, parts in reading.values.items()}
    body = values.pop(_BODY, "")
    if not values:
        return None
    return Header({key: _scalar(value) for key, value in values.items()}, _scalar(body), end)


_BODY = "\0body"


def _add_line(reading: _Reading, place: int, line: str) -> bool:
    """Add one line to the front matter; return False if it cannot belong to it."""
    if not line.strip(BLANK):
        reading.blank_at = place if reading.blank_at is None else reading.blank_at
    elif found := _key_of(reading, line):
        _begin(reading, found.key, found.value)
        return True
    elif (reading.values and reading.current != _BODY) and (
        _CANNOT_BELONG.match(line) or opens_fence(line) is not None
    ):
        return False
    elif _UNKNOWN_KEY.match(line) and reading.current != _BODY:
        reading.current = None
    elif reading.values and reading.blank_at is not None and reading.prose is None:
        parts = reading.values.get(reading.current or "", [])
        reading.prose = _Prose(reading.blank_at, reading.current, len(parts))
    if reading.current is not None:
        reading.values[reading.current].append(line)
    return True


def _key_of(reading: _Reading, line: str) -> KeyLine | None:
    # Inside a body that is under its key, only a line at the margin can be a key again.
    if reading.current == _BODY and line[:1] in (" ", "\t"):
        return None
    found = match_key(line, reading.known)
    if found is None and reading.values and (value := body_value(line)) is not None:
        return KeyLine(_BODY, value, is_plain=True)
    return found


def _begin(reading: _Reading, key: str, value: str) -> None:
    reading.current = key
    reading.blank_at = reading.prose = None
    if key in LABEL_KEYS:  # said twice, the later one corrects the earlier one
        reading.values[key] = [value]
    else:
        reading.values.setdefault(key, []).append(value)


def body_value(line: str) -> str | None:
    """Read a line that begins with a key such as `answer`, whose value is the body."""
    separator = _SEPARATOR.search(line[:_REACH])
    if separator is None or squeezed(line[: separator.start()]) not in BODY_KEYS:
        return None
    return _unmarked(line[: separator.start()], line[separator.end() :])


def continues_indented(line: str, value: str) -> bool:
    """Whether this line is the indented value that the empty value or `|` above it announces."""
    return line[:1] in (" ", "\t") and (not value or bool(_BLOCK_SCALAR.fullmatch(value)))


def _scalar(value: str) -> str:
    """Return a value without YAML's sign for a text of several lines, and unindented."""
    first, newline, rest = value.partition("\n")
    if not newline:
        return "" if _BLOCK_SCALAR.fullmatch(value) else value
    text = unindented(rest)
    return text.strip(BLANK) if _BLOCK_SCALAR.fullmatch(first) else f"{first}\n{text}".strip(BLANK)


def unindented(text: str) -> str:
    """Return a text without the indentation that all its lines share."""
    lines = text.split("\n")
    margin = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return "\n".join(line[margin:] for line in lines)
