"""Reading JSON as models write it: strictly if it is JSON, else as far as it makes sense."""

import json
import re
from collections.abc import Callable, Mapping
from typing import cast

_STRICT = json.JSONDecoder(strict=False)
_SKIP = re.compile(r"(?:[\s,;]+|//[^\n]*)*")
_CLOSERS = {'"': '"', "'": "'", "`": "`", "“": "”", "\u2018": "\u2019", "«": "»"}
_STOP = {quote: re.compile(rf"(?:\\.)+|{close}", re.DOTALL) for quote, close in _CLOSERS.items()}
_BARE = re.compile(r"[^,:}\]\n\[{]+")
_AFTER_STRING = re.compile(r"\s*(?:[,:}\]]|\Z)")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "\n": ""}
_MAX_DEPTH = 40
_MAX_TOKENS = 100_000

_WRAPPERS = (
    *("arguments", "parameters", "input", "args", "kwargs", "tool_input", "action_input"),
    *("function", "tool_calls", "function_call", "tool_call", "properties"),
    *("output", "reply", "response", "result", "data", "json"),
)
_MAX_WRAPPERS = 6


def decode(text: str, start: int) -> tuple[object, int]:
    """Read the JSON value at a place; what is broken or cut off is read as far as it goes.

    Returns:
        The value and where it ends.
    """
    try:
        return cast("tuple[object, int]", _STRICT.raw_decode(text, start))
    except (ValueError, RecursionError):
        scanner = _Scanner(text, start)
        return scanner.value(0), scanner.at


def unwrap(
    value: object, accepts: Callable[[Mapping[str, object]], bool], depth: int = 0
) -> Mapping[str, object] | None:
    """Find the object that is the reply inside what tool calls and schemas put around it."""
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
            return _dumped(value)


def _dumped(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except RecursionError:
        return ""


def _decoded(text: str) -> object:
    start = len(text) - len(text.lstrip())
    return decode(text, start)[0] if text.startswith(("{", "["), start) else None


class _Scanner:
    """A reader of broken JSON that always moves forward and never fails."""

    def __init__(self, text: str, start: int) -> None:
        self._text = text
        self.at = start
        self._tokens = 0

    def value(self, depth: int) -> object:
        """Read whatever stands here."""
        self._skip()
        sign = self._text[self.at : self.at + 1]
        if sign in ("{", "[") and sign and depth < _MAX_DEPTH:
            self.at += 1
            return self._object(depth) if sign == "{" else self._list(depth)
        if sign in _CLOSERS:
            return self._string(sign)
        return self._bare()

    def _object(self, depth: int) -> dict[str, object]:
        fields: dict[str, object] = {}
        while self._goes_on("}"):
            if self._text[self.at] == "]":
                break
            key = as_text(self.value(_MAX_DEPTH))
            self._skip()
            if self._text.startswith((":", "="), self.at):
                self.at += 1
                fields[key] = self.value(depth + 1)
        return fields

    def _list(self, depth: int) -> list[object]:
        items: list[object] = []
        while self._goes_on("]"):
            if self._text[self.at] == "}":
                break
            items.append(self.value(depth + 1))
        return items

    def _goes_on(self, close: str) -> bool:
        """Whether another item follows; takes the closing sign."""
        self._skip()
        self._tokens += 1
        if self.at >= len(self._text) or self._tokens > _MAX_TOKENS:
            self.at = len(self._text)
            return False
        if self._text[self.at] == close:
            self.at += 1
            return False
        return True

    def _skip(self) -> None:
        found = _SKIP.match(self._text, self.at)
        self.at = found.end() if found else self.at

    def _string(self, quote: str) -> str:
        start = self.at + 1
        at = start
        stop = _STOP[quote]
        while found := stop.search(self._text, at):
            self._tokens += 1
            if found[0].startswith("\\"):
                at = found.end()
            elif _AFTER_STRING.match(self._text, found.end()) or self._tokens > _MAX_TOKENS:
                self.at = found.end()
                return _unescaped(self._text[start : found.start()])
            else:  # a quotation mark inside the string that was not escaped
                at = found.end()
        self.at = len(self._text)
        return _unescaped(self._text[start:])

    def _bare(self) -> object:
        """Read a word or number without marks; on a sign that means nothing, step over it."""
        found = _BARE.match(self._text, self.at)
        if found is None:
            self.at += 1
            return None
        self.at = found.end()
        word = found[0].strip()
        return None if word in ("null", "None", "undefined") else word


def _unescaped(text: str) -> str:
    def one(found: re.Match[str]) -> str:
        if found[1]:
            return chr(int(found[1], 16))
        return _ESCAPES.get(found[2], found[2])

    plain = _ESCAPE.sub(one, text)
    # Two halves of one character are written as two escapes.
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
