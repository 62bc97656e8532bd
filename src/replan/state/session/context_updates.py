"""Updates of a session: they contain only changes, and one function applies them.

A history grows by `{"append": [...]}`, or is replaced by `{"set": [...]}`. A text is replaced by
`{"set": text}`. An entry of a mapping is replaced by `{"set": value}`, or is None and removed: so
none of the values that an entry may have can be taken for an order.
"""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, cast

from pydantic import JsonValue

from replan.base.values import Value, same
from replan.state.session.context_fields import Path, ValueReader

HISTORIES = ("dialogue_history", "tool_execution_history")
MAPPINGS = ("project_state", "session_metadata")
TEXTS = ("current_stage",)


def applied(context: Value, updates: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a context that updates change, as they are afterwards.

    Raises:
        ContextError: Something is wrong with the updates.
    """
    reading, fields = ValueReader(), dict[str, Any]()
    for name, change in _entries(updates, (), reading):
        path: Path = (name,)
        if name in HISTORIES:
            fields[name] = _history(context, name, change, reading)
        elif name in MAPPINGS:
            fields[name] = _mapping(getattr(context, name), change, path, reading)
        elif name in TEXTS:
            fields[name] = _read_set(str, change, path, reading)
        else:
            reading.refuse(path, change, "no update changes this", "Leave it out.")
    reading.end()
    return fields


def updates_between(before: Value, after: Value) -> dict[str, JsonValue]:
    """What changes a context into another one of its session; empty where nothing does."""
    updates: dict[str, JsonValue] = {}
    for name in HISTORIES:
        old, new = getattr(before, name), getattr(after, name)
        if not _is_same_history(old, new):
            goes_on = len(new) > len(old) and _is_same_history(old, new[: len(old)])
            added = new[len(old) :] if goes_on else new
            updates[name] = {"append" if goes_on else "set": [entry.to_dict() for entry in added]}
    for name in TEXTS:
        old, new = getattr(before, name), getattr(after, name)
        if old != new:
            updates[name] = {"set": new}
    for name in MAPPINGS:
        if changes := _changes(getattr(before, name), getattr(after, name)):
            updates[name] = changes
    return updates


def _changes(
    before: Mapping[str, JsonValue], after: Mapping[str, JsonValue]
) -> dict[str, JsonValue]:
    """Return the updates of the entries that differ."""
    changes: dict[str, JsonValue] = {name: None for name in before if name not in after}
    for name, value in after.items():
        if name not in before or not same(before[name], value):
            changes[name] = {"set": deepcopy(value)}
    return changes


def _is_same_history(one: tuple[Value, ...], other: tuple[Value, ...]) -> bool:
    return len(one) == len(other) and all(
        a is b or a.model_dump_json() == b.model_dump_json()
        for a, b in zip(one, other, strict=True)
    )


def _history(context: Value, name: str, change: Any, reading: ValueReader) -> Any:
    kind = type(context).model_fields[name].annotation
    path: Path = (name,)
    if _is_update(change, "append"):
        added = reading.value(kind, change["append"], (*path, "append"))
        return (*getattr(context, name), *(added or ()))
    fix = 'Write {"append": [...]} or {"set": [...]}.'
    return _read_set(kind, change, path, reading, fix)


def _mapping(
    before: Mapping[str, JsonValue], change: Any, path: Path, reading: ValueReader
) -> dict[str, JsonValue]:
    after = dict(before)
    for name, each in _entries(change, path, reading):
        if each is None:
            after.pop(name, None)
        else:
            fix = 'Write {"set": value}, or null to remove it.'
            after[name] = _read_set(JsonValue, each, (*path, name), reading, fix)
    return after


def _read_set(
    kind: Any, change: Any, path: Path, reading: ValueReader, fix: str = 'Write {"set": ...}.'
) -> Any:
    if _is_update(change, "set"):
        return reading.value(kind, change["set"], (*path, "set"))
    reading.refuse(path, change, "it is not an update", fix)
    return None


def _is_update(change: Any, name: str) -> bool:
    return isinstance(change, Mapping) and [*cast("Mapping[object, Any]", change)] == [name]


def _entries(value: object, path: Path, reading: ValueReader) -> list[tuple[str, Any]]:
    """Return the entries of a mapping; those without a name are mistakes."""
    if isinstance(value, Mapping):
        # A name that JSON does not keep is refused with what it names.
        pairs = cast("Mapping[object, Any]", value).items()
        for name, entry in pairs:
            if not isinstance(name, str):
                reading.refuse((*path, repr(name)), entry, "it is not a name that JSON can hold")
        return [(name, entry) for name, entry in pairs if isinstance(name, str)]
    reading.refuse(path, value, "it is not a mapping", "Write a mapping with texts as keys.")
    return []
