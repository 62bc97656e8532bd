"""Reads values from outside, and reports all their mistakes together."""

import math
import reprlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from pydantic import ValidationError

from replan.base.declared.mistakes import code_reason_fix
from replan.base.errors import ContextError, Mistake, mistake
from replan.base.texts.storable import DEEPEST, LARGEST, first_unwritable
from replan.base.values import adapter

MOST_BYTES = 32_000_000
"""The size of a context at most, in bytes of its JSON, approximately."""

MOST_VALUES = 500_000
"""The values of a context at most: texts, numbers, lists and mappings at any depth."""

DEEPEST_CONTEXT = DEEPEST + 28
"""How deep lists and mappings may be in each other: a run that waits has values of steps in it,
which may be as deep as a storage keeps them."""

Path = tuple[str | int, ...]

_MOST_MISTAKES = 100  # that are named of one value
_SMALL = 2_000  # values, and kilobytes of text, that are read in no time

_LONGEST_NAME = 80
_NODE = 8  # bytes that a value counts for in addition to its text
DEFAULT_FIX = "Write what to_dict() gives."
"""Of a mistake without a better fix."""


class ValueReader:
    """Reads values, and collects their mistakes by the path of each field."""

    def __init__(
        self,
        most_bytes: int = MOST_BYTES,
        fix: str = DEFAULT_FIX,
        *,
        deepest: int = DEEPEST_CONTEXT,
        most_values: int = MOST_VALUES,
        most_entries: int = MOST_VALUES,
    ) -> None:
        self.mistakes: dict[Path, Mistake] = {}
        self._fix = fix
        self._values_left = self._most_values = most_values
        self._left = self._most = most_bytes
        self._deepest = deepest
        self._most_entries = most_entries
        self._is_full = False  # whether there was too much, which is said once

    def refuse(
        self, path: Path, value: object, reason: str, fix: str = "", code: str = "bad_value"
    ) -> None:
        """Keep a mistake; the first one of a field counts."""
        refusal = mistake(shown_path(path), value, reason, fix or self._fix, code)
        self.mistakes.setdefault(path, refusal)

    @property
    def is_nearly_full(self) -> bool:
        """Whether less than a tenth is left of what may be read."""
        return self._left * 10 < self._most or self._values_left * 10 < self._most_values

    def end(self) -> None:
        """Raise the mistakes that were found.

        Raises:
            ContextError: Something is wrong.
        """
        if self.mistakes:
            raise ContextError(list(self.mistakes.values()))

    def value(
        self,
        kind: Any,
        data: object,
        path: Path = (),
        read: Callable[[Any, Any], Any] = lambda kind, data: adapter(kind).validate_python(
            data, extra="ignore"
        ),
        *,
        is_copied: bool = False,
    ) -> Any:
        """Read a value; None if that is impossible, and the mistakes are collected.

        Args:
            kind: What it should be.
            data: What it is read from.
            path: Where it is.
            read: Makes the value of a copy, or raises pydantic's error; by default, fields that the
                kind does not have are left out.
            is_copied: Whether this reading has copied it before, as a part of something else.
        """
        before = set(self.mistakes)
        copy: Any = data if is_copied else self.plain(data, path)
        broken = self.mistakes.keys() - before
        if self._is_full:
            # The rest was not copied: nothing is said about it.
            return None
        try:
            value = read(kind, copy)
        except ValidationError as error:
            mistakes = error.errors(include_url=False)
        # LangChain's messages fail on other values before pydantic can refuse them.
        except (AttributeError, KeyError, TypeError):
            self.refuse(path, data, "it has an entry that is not a message")
            return None
        else:
            return None if broken else value
        for details in mistakes[:_MOST_MISTAKES]:
            where = (*path, *details["loc"])
            # What could not be copied is named already.
            if not any(where[: len(one)] == one for one in broken):
                input_value = None if details["type"] == "missing" else details["input"]
                code, reason, fix = code_reason_fix(details, self._fix)
                self.refuse(where, input_value, reason, fix, code)
        if len(mistakes) > _MOST_MISTAKES:
            problem = f"it has {len(mistakes):,} mistakes; the first {_MOST_MISTAKES} are named"
            self.refuse(path, f"{len(mistakes):,} mistakes", problem, "Correct these first.")
        return None

    def plain(self, data: Any, path: Path = (), above: tuple[int, ...] = ()) -> Any:
        """Copy JSON; anything else, and what is too deep or too much, is kept as a mistake."""
        self._values_left -= 1
        is_text = isinstance(data, str)
        is_short = is_text and len(data) <= self._left and self._values_left >= 0
        if is_short and data.isascii() and "\x00" not in data:
            # Most of a long session is this.
            self._left -= len(data)
            return data
        if not self.has_room(_bytes_of(data) if is_text else _NODE, path):
            return None
        if problem := self._problem(data, above):
            self.refuse(path, data, problem)
            return None
        if data is None or is_text or isinstance(data, int | float):
            return data
        inside = (*above, id(cast("object", data)))
        if isinstance(data, list | tuple):
            parts = enumerate(cast("Sequence[object]", data))
            return [self.plain(part, (*path, place), inside) for place, part in parts]
        return self._mapping(cast("Mapping[object, object]", data), path, inside)

    def _mapping(
        self, data: Mapping[object, object], path: Path, above: tuple[int, ...]
    ) -> dict[str, Any]:
        copy: dict[str, Any] = {}
        for key, value in data.items():
            if not isinstance(key, str) or first_unwritable(key) >= 0:
                self.refuse((*path, repr(key)), key, "it is not a name that JSON can hold")
            elif self.has_room(len(key)):
                copy[key] = self.plain(value, (*path, key), above)
        return copy

    def _problem(self, data: Any, above: Sequence[int]) -> str:  # noqa: PLR0911 - one for each kind
        """Why a value cannot be copied; empty if it can."""
        # What there is most of comes first: each value of a long session passes here.
        match data:
            case str():
                return "it has half of a character, or a NUL" if first_unwritable(data) >= 0 else ""
            case None:
                return ""
            case int():
                return "it has more than 64 bits" if abs(data) > LARGEST else ""
            case float():
                return "" if math.isfinite(data) else "it is not a finite number"
            case dict() | list() | tuple() | Mapping():
                if id(cast("object", data)) in above:
                    return "it contains itself"
                if len(above) > self._deepest:
                    return f"it is nested deeper than {self._deepest} levels"
                count, most = len(cast("Sequence[object]", data)), self._most_entries
                return (
                    f"it has {count:,} entries; at most {most:,} are read" if count > most else ""
                )
            case _:
                return "it is not JSON"

    def has_room(self, size: int, path: Path = ()) -> bool:
        """Whether this many bytes more may be read, and a value; it is a mistake if not."""
        if self._is_full:
            return False
        self._left -= size
        if self._left < 0:
            self._is_full = True
            self.refuse((), "", f"it is larger than {self._most:,} bytes", "Keep less in it.")
        elif self._values_left < 0:
            self._is_full = True
            problem = f"up to here, there are more than {self._most_values:,} values"
            self.refuse(path[:3], "...", problem, "Keep less in it.")
        return not self._is_full


def is_large(data: object) -> bool:
    """Whether reading a value takes so long that it belongs in a thread."""
    values, characters, waiting = 0, 0, [data]
    while waiting and values < _SMALL and characters < 1_000 * _SMALL:
        each = waiting.pop()
        values += 1
        if isinstance(each, str):
            characters += len(each)
        elif isinstance(each, Mapping | list | tuple):
            parts = cast("Any", each)
            if len(parts) > _SMALL:
                return True
            waiting += parts.values() if isinstance(each, Mapping) else parts
    return bool(waiting)


def shown_path(path: Path) -> str:
    """Write the path of a field as people do, such as `dialogue_history[3].role`."""
    text = ""
    for part in path:
        is_name = isinstance(part, str) and part.isidentifier()
        text += f".{str(part)[:_LONGEST_NAME]}" if is_name else f"[{reprlib.repr(part)}]"
    return text.removeprefix(".") or "context"


def _bytes_of(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
