"""Frozen values, and how one comes back that another version of Replan stored.

Who writes a value must know its fields. What is stored may be older or newer than this version:
there a field that is unknown is left out, and a name that is unknown becomes a cautious one.
"""

import hashlib
import inspect
import json
import logging
import re
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Self, TypeVar, Union, cast, get_args, get_origin

from pydantic import (
    BaseModel,
    ConfigDict,
    JsonValue,
    TypeAdapter,
    ValidationError,
)

T = TypeVar("T")

_ATTRIBUTE = re.compile(r"^ {4}(?P<name>\w+): (?P<text>.+(?:\n {8}.+)*)", re.MULTILINE)

_log = logging.getLogger(__name__)


def described(schema: dict[str, Any], kind: type[Any]) -> None:
    """Add the texts of its class's docstring to a JSON schema, for forms and editors."""
    schema["description"] = (inspect.getdoc(kind) or "").partition("\n")[0]
    properties = schema.get("properties", {})
    for name, text in texts_of(kind).items():
        if name in properties:
            properties[name]["description"] = text


def texts_of(kind: type[Any]) -> dict[str, str]:
    """What the docstrings of a class and of those above it say about its fields."""
    return {
        match["name"]: " ".join(match["text"].split())
        for base in reversed(kind.__mro__)
        for match in _ATTRIBUTE.finditer(inspect.cleandoc(base.__doc__ or ""))
        if match["name"] in getattr(kind, "model_fields", kind.__annotations__)
    }


_as_text = json.JSONEncoder(ensure_ascii=True, sort_keys=True).encode

json_text = json.JSONEncoder(ensure_ascii=False, default=str).encode
"""Plain data as JSON, in the letters of its own language."""


def fields_in(value: object) -> dict[str, Any]:
    """The fields of plain data; none if it is no mapping."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def text_or_json(value: object) -> str:
    """A text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json_text(value)


def digest_of(*parts: object) -> str:
    """A name of 32 digits for plain data; the order of keys in mappings does not matter."""
    return hashlib.sha256(_as_text(parts).encode()).hexdigest()[:32]


def same(one: JsonValue, two: JsonValue) -> bool:
    """Whether two JSON values are equal and of the same kinds, so that `1` is not `True`."""
    if isinstance(one, dict) and isinstance(two, dict):
        return one.keys() == two.keys() and all(same(one[key], two[key]) for key in one)
    if isinstance(one, list) and isinstance(two, list):
        return len(one) == len(two) and all(map(same, one, two))
    return type(one) is type(two) and one == two


def mapped(value: Any, leaf: Callable[[Any], Any], key: Callable[[Any], str] | None = None) -> Any:
    """Plain data with each of its leaves, and each key of its mappings, made into another one."""
    if isinstance(value, dict):
        fields = cast("dict[Any, Any]", value).items()
        return {key(name) if key else name: mapped(part, leaf, key) for name, part in fields}
    if isinstance(value, list):
        return [mapped(part, leaf, key) for part in cast("list[Any]", value)]
    return leaf(value)


def leaves(value: Any) -> Iterator[Any]:
    """What plain data has in its mappings and lists, however deep."""
    if isinstance(value, dict | list):
        parts = cast("Any", value)
        for part in parts.values() if isinstance(value, dict) else parts:
            yield from leaves(part)
    else:
        yield value


class Value(BaseModel):
    """A frozen value that knows only its declared fields."""

    # Built when it is first used: in most processes half of the classes are not. Threads may do so
    # at once from pydantic 2.14 on.
    model_config = ConfigDict(
        frozen=True, extra="forbid", json_schema_extra=described, defer_build=True
    )

    def replace(self, **changes: Any) -> Self:
        """Return a copy with some fields changed, validated like a new value.

        What was left out stays left out, since settings that are merged ask for what was set.

        Raises:
            pydantic.ValidationError: A name is not a field, or a value does not fit its field.
        """
        fields = self.__dict__
        kept = {name: fields[name] for name in self.__pydantic_fields_set__}
        return type(self)(**{**kept, **changes})

    @classmethod
    def model_construct(cls, _fields_set: set[str] | None = None, **values: Any) -> Self:
        """Restore stored fields; a value that was not checked is never made.

        LangGraph's serializer calls this for what it cannot make by calling the class.

        Raises:
            pydantic.ValidationError: They do not fit, whatever is left out of them.
        """
        return restored(cls, values)


def restored(kind: type[T], stored: object) -> T:
    """Return the value of a kind that this or another version stored."""
    try:
        return adapter(kind).validate_python(stored)
    except ValidationError:
        return adapter(kind).validate_python(fitted(kind, stored))


def restored_strictly(kind: type[T], stored: JsonValue) -> T:
    """Return the value of a kind that comes from outside: nothing in it is turned into a number.

    A text is no number, and neither is true or false.
    """
    try:
        return adapter(kind).validate_json(json.dumps(stored), strict=True)
    except ValidationError:
        return adapter(kind).validate_json(json.dumps(fitted(kind, stored)), strict=True)


@cache
def adapter(kind: Any) -> TypeAdapter[Any]:
    """What validates values of a kind; made once."""
    return TypeAdapter(kind)


def fitted(kind: Any, stored: Any) -> Any:
    """Shape stored data for this version; what is not understood stays as it is."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return fitted(parts[0], stored)
    if origin in (Union, UnionType):
        return _fitted_option(parts, stored)
    if isinstance(stored, Mapping):
        return _fitted_mapping(kind, cast("Mapping[Any, Any]", stored))
    if origin in (list, tuple) and isinstance(stored, list | tuple):
        return [fitted(parts[0], item) for item in cast("list[Any]", stored)]
    return (
        _fitted_name(kind, stored) if isinstance(kind, type) and issubclass(kind, Enum) else stored
    )


def _fitted_mapping(kind: Any, stored: Mapping[Any, Any]) -> Mapping[Any, Any]:
    if isinstance(kind, type) and issubclass(kind, Value):
        fields = known_fields(kind, stored)
        # What has little in common with the value is something else, and is refused for it.
        return fields if 2 * len(fields) >= len(stored) else stored
    if get_origin(kind) is dict:
        return {key: fitted(get_args(kind)[1], value) for key, value in stored.items()}
    return stored


def known_fields(kind: type[Value], stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return those stored fields of a value that this version knows."""
    fields = kind.model_fields
    return {
        name: fitted(fields[name].annotation, value)
        for name, value in stored.items()
        if name in fields
    }


def _fitted_option(kinds: tuple[Any, ...], stored: Any) -> Any:
    """Shape data of an optional field; with several kinds nobody knows which one was meant."""
    left = [kind for kind in kinds if kind is not NoneType]
    return fitted(left[0], stored) if len(left) == 1 and stored is not None else stored


def _fitted_name(kind: type[Enum], stored: Any) -> Any:
    """Return a name that this version knows; for others, the enumeration's `unknown`, or None."""
    if stored in [member.value for member in kind]:
        return stored
    _log.warning("a stored name is unknown", extra={"kind": kind.__name__, "stored": repr(stored)})
    return getattr(kind, "unknown", None)
