"""Compare a value with the one that is read back from JSON, part by part."""

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import Any, cast

from pydantic import AliasChoices, BaseModel, JsonValue
from pydantic.fields import FieldInfo

Path = tuple[int | str, ...]
"""Where in a value a part is: names of fields, keys and places."""


def parts_of(value: object) -> dict[int | str, object] | None:
    """The parts of a value by name, key or place; None for a value that is compared whole."""
    if isinstance(value, BaseModel):
        fields: dict[int | str, object] = {
            name: getattr(value, name) for name in type(value).model_fields
        }
        return fields | (value.model_extra or {})
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            data_field.name: getattr(value, data_field.name, None)
            for data_field in dataclasses.fields(value)
        }
    if isinstance(value, Mapping):
        mapping = cast("Mapping[Any, object]", value)
        return {key if isinstance(key, int) else str(key): mapping[key] for key in mapping}
    if isinstance(value, list | tuple):
        return dict(enumerate(cast("list[object]", value)))
    is_whole = isinstance(value, Enum | type) or not hasattr(value, "__dict__")
    if type(value).__eq__ is object.__eq__ and not is_whole:
        return {**vars(value)}
    return None


def difference(one: object, other: object) -> Path | None:
    """Where two values differ first; None if they are the same."""
    parts, others = parts_of(one), parts_of(other)
    if parts is None or others is None:
        return None if one == other else ()
    if type(one) is not type(other) or parts.keys() != others.keys():
        return ()
    for name, part in parts.items():
        if (below := difference(part, others[name])) is not None:
            return (name, *below)
    return None


def with_input_names(value: object, by_name: JsonValue) -> JsonValue:
    """Rename the fields in JSON of a value as its schema names them for who gives it."""
    parts = parts_of(value) or {}
    if isinstance(by_name, list):
        return [with_input_names(parts.get(at), part) for at, part in enumerate(by_name)]
    if not isinstance(by_name, dict):
        return by_name
    fields = type(value).model_fields if isinstance(value, BaseModel) else {}
    names = {name: _input_name(name, field) for name, field in fields.items()}
    return {
        names.get(name, name): with_input_names(parts.get(name), part)
        for name, part in by_name.items()
    }


def _input_name(name: str, field: FieldInfo) -> str:
    alias = field.validation_alias
    first = alias.choices[0] if isinstance(alias, AliasChoices) else alias
    return first if isinstance(first, str) else name


def first_part(value: object, is_wanted: Callable[[object], bool]) -> Path | None:
    """Where in a value the first part of a kind is; None without one."""
    return next(_parts_that(value, is_wanted), None)


def _parts_that(value: object, is_wanted: Callable[[object], bool]) -> Iterator[Path]:
    if is_wanted(value):
        yield ()
    for name, part in (parts_of(value) or {}).items():
        yield from ((name, *below) for below in _parts_that(part, is_wanted))


def is_secret(part: object) -> bool:
    """Whether a part is a secret of pydantic's, which JSON shows as asterisks."""
    return hasattr(part, "get_secret_value")


def has_no_json_number(part: object) -> bool:
    """Whether a part is a number that JSON has not: NaN or infinity."""
    return isinstance(part, float) and not math.isfinite(part)
