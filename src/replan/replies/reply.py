"""Read a reply: its keys, and the body below them.

The keys are a front matter between two lines `---`, or leading lines `key: value`, or a JSON object
that has the body under a key, too. One code fence may be around all of it, and thoughts before it.
Nothing else is read: what is in doubt is a `problem`, and the model is asked.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, cast

from replan.replies.keys import BODIES, Key, squeezed
from replan.replies.wrapping import (
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
_SCALAR = re.compile(r"[|>][+-]?")
_LONGEST_SHOWN = 60

Keys = Mapping[str, Key]


@dataclass(frozen=True, kw_only=True)
class Reply:
    """A reply in its parts."""

    body: str  # the text below the keys; all of the text if there are none
    # The values that fit, by the key's own name.
    fields: Mapping[str, str] = field(default_factory=dict[str, str])
    # What is told of a reply that is read all the same: keys that nobody knows, values that fit no
    # key; each with what was written.
    odd: Mapping[str, str] = field(default_factory=dict[str, str])
    has_end: bool = True  # whether a front matter that is opened is closed
    problem: str = ""  # why it cannot be said what the reply means, or empty


class Line(NamedTuple):
    name: str  # as it is written, without marks around it
    value: str
    is_block: bool = False  # whether the indented lines below it are its value


class _Head(NamedTuple):
    """A front matter: its lines by the names that were written, and the text below it."""

    lines: Sequence[Line]
    body: str
    problem: str = ""
    has_end: bool = True


def read_reply(text: str, keys: Keys) -> Reply:
    """Read a reply with these keys; any text is a reply, and the time is linear in its length."""
    source = unwrapped(text)
    found = _read_parts(source, keys)
    if found is None:
        source = behind_thoughts(source)
        found = _read_parts(source, keys)
    if found is None:
        return Reply(body=_without_fence(source))
    return _reply(found._replace(body=_without_fence(unwrapped(found.body))), keys)


def _without_fence(body: str) -> str:
    """Return a body that is one block of Markdown as models show a document, without its fence."""
    block = fence_around(body)
    return trimmed(block.inner) if block and block.language in ("md", "markdown") else body


def _read_parts(text: str, keys: Keys) -> _Head | None:
    fence = fence_around(text)
    if fence is None:
        return _read_plain(text, keys) or _fenced_head(text, keys)
    return _read_plain(trimmed(fence.inner), keys)


def _fenced_head(text: str, keys: Keys) -> _Head | None:
    """Read a front matter that is alone in a fence, above its body."""
    found = first_fence(text)
    head = _read_plain(trimmed(found[0]), keys) if found else None
    return head._replace(body=found[1]) if found and head and not head.body else None


def _read_plain(text: str, keys: Keys) -> _Head | None:
    return _object(text, keys) if text.startswith("{") else read_head(text, keys)


def _reply(head: _Head, keys: Keys) -> Reply:
    """Sort the lines of a front matter into what fits and what does not."""
    fields: dict[str, str] = {}
    odd: dict[str, str] = {}
    problems = [head.problem]
    for name, written, _ in head.lines:
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
    if _begins_with_keys(head.body, keys):
        problems.append("There are two front matters.")
    return Reply(
        fields=fields,
        body=head.body,
        odd=odd,
        has_end=head.has_end,
        problem=next(filter(None, problems), ""),
    )


def _wrong_in_line(name: str, written: str, *, is_known: bool) -> str:
    """Why a line of a front matter may hold the body, or a part of it."""
    if "---" in written:
        return f"`---` stands within the line of `{name}`."
    if squeezed(name) in BODIES and not is_known:
        return f"`{name}` is a line of the front matter, not the text below it."
    return ""


def _begins_with_keys(body: str, keys: Keys) -> bool:
    return DELIMITER.match(body) is not None and read_head(body, keys) is not None


def read_head(text: str, keys: Keys) -> _Head | None:
    """Read a front matter at the start of a text; None if there is none with a known key."""
    opened = DELIMITER.match(text)
    if opened is None:
        return _leading(text, keys)
    closed = DELIMITER.search(text, opened.end() + 1)
    if closed is None:
        found = _leading(text[opened.end() + 1 :], keys)
        return found and found._replace(has_end=False)
    between = text[opened.end() + 1 : closed.start()].rstrip("\n").split("\n", MOST_LINES)
    lines: list[Line] = []
    stray, is_below_blank = "", False
    for line in between:
        found = key_line(line)
        if found and (squeezed(found.name) in keys or not is_below_blank):
            lines.append(found)
        elif lines and lines[-1].is_block and line[:1] in (" ", "\t"):
            lines[-1] = _continued(lines[-1], line)
        else:
            stray = stray or line.strip(BLANK)[:_LONGEST_SHOWN]
        is_below_blank = not line.strip(BLANK)
    if not any(squeezed(line.name) in keys for line in lines):
        return None
    problem = f"`{stray}` in the front matter is no line `key: value`." if stray else ""
    return _Head(lines, text[closed.end() :], problem)


def _leading(text: str, keys: Keys) -> _Head | None:
    """Read leading lines with known keys, up to the first other line."""
    lines: list[Line] = []
    end, problem = 0, ""
    for start, line in _lines_of(text):
        found = key_line(line)
        is_known = found is not None and squeezed(found.name) in keys
        if not line.strip(BLANK):
            continue
        if found and is_known and (start == end or not lines):
            lines.append(found)
        elif lines and lines[-1].is_block and start == end and line[:1] in (" ", "\t"):
            lines[-1] = _continued(lines[-1], line)
        else:
            # It may be one more of the keys, or the first line of the body.
            is_doubtful = is_known or (start == end and _DOUBTFUL.match(line))
            problem = f"`{line.strip()[:_LONGEST_SHOWN]}` may be a key or text." * bool(is_doubtful)
            break
        end = start + len(line) + 1
    if not any(_decides(line, keys) for line in lines):
        return None
    rest = trimmed(text[end:])
    closed = DELIMITER.match(rest)
    return _Head(lines, rest[closed.end() :] if closed else rest, problem)


def _decides(line: Line, keys: Keys) -> bool:
    """Whether a line is certainly one of a front matter, and no sentence: it has a label."""
    key = keys.get(squeezed(line.name))
    return key is not None and key.kind == "label" and bool(line.value)


def _lines_of(text: str) -> Iterator[tuple[int, str]]:
    """Yield the first lines of a text, each with its place."""
    at = 0
    for _ in range(MOST_LINES):
        end = text.find("\n", at)
        yield at, text[at : end if end >= 0 else len(text)]
        if end < 0:
            return
        at = end + 1


def key_line(line: str) -> Line | None:
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
    return Line(name.strip(), "" if is_block else _unquoted(value.strip()), is_block)


def _unquoted(value: str) -> str:
    for mark in _PAIRS:
        inner = value[len(mark) : -len(mark)]
        if inner and value.startswith(mark) and value.endswith(mark) and mark not in inner:
            return inner.strip()
    return value


def _continued(line: Line, more: str) -> Line:
    """Add an indented line to the value above it."""
    return line._replace(value=f"{line.value}\n{more.strip()}".strip())


def _object(text: str, keys: Keys) -> _Head | None:
    """Read a JSON object with known keys; the body is under a key of its own."""
    try:
        value, end = cast("tuple[object, int]", _JSON.raw_decode(text))
    except (ValueError, RecursionError) as error:
        if not any(f'"{key.name}"' in text[:_REACH] for key in keys.values()):
            return None
        return _Head((), text, f"The JSON of the reply cannot be read: {error}.")
    fields = cast("dict[str, object]", value) if isinstance(value, dict) else {}
    if not any(squeezed(name) in keys for name in fields):
        return None
    bodies = {
        name: value for name, value in fields.items() if squeezed(name) in BODIES - keys.keys()
    }
    lines = [Line(name, _as_text(value)) for name, value in fields.items() if name not in bodies]
    problem = _wrong_in_object(bodies, text[end:])
    body = "" if problem else next((str(each) for each in bodies.values() if each), "")
    return _Head(lines, body, problem)


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    if len(fields := dict(pairs)) < len(pairs):
        raise ValueError("a key of an object stands twice")
    return fields


_JSON = json.JSONDecoder(strict=False, object_pairs_hook=_unique)
_REACH = 400


def _wrong_in_object(bodies: Mapping[str, object], rest: str) -> str:
    if rest.strip(BLANK):
        return "There is text behind the JSON object."
    if len([value for value in bodies.values() if value]) > 1:
        return f"Only one of {', '.join(f'`{name}`' for name in bodies)} can be the body."
    other = next(
        (name for name, value in bodies.items() if value and not isinstance(value, str)), ""
    )
    return f"`{other}` is no text." if other else ""


def _as_text(value: object) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)
