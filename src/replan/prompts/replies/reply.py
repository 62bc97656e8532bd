"""Read a reply: its keys, and the body below them.

The keys are a front matter between two lines `---`, or leading lines `key: value`, or a JSON object
that has the body under a key, too. One code fence may be around all of it, and thoughts before it.
Nothing else is read: what is in doubt is a `problem`, and the model is asked.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import NamedTuple, cast

from replan.base.values import fields_in
from replan.prompts.replies.keys import BODIES, Key, squeezed
from replan.prompts.replies.wrapping import (
    BLANK,
    behind_thoughts,
    fence_around,
    first_fence,
    trimmed,
    unwrapped,
)

DELIMITER = re.compile(r"^[ \t]*(?:-{3,}|\.{3})[ \t]*$", re.MULTILINE)
"""A line that opens or closes a front matter."""

MOST_LINES = 200
"""The most lines of a front matter."""

_KEY_LINE = re.compile(
    r"[ \t]*+(?:[-*+>][ \t]++)?([*_`\"']{0,3})([^\W\d_][\w -]{0,30})([*_`\"']{0,3})"
    r"[ \t]*[:\uff1a][ \t]*(.*)"
)
_DOUBTFUL = re.compile(r"[ \t]|(?:[a-z][a-z_]{0,30}|[\"'`*]{1,3}\w[\w -]{0,30}[\"'`*]{1,3})[ \t]*:")
"""A line right below the keys that may be one of them, or belong to the one above."""

_PAIRS = ("**", "__", "*", "_", "`", '"', "'")
_MARKS = frozenset(mark[0] for mark in _PAIRS)
_SCALAR = re.compile(r"[|>][+-]?")
_LINE = re.compile(r".*(?:\n|\Z)")
_LONGEST_SHOWN = 60

Keys = Mapping[str, Key]


@dataclass(frozen=True, kw_only=True)
class Reply:
    """A reply in its parts."""

    body: str  # the text below the keys; all of the text if there are none
    whole: str = ""  # the reply without what is around it: thoughts, tokens that end it
    # The values that fit, by the key's own name.
    fields: Mapping[str, str] = field(default_factory=dict[str, str])
    # What is told of a reply that is read all the same: keys that nobody knows, values that fit no
    # key; each with what was written.
    odd: Mapping[str, str] = field(default_factory=dict[str, str])
    has_end: bool = True  # whether a front matter that is opened is closed
    problem: str = ""  # why it cannot be said what the reply means, or empty

    @property
    def unread(self) -> str:
        """What of a front matter is not as it should be; empty if there is nothing."""
        shown = (f"`{name}: {value[:_LONGEST_SHOWN]}`" for name, value in self.odd.items())
        lines, end = ", ".join(shown), "The front matter of a reply has no second line `---`."
        text = f"The front matter of a reply has lines that are not read: {lines}." * bool(lines)
        return text if self.has_end else f"{text} {end}".strip()


class _Line(NamedTuple):
    name: str  # as it is written, without marks around it
    value: str
    is_block: bool = False  # whether the indented lines below it are its value


def read_reply(text: str, keys: Keys) -> Reply:
    """Read a reply with these keys; any text is a reply, and the time is linear in its length."""
    whole = source = unwrapped(text)
    reply = _read_parts(source, keys)
    if reply is None and (behind := behind_thoughts(source)) != source:
        source = behind
        reply = _read_parts(source, keys)
    body = source if reply is None else unwrapped(reply.body)
    # A body that is one block of Markdown, as models show a document, is without its fence.
    block = fence_around(body)
    body = trimmed(block.inner) if block and block.language in ("md", "markdown") else body
    if reply is None:
        return Reply(body=body, whole=whole)
    has_second = DELIMITER.match(body) and _read_head(body, keys)
    problem = reply.problem or ("There are two front matters." if has_second else "")
    return replace(reply, body=body, problem=problem, whole=whole)


def _read_parts(text: str, keys: Keys) -> Reply | None:
    if fence := fence_around(text):
        return _read_plain(trimmed(fence.inner), keys)
    if reply := _read_plain(text, keys):
        return reply
    # The keys may be alone in a fence, above the body.
    found = first_fence(text)
    head = _read_plain(trimmed(found[0]), keys) if found else None
    return replace(head, body=found[1]) if found and head and not head.body else None


def _read_plain(text: str, keys: Keys) -> Reply | None:
    return _read_object(text, keys) if text.startswith("{") else _read_head(text, keys)


def _read_head(text: str, keys: Keys) -> Reply | None:
    """Read a front matter at the start of a text; None if there is none with a known key."""
    opened = DELIMITER.match(text)
    start = opened.end() + 1 if opened else 0
    closed = DELIMITER.search(text, start) if opened else None
    if closed is not None:
        between = text[start : closed.start()].rstrip("\n").split("\n", MOST_LINES)
        lines, _, problem = _scan(between, keys, is_closed=True)
        is_head = any(squeezed(line.name) in keys for line in lines)
        return _reply(lines, text[closed.end() :], keys, problem) if is_head else None
    written = (found[0] for found in islice(_LINE.finditer(text, start), MOST_LINES))
    lines, length, problem = _scan(written, keys, is_closed=False)
    if not any(_decides(line, keys) for line in lines):
        return None
    body = trimmed(text[start + length :])
    below = None if opened else DELIMITER.match(body)
    reply = _reply(lines, body[below.end() :] if below else body, keys, problem)
    return replace(reply, has_end=opened is None)


def _scan(
    written: Iterable[str], keys: Keys, *, is_closed: bool
) -> tuple[Sequence[_Line], int, str]:
    """Read lines `key: value`: all of a front matter that is closed, else up to the first other.

    Return them, the length of what was read, and why the lines may not be what they look like.
    """
    lines: list[_Line] = []
    at, end, problem, is_below_blank = 0, 0, "", False
    for text in written:
        at += len(text)
        if not text.strip(BLANK):
            is_below_blank = is_closed or bool(lines)
            continue
        line = key_line(text)
        is_known = line is not None and squeezed(line.name) in keys
        is_indented = text[:1] in (" ", "\t") and (is_closed or not is_below_blank)
        # What closes the keys may stand far below them: other keys than ours are told, not taken.
        is_key = not is_below_blank or is_known if is_closed else not is_below_blank and is_known
        if line and is_key:
            lines.append(line)
        elif lines and lines[-1].is_block and is_indented:
            value = f"{lines[-1].value}\n{text.strip()}".strip()
            lines[-1] = lines[-1]._replace(value=value)
        else:
            shown = text.strip(BLANK)[:_LONGEST_SHOWN]
            if is_closed:
                problem = problem or f"`{shown}` in the front matter is no line `key: value`."
                continue
            # It may be one more of the keys, or the first line of the body.
            if is_known or (not is_below_blank and _DOUBTFUL.match(text)):
                problem = f"`{shown}` may be a key or text."
            break
        end, is_below_blank = at, False
    return lines, end, problem


def _decides(line: _Line, keys: Keys) -> bool:
    """Whether a line is certainly one of a front matter, and no sentence: it has a label."""
    key = keys.get(squeezed(line.name))
    return key is not None and key.kind == "label" and bool(line.value)


def _reply(lines: Sequence[_Line], body: str, keys: Keys, problem: str) -> Reply:
    """Sort the lines of a front matter into what fits and what does not."""
    fields: dict[str, str] = {}
    odd: dict[str, str] = {}
    problems = [problem]
    for name, written, _ in lines:
        key = keys.get(squeezed(name))
        value = key.value_of(written) if key else None
        if key is None or value is None:
            odd[key.name if key else name] = written
        elif key.name not in fields:
            fields[key.name] = value
        elif key.kind == "text":
            fields[key.name] += f"\n{value}"
        elif fields[key.name] != value:
            problems.append(f"`{key.name}` stands twice, with two values.")
        problems.append(_wrong_in_line(name, written, is_known=key is not None))
    problem = next(filter(None, problems), "")
    return Reply(body=body, fields=fields, odd=odd, problem=problem)


def _wrong_in_line(name: str, written: str, *, is_known: bool) -> str:
    """Why a line of a front matter may hold the body, or a part of it."""
    if "---" in written:
        return f"`---` stands within the line of `{name}`."
    if squeezed(name) in BODIES and not is_known:
        return f"`{name}` is a line of the front matter, not the text below it."
    return ""


def key_line(line: str) -> _Line | None:
    """Read a line `key: value`, also with marks of Markdown around either, or as a bullet."""
    found = _KEY_LINE.fullmatch(line.rstrip(BLANK))
    if found is None:
        return None
    opened, name, closed, value = found.groups()
    if opened and not closed:
        # What was opened before the key is closed behind the colon, or behind the value.
        value = (
            value.removeprefix(opened) if value.startswith(opened) else value.removesuffix(opened)
        )
    elif opened:
        value = value.removesuffix(",")
    is_block = not value.strip() or bool(_SCALAR.fullmatch(value.strip()))
    return _Line(name.strip(), "" if is_block else _unquoted(value.strip()), is_block)


def _unquoted(value: str) -> str:
    if value[:1] not in _MARKS:
        return value
    for mark in _PAIRS:
        inner = value[len(mark) : -len(mark)]
        if inner and value.startswith(mark) and value.endswith(mark) and mark not in inner:
            return inner.strip()
    return value


def _read_object(text: str, keys: Keys) -> Reply | None:
    """Read a JSON object with known keys; the body is under a key of its own."""
    try:
        value, end = cast("tuple[object, int]", _JSON.raw_decode(text))
    except (ValueError, RecursionError) as error:
        if not any(f'"{key.name}"' in text[:_REACH] for key in keys.values()):
            return None
        return Reply(body=text, problem=f"The JSON of the reply cannot be read: {error}.")
    fields = fields_in(value)
    if not any(squeezed(name) in keys for name in fields):
        return None
    bodies = {name for name in fields if squeezed(name) in BODIES - keys.keys()}
    lines = [_Line(name, _as_text(value)) for name, value in fields.items() if name not in bodies]
    found = [(name, value) for name, value in fields.items() if name in bodies and value]
    name, body = found[0] if found else ("", "")
    problem = ""
    if text[end:].strip(BLANK):
        problem = "There is text behind the JSON object."
    elif len(found) > 1:
        problem = f"Only one of {', '.join(f'`{name}`' for name, _ in found)} can be the body."
    elif not isinstance(body, str):
        problem = f"`{name}` is no text."
    return _reply(lines, "" if problem else str(body), keys, problem)


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    if len(fields := dict(pairs)) < len(pairs):
        raise ValueError("a key of an object stands twice")
    return fields


_JSON = json.JSONDecoder(strict=False, object_pairs_hook=_unique)
_REACH = 400


def _as_text(value: object) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)
