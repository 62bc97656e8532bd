"""The state of a run that travels, as JSON. A result that is on record, too, is written once."""

import json
from collections.abc import Mapping
from functools import cache
from typing import Any, cast, get_type_hints

from langchain_core.messages import AnyMessage
from pydantic import JsonValue

from replan.base.values import adapter, restored_strictly
from replan.state.channels import Checked
from replan.state.enhanced import EnhancedState
from replan.state.results import SpecialistResult, result_as_json
from replan.state.session.context_fields import Path, ValueReader

HISTORIES = frozenset({"thinking_history", "execution_history", "unreadable_replies"})
"""Keys of the state that outlive a run, and that no later node of it reads."""

_RESULTS = frozenset({"current_specialist_results", "carried_results"})
_LONG = frozenset({"current_plan", "plan_history"})
ON_RECORD = "on_record"
"""Where a state names a result that its rows have."""


def state_as_json(
    state: Mapping[str, Any], recorded: Mapping[str, JsonValue]
) -> dict[str, JsonValue]:
    """Write a state."""
    keys = {_text(result): key for key, result in recorded.items()}
    return {name: _dump(name, value, keys) for name, value in state.items()}


def state_in(
    written: Mapping[str, Any], recorded: Mapping[str, JsonValue], path: Path, reading: ValueReader
) -> dict[str, Any]:
    """Read a state from a copy; mistakes are collected by the reading."""
    state = dict[str, Any]()
    for name, kind in _kinds().items():
        if name in written:
            where, value = (*path, name), written[name]
            if name in _RESULTS and isinstance(value, dict):
                value = _with_recorded(cast("dict[str, Any]", value), recorded, where, reading)
            state[name] = reading.value(kind, value, where, restored_strictly, is_copied=True)
    return state


def _dump(name: str, value: Any, keys: Mapping[str, str]) -> JsonValue:
    if name not in _RESULTS:
        return adapter(_kinds()[name]).dump_python(
            value, mode="json", exclude_defaults=name in _LONG
        )
    results = cast("dict[str, SpecialistResult]", value)
    written = {key: result_as_json(result, is_short=True) for key, result in results.items()}
    return {key: _or_reference(value, keys) for key, value in written.items()}


def _or_reference(result: dict[str, JsonValue], keys: Mapping[str, str]) -> JsonValue:
    key = keys.get(_text(result))
    return result if key is None else {ON_RECORD: key}


def _with_recorded(
    results: Mapping[str, Any], recorded: Mapping[str, JsonValue], path: Path, reading: ValueReader
) -> dict[str, Any]:
    """Put the results on record where the state has their keys."""
    found = dict(results)
    for name, result in results.items():
        if not isinstance(result, dict) or [*cast("dict[str, Any]", result)] != [ON_RECORD]:
            continue
        key = cast("dict[str, Any]", result)[ON_RECORD]
        if isinstance(key, str) and key in recorded:
            found[name] = recorded[key]
        else:
            del found[name]
            problem, fix = "no result on record has this key", "Send the run as it was."
            reading.refuse((*path, name), key, problem, fix)
    return found


def _text(result: JsonValue) -> str:
    return json.dumps(result, sort_keys=True)


@cache
def _kinds() -> dict[str, Any]:
    """The types of the keys of a state that travel."""
    hints = get_type_hints(EnhancedState) | {"messages": list[AnyMessage]}
    return {key: kind for key, kind in hints.items() if key not in HISTORIES}


@cache
def plain_keys() -> frozenset[str]:
    """The keys that are replaced by a value; all others reduce it into the existing value."""
    hints = get_type_hints(EnhancedState, include_extras=True)
    marks = {key: getattr(kind, "__metadata__", ()) for key, kind in hints.items()}
    return frozenset(key for key, mark in marks.items() if Checked in mark)
