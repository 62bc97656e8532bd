"""Values that models wrap: in a call of a function, in a schema, in a list of one, in a text."""

import json
from collections.abc import Iterator, Sequence
from typing import Any, cast

from pydantic import JsonValue

from replan.replies.vocabulary.keys import squeezed

_DEEPEST = 4
_CALL = {"id", "type", "name", "function", "arguments", "parameters"}
_SCHEMA = {
    *("$schema", "$defs", "title", "type", "description"),
    *("properties", "required", "additionalProperties"),
}
_SCHEMA_MARKS = {"type", "$ref", "anyOf", "enum"}
_NEUTRAL = {"answer", "data", "items", "json", "output", "response", "result", "value"}
_SHORTEST = 3  # letters of a name that has to be a part of another


def inner_values(
    value: JsonValue, titles: Sequence[str], depth: int = _DEEPEST
) -> Iterator[JsonValue]:
    """Yield what a value only wraps, from the outside in; the titles are those of the type."""
    for inner in _inner(value, titles) if depth else ():
        yield inner
        yield from inner_values(inner, titles, depth - 1)


def property_names(schema: dict[str, Any]) -> set[str]:
    """The names of the fields that an object of a schema may have."""
    return _names_in(schema, schema.get("$defs", {}), _DEEPEST)


def _inner(value: JsonValue, titles: Sequence[str]) -> Iterator[JsonValue]:
    match value:
        case [single]:
            yield single
        case str() if value.strip()[:1] in ("{", "[", '"'):
            try:
                yield json.loads(value)
            except (ValueError, RecursionError):
                return
        case {"properties": dict(inner)} if value.keys() <= _SCHEMA and not _is_schema(inner):
            yield inner
        case {"function": dict(inner)} if value.keys() <= _CALL:
            yield inner
        case {"arguments": inner} | {"parameters": inner} if value.keys() <= _CALL:
            yield inner
        case dict() if len(value) == 1 and _is_title(next(iter(value)), titles):
            yield next(iter(value.values()))
        case _:
            return


def _is_schema(properties: dict[str, JsonValue]) -> bool:
    """Whether these are the properties of the schema itself, which models repeat."""
    return all(
        isinstance(each, dict) and _SCHEMA_MARKS & each.keys() for each in properties.values()
    )


def _is_title(key: str, titles: Sequence[str]) -> bool:
    """Whether a key says no more than what the value below it is."""
    pairs = [sorted((squeezed(key), squeezed(title)), key=len) for title in titles]
    is_part = any(len(short) >= _SHORTEST and short in long for short, long in pairs)
    return is_part or squeezed(key) in _NEUTRAL


def _names_in(schema: dict[str, Any], others: dict[str, Any], depth: int) -> set[str]:
    if not depth:
        return set()
    reference = str(schema.get("$ref", "")).rpartition("/")[2]
    ways = [others[reference]] if reference in others else []
    ways += [each for key in ("anyOf", "oneOf", "allOf") for each in schema.get(key, [])]
    names = set(cast("dict[str, Any]", schema.get("properties", {})))
    return names.union(*(_names_in(each, others, depth - 1) for each in ways))
