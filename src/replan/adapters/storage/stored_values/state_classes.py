"""The classes that a state can hold: what its schema leads to."""

from collections.abc import Iterable, Mapping
from dataclasses import is_dataclass
from enum import Enum
from typing import Any, cast, get_args, get_type_hints

from pydantic import BaseModel
from typing_extensions import is_typeddict

from replan.langgraph_inside.graphs import schemas_of


def types_in(*schemas: Any) -> frozenset[type]:
    """Every model, dataclass and enumeration that the schemas lead to."""
    found: set[type] = set()
    seen: set[int] = set()
    waiting: list[Any] = list(schemas)
    while waiting:
        kind = waiting.pop()
        if id(kind) not in seen:
            seen.add(id(kind))
            if isinstance(kind, type) and (_is_class(kind, BaseModel, Enum) or is_dataclass(kind)):
                found.add(cast("type", kind))
            waiting.extend(_parts(kind))
    return frozenset(found)


def types_of_graph(graph: Any) -> frozenset[type]:
    """What the states of a compiled graph and of the graphs inside it can hold; none of others."""
    return types_in(*schemas_of(graph))


def _is_class(kind: Any, *bases: type) -> bool:
    return isinstance(kind, type) and issubclass(kind, bases)


def _parts(kind: Any) -> Iterable[Any]:
    """What a type leads to: its fields, its arguments, or what it is another name for."""
    if _is_class(kind, BaseModel):
        return [field.annotation for field in kind.model_fields.values()]
    if is_typeddict(kind) or is_dataclass(kind):
        return _hints(kind).values()
    return [*get_args(kind), getattr(kind, "__value__", None), getattr(kind, "__supertype__", None)]


def _hints(kind: Any) -> Mapping[str, Any]:
    try:
        return get_type_hints(kind)
    except NameError:
        # Somebody's annotation names what cannot be found from here, such as a local class.
        return {}
