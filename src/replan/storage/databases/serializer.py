"""The strict serializer of checkpoints: it restores our values, messages, and nothing else.

A checkpoint names the classes of its values. LangGraph's default makes an instance of any class
that is named, so anyone who can write the database can run code; here only listed classes are made,
and everything else stays plain data.

Values are compressed, but not what is encrypted: its length would tell how much of a text is in it
twice. Nor is the log: it can be read as it is.
"""

import logging
import zlib
from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import is_dataclass
from enum import Enum
from functools import cache
from typing import Any, TypeVar, cast, get_args, get_type_hints

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from pydantic import BaseModel
from typing_extensions import is_typeddict

from replan.base.failures import describe
from replan.base.langgraph_inside.checkpoints import UNREGISTERED, restores_everything
from replan.base.langgraph_inside.graphs import schemas_of
from replan.ports.ownership import local_threads
from replan.state.changed_steps import ChangedSteps
from replan.state.enhanced import EnhancedState
from replan.state.limits import RunSettings
from replan.storage.databases.faults import UnreadableRecordError, UnstorableValueError

LEAST = 256
"""Bytes of a value below which hardly anything would be saved."""

_FAST = 1  # the level: a higher one takes more time and saves 2 %
_MOST = 2**28  # bytes of a value, so that a few bytes in the database cannot take all memory


def pack(data: bytes) -> bytes:
    """Compress data."""
    return zlib.compress(data, _FAST)


def unpack(data: bytes) -> bytes:
    """The data of which `pack` made this.

    Raises:
        UnreadableRecordError: It is damaged, or too long.
    """
    stream = zlib.decompressobj()
    try:
        whole = stream.decompress(data, _MOST)
    except zlib.error as error:
        raise UnreadableRecordError(str(error)) from error
    if not stream.eof:
        raise UnreadableRecordError("a compressed value is cut off, or too long")
    return whole


_PACKED = "+zlib"  # what the types of compressed values end with


class StrictSerializer(JsonPlusSerializer):
    """LangGraph's serializer of listed classes, whose every complaint has one name."""

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        try:
            return super().dumps_typed(obj)
        except (TypeError, ValueError, RecursionError) as error:
            raise UnstorableValueError(describe(error)) from error

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        try:
            return super().loads_typed(data)
        except (ValueError, TypeError, NotImplementedError) as error:
            raise UnreadableRecordError(str(error)) from error


class PackedSerializer(StrictSerializer):
    """One whose long values are compressed, for storage that is not encrypted."""

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        kind, data = super().dumps_typed(obj)
        return (kind, data) if len(data) < LEAST else (kind + _PACKED, pack(data))

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        kind, small = data
        whole = unpack(small) if kind.endswith(_PACKED) else small
        return super().loads_typed((kind.removesuffix(_PACKED), whole))


def types_in(*schemas: Any) -> frozenset[type]:
    """Every model, dataclass and enumeration that the schemas lead to."""
    types: set[type] = set()
    seen: set[int] = set()
    waiting: list[Any] = list(schemas)
    while waiting:
        kind = waiting.pop()
        if id(kind) not in seen:
            seen.add(id(kind))
            if isinstance(kind, type) and (_is_class(kind, BaseModel, Enum) or is_dataclass(kind)):
                types.add(cast("type", kind))
            waiting.extend(_parts(kind))
    return frozenset(types)


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


_OURS = "replan."


S = TypeVar("S", bound=StrictSerializer)


def strict_serializer(allow: Iterable[type] = (), kind: type[S] = StrictSerializer) -> S:
    """Make a serializer that restores the types of the state, and those that are listed here."""
    names = [(kind.__module__, kind.__name__) for kind in (*state_types(), *allow)]
    return kind(allowed_msgpack_modules=names)


@cache
def state_types() -> frozenset[type]:
    """Every model and enumeration of ours that a checkpoint may hold."""
    types = types_in(EnhancedState, ChangedSteps, RunSettings)
    return frozenset(kind for kind in types if kind.__module__.startswith(_OURS))


def is_of_other_code(record: logging.LogRecord) -> bool:
    """Whether a serializer's warning is of others than us: our channels read plain data."""
    module = record.args[0] if isinstance(record.args, tuple) and record.args else ""
    return not (UNREGISTERED in str(record.msg) and str(module).startswith(_OURS))


def saver_for(saver: Any, graphs: Iterable[Any]) -> Any:
    """Return a saver with a strict serializer; a chosen serializer stays, and so does None."""
    if not isinstance(saver, BaseCheckpointSaver):
        return saver
    # Before it is copied: no two runs work on one thread of all its copies.
    local_threads(cast("object", saver))
    serde: Any = cast("Any", saver).serde
    allowed = frozenset[type]().union(*(types_of_graph(graph) for graph in graphs))
    if restores_everything(serde):
        twin: Any = copy(cast("Any", saver))
        twin.serde = strict_serializer(allowed)
        return twin
    if isinstance(serde, StrictSerializer | EncryptedSerializer) and allowed:
        return cast("Any", saver).with_allowlist(
            [(kind.__module__, kind.__name__) for kind in allowed]
        )
    return cast("Any", saver)
