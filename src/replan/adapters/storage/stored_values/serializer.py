"""The strict serializer of checkpoints: it restores our values, messages, and nothing else.

A checkpoint names the classes of its values. LangGraph's default makes an instance of any class
that is named, so whoever can write the database can run code; here only listed classes are made,
and everything else stays plain data.
"""

import logging
from collections.abc import Iterable
from copy import copy
from functools import cache
from typing import Any, cast

from langgraph.checkpoint.base import BaseCheckpointSaver

from replan.adapters.storage.stored_values.sealing import SealedSerializer, StrictSerializer
from replan.adapters.storage.stored_values.state_classes import types_in, types_of_graph
from replan.langgraph_inside.checkpoints import UNREGISTERED, restores_everything
from replan.state.enhanced import EnhancedState
from replan.state.limits import RunSettings
from replan.state.patches import PlanPatch

_OURS = "replan."


def strict_serializer(allow: Iterable[type] = ()) -> StrictSerializer:
    """Make a serializer that restores the types of the state, and those that are listed here."""
    names = [(kind.__module__, kind.__name__) for kind in (*state_types(), *allow)]
    return StrictSerializer(allowed_msgpack_modules=names)


@cache
def state_types() -> frozenset[type]:
    """Every model and enumeration of ours that a checkpoint may hold."""
    found = types_in(EnhancedState, PlanPatch, RunSettings)
    return frozenset(kind for kind in found if kind.__module__.startswith(_OURS))


def is_news(record: logging.LogRecord) -> bool:
    """Whether a warning of LangGraph's serializer is of others than us.

    Inside of a graph of somebody else's their saver restores our values, and warns that it will
    give plain data back one day. Our channels make values of that, so nobody has to do anything.
    """
    module = record.args[0] if isinstance(record.args, tuple) and record.args else ""
    return not (UNREGISTERED in str(record.msg) and str(module).startswith(_OURS))


def saver_for(saver: Any, graphs: Iterable[Any]) -> Any:
    """Give a saver whose serializer is strict, and restores what the states of graphs hold.

    A serializer that somebody chose stays, and so does what LangGraph takes in a saver's place.
    """
    if not isinstance(saver, BaseCheckpointSaver):
        return saver
    given: Any = cast("Any", saver).serde
    allowed = frozenset[type]().union(*(types_of_graph(graph) for graph in graphs))
    if restores_everything(given):
        twin: Any = copy(cast("Any", saver))
        twin.serde = strict_serializer(allowed)
        return twin
    if isinstance(given, StrictSerializer | SealedSerializer) and allowed:
        return cast("Any", saver).with_allowlist(
            [(kind.__module__, kind.__name__) for kind in allowed]
        )
    return cast("Any", saver)
