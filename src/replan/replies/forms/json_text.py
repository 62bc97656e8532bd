"""Read JSON as models write it: strictly if it is valid, else repaired as far as possible."""

import json
from collections.abc import Callable, Mapping
from typing import NamedTuple, cast

_STRICT = json.JSONDecoder(strict=False)
_DEEPEST = 60
_LONGEST = 200_000
"""Longer or deeper texts are not repaired, because the work grows fast with the length."""

_WRAPPERS = (
    *("arguments", "parameters", "input", "args", "kwargs", "tool_input", "action_input"),
    *("function", "tool_calls", "function_call", "tool_call", "properties"),
    *("output", "reply", "response", "result", "data", "json", "content", "answer", "message"),
)
_MAX_WRAPPERS = 6


class Decoded(NamedTuple):
    value: object  # the value; none if there was nothing that could be read
    end: int  # where it ends in the text
    is_cut: bool = False  # whether the text ended within it


def decode(text: str, start: int) -> Decoded:
    """Read the JSON value at a place; a broken or cut one is read as far as possible."""
    try:
        value, end = cast("tuple[object, int]", _STRICT.raw_decode(text, start))
        return Decoded(value, end)
    except (ValueError, RecursionError):
        end, deepest, is_open = _extent(text, start)
    if deepest > _DEEPEST or end - start > _LONGEST:
        return Decoded(None, start)
    from replan.replies.forms.repaired_json import repaired  # noqa: PLC0415 - few are broken

    try:
        value = repaired(text[start:end])
    except (ValueError, RecursionError):
        return Decoded(None, start)
    return Decoded(value, end, is_open)


def _extent(text: str, start: int) -> tuple[int, int, bool]:
    """Find where a broken value ends, how deep it goes, and whether it is still open there."""
    depth = deepest = 0
    quoted = escaped = False
    for at in range(start, min(len(text), start + _LONGEST + 1)):
        sign = text[at]
        if quoted:
            quoted = sign != '"' or escaped
            escaped = sign == "\\" and not escaped
        elif sign == '"':
            quoted = True
        elif sign in "{[":
            depth += 1
            deepest = max(deepest, depth)
            if depth > _DEEPEST:
                break
        elif sign in "}]":
            depth -= 1
            if depth <= 0:
                return at + 1, deepest, False
    # A quotation mark that was not escaped hides the brackets behind it.
    is_open = not quoted or text.rstrip()[-1:] not in ("}", "]")
    return len(text), deepest, is_open


def decode_lines(text: str) -> list[object]:
    found: list[object] = []
    for line in text.split("\n"):
        row = line.strip().rstrip(",")
        if not row:
            continue
        try:
            found.append(json.loads(row))
        except (ValueError, RecursionError):
            return []
    return found


def unwrap(
    value: object, accepts: Callable[[Mapping[str, object]], bool], depth: int = 0
) -> Mapping[str, object] | None:
    """Find the object that is the reply, inside the wrapping of tool calls and schemas."""
    if depth > _MAX_WRAPPERS:
        return None
    if isinstance(value, str):
        value = _decoded(value)
    if isinstance(value, list):
        items = cast("list[object]", value)
        return unwrap(items[0], accepts, depth + 1) if items else None
    if not isinstance(value, dict):
        return None
    fields = cast("dict[str, object]", value)
    if accepts(fields):
        return fields
    inner = [fields[name] for name in _WRAPPERS if name in fields]
    if not inner and len(fields) == 1:
        inner = list(fields.values())
    return next((found for item in inner if (found := unwrap(item, accepts, depth + 1))), None)


def as_text(value: object) -> str:
    """Write a value as text: a list as bullets, an object as JSON."""
    match value:
        case str():
            return value
        case None:
            return ""
        case list():
            items = cast("list[object]", value)
            return "\n".join(f"- {as_text(item)}" for item in items)
        case _:
            return dumped(value)


def dumped(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except RecursionError:
        return ""


def _decoded(text: str) -> object:
    start = len(text) - len(text.lstrip())
    return decode(text, start).value if text.startswith(("{", "["), start) else None
