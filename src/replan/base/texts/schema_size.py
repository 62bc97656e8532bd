"""How large a JSON schema is once its references are written out, counted without writing them.

LangChain writes a tool's schema out for each call of a model: where each definition refers twice to
the next one, the text doubles with each level. The count follows its rules, and ends at the bound.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from replan.base.texts.storable import DEEPEST

LONGEST_SCHEMA = 50_000
"""Characters of a schema, written out."""

LONGEST_DEFINITIONS = 200_000
"""Characters of the definitions of a schema, whether it refers to them or not."""

LONGEST_SCHEMAS = 2_000_000
"""Characters that one meter counts in all."""

_DEFINITIONS = ("$defs", "definitions")
_SHOWN = 100


class SchemaBoundError(ValueError):
    """A schema is not within the bounds; the text says why."""


class SchemaMeter:
    """Counts schemas: each within its own bound, all of them within one."""

    def __init__(self) -> None:
        self._left = LONGEST_SCHEMAS
        self._count = self._bound = 0
        self._whole: Mapping[str, Any] = {}

    def length(self, schema: Mapping[str, Any]) -> int:
        """Count the characters of a schema as JSON, written out, approximately.

        Raises:
            SchemaBoundError: It is too long or too deep, or refers to what it does not have.
        """
        self._whole = schema
        self._walk({key: schema[key] for key in _DEFINITIONS if key in schema}, LONGEST_DEFINITIONS)
        shown = {key: value for key, value in schema.items() if key not in _DEFINITIONS}
        return self._walk(shown, LONGEST_SCHEMA)

    def _walk(self, value: Mapping[str, Any], bound: int) -> int:
        self._count, self._bound = 0, bound
        self._value(value, 0, frozenset())
        return self._count

    def _spend(self, characters: int) -> None:
        self._count += characters
        self._left -= characters
        if self._count > self._bound:
            raise SchemaBoundError(f"it has more than {self._bound:,} characters, written out")
        if self._left < 0:
            problem = f"with those before it, it has more than {LONGEST_SCHEMAS:,} characters"
            raise SchemaBoundError(problem)

    def _value(
        self, value: object, depth: int, open_refs: frozenset[str], *, is_raw: bool = False
    ) -> None:
        """Count a value; `open_refs` are the references in which it stands."""
        if depth > DEEPEST:
            raise SchemaBoundError(f"it is nested deeper than {DEEPEST} levels, written out")
        if isinstance(value, Mapping):
            parts = cast("Mapping[object, object]", value)
            if "$ref" in parts and not is_raw:
                self._reference(parts["$ref"], depth, open_refs)
            for key, part in parts.items():
                self._spend(len(str(key)) + 6)
                # What is below it is copied as it stands.
                self._value(part, depth + 1, open_refs, is_raw=is_raw or key == "$defs")
        elif isinstance(value, list | tuple):
            for part in cast("Sequence[object]", value):
                self._value(part, depth + 1, open_refs, is_raw=is_raw)
        self._spend(_length_of(cast("object", value)))

    def _reference(self, path: object, depth: int, open_refs: frozenset[str]) -> None:
        if not isinstance(path, str):
            raise SchemaBoundError("a reference in it is not text")
        # One that leads back to itself is left out there.
        if path not in open_refs:
            self._value(self._target(path), depth + 1, open_refs | {path})

    def _target(self, path: str) -> object:
        """What a reference leads to, found as LangChain finds it."""
        start, *parts = path.split("/")
        target: Any = self._whole if start == "#" else None
        for part in parts:
            if isinstance(target, Mapping) and part in target:
                target = cast("Any", target[part])
            elif isinstance(target, list) and part.isdecimal() and len(part) < len("9999999"):
                items = cast("list[Any]", target)
                target = items[int(part)] if int(part) < len(items) else None
            else:
                target = None
        if target is None:
            raise SchemaBoundError(f"its reference {path[:_SHOWN]!r} leads nowhere in it")
        return target


def _length_of(value: object) -> int:
    """The characters of a value by itself, without its parts."""
    if isinstance(value, str):
        return len(value) + 2
    if isinstance(value, int):
        # A digit has three bits at least; false has five letters.
        return value.bit_length() // 3 + 5
    return len(repr(value)) if value is None or isinstance(value, float) else 2
