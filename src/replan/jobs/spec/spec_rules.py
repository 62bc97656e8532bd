"""Rules between the parts of a job spec, in Python and in a file."""

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from pydantic_core import InitErrorDetails

from replan.declared.fields import did_you_mean, fields_of, list_in
from replan.declared.part import rule_error
from replan.jobs.spec.action_spec import BUILT_IN
from replan.jobs.spec.slot import ANY

PLACEHOLDER = re.compile(r"\{([a-z][a-z0-9_]*)\}")
"""How the value of a slot is named in a parameter of an action."""

Where = tuple[str | int, ...]
Found = Iterator[InitErrorDetails]


def broken_rules_of(given: Mapping[str, Any]) -> Found:
    """Find mistakes between the parts, in addition to mistakes in each."""
    slots = [fields_of(each) for each in list_in(given.get("slots"))]
    names = [name for each in slots if isinstance(name := each.get("name"), str)]
    yield from _names_twice("slots", slots)
    yield from _names_twice(
        "commands", [fields_of(each) for each in list_in(given.get("commands"))]
    )
    for index, slot in enumerate(slots):
        yield from _slot_rules(slot, ("slots", index), names)
    yield from _cycles(slots)
    yield from _missing_texts(slots, given)
    for index, command in enumerate(list_in(given.get("commands"))):
        yield from _command_rules(fields_of(command), ("commands", index), names, given)
    for index, action in enumerate(list_in(given.get("actions"))):
        yield from _action_rules(fields_of(action), ("actions", index))


def _names_twice(where: str, parts: Sequence[Mapping[str, Any]]) -> Found:
    seen: dict[object, int] = {}
    for index, each in enumerate(parts):
        name = each.get("name")
        first = seen.setdefault(name, index) if isinstance(name, str) else index
        if first != index:
            reason = f"{where}[{first}] already has this name."
            yield rule_error((where, index, "name"), name, "duplicate_name", reason, "Rename one.")


def _slot_rules(slot: Mapping[str, Any], where: Where, names: Sequence[str]) -> Found:
    yield from _unknown_slots(slot, where, ("depends_on",), names)
    if inspect.iscoroutinefunction(slot.get("check")):
        reason, fix = "A check is not asynchronous.", "Write it without async."
        yield rule_error((*where, "check"), None, "asynchronous", reason, fix)
    kind = slot.get("type", "text")
    if slot.get("choices") and kind not in ("text", "list"):
        fix = "Make it a slot of type text or list."
        yield rule_error(
            (*where, "choices"), None, "unused_field", f"A {kind} has no choices.", fix
        )
    if slot.get("pattern") is not None and kind != "text":
        fix = "Make it a slot of type text."
        yield rule_error(
            (*where, "pattern"), None, "unused_field", f"A {kind} has no pattern.", fix
        )
    for bound in ("minimum", "maximum"):
        if slot.get(bound) is not None and kind not in ("integer", "number"):
            reason = f"A slot of type {kind} has no bound."
            fix = "Make it an integer or a number."
            yield rule_error((*where, bound), slot[bound], "unused_field", reason, fix)


def _unknown_slots(
    part: Mapping[str, Any], where: Where, fields: Sequence[str], names: Sequence[str]
) -> Found:
    for field in fields:
        for index, name in enumerate(list_in(part.get(field))):
            if name not in names:
                fix = did_you_mean(str(name), names, "Declare it under slots.")
                reason = f"There is no slot '{name}'."
                yield rule_error((*where, field, index), name, "unknown_slot", reason, fix)


def _cycles(slots: Sequence[Mapping[str, Any]]) -> Found:
    needs = {_text(each, "name"): [*list_in(each.get("depends_on"))] for each in slots}

    def path_back(start: str) -> list[str]:
        waiting: list[list[str]] = [[start]]
        seen: set[str] = set()
        while waiting:
            path = waiting.pop()
            for each in needs.get(path[-1], ()):
                if each == start and start:
                    return [*path, start]
                if isinstance(each, str) and each not in seen:
                    seen.add(each)
                    waiting.append([*path, each])
        return []

    for index, slot in enumerate(slots):
        if path := path_back(_text(slot, "name")):
            reason = f"It depends on itself: {' -> '.join(path)}."
            where = ("slots", index, "depends_on")
            yield rule_error(where, None, "cycle", reason, "Take one of these out.")


def _missing_texts(slots: Sequence[Mapping[str, Any]], given: Mapping[str, Any]) -> Found:
    languages = [each for each in list_in(given.get("languages", ("en",))) if each in ("en", "zh")]
    for index, slot in enumerate(slots):
        question = slot.get("question")
        if isinstance(question, str):
            question = {ANY: question}
        if not isinstance(question, Mapping) or (ANY in question and len(languages) < _SEVERAL):
            continue
        if lacking := [each for each in languages if each not in question]:
            named = ", ".join(lacking)
            reason = f"It has no text in the language {named}."
            fix = "Write one for each: {en: ..., zh: ...}; or take a language out of languages."
            yield rule_error(("slots", index, "question"), None, "no_text", reason, fix)


_SEVERAL = 2


def _command_rules(
    command: Mapping[str, Any], where: Where, names: Sequence[str], given: Mapping[str, Any]
) -> Found:
    yield from _unknown_slots(command, where, ("needs", "takes"), names)
    own = [fields_of(each) for each in list_in(given.get("actions"))]
    types = [*(each.get("type") for each in own), *(each.type for each in BUILT_IN)]
    wanted = command.get("action")
    if isinstance(wanted, str) and wanted not in types:
        fix = did_you_mean(wanted, map(str, types), "Declare it under actions.")
        reason = f"There is no action '{wanted}'."
        yield rule_error((*where, "action"), wanted, "unknown_action", reason, fix)
    for status, name in fields_of(command.get("refusals")).items():
        if name not in names:
            fix = did_you_mean(str(name), names, "Declare it under slots.")
            reason = f"There is no slot '{name}'."
            yield rule_error((*where, "refusals", status), name, "unknown_slot", reason, fix)
    if command.get("refusals") and command.get("each") is not None:
        # The items before would be done again, under the plan of the new value.
        reason = "A command with `each` cannot ask for a value again."
        yield rule_error((*where, "refusals"), None, "refusals_of_each", reason, "Leave it out.")
    each, needs = command.get("each"), [*list_in(command.get("needs"))]
    if isinstance(each, str):
        of_type = {
            _text(each, "name"): each for each in map(fields_of, list_in(given.get("slots")))
        }
        if each not in needs or of_type.get(each, {}).get("type") != "list":
            reason = "This is not a slot of type list that the command needs."
            fix = "Name a slot of type list from needs."
            yield rule_error((*where, "each"), each, "no_list", reason, fix)
    yield from _parameter_rules(command, where, own)


def _parameter_rules(
    command: Mapping[str, Any], where: Where, own: Sequence[Mapping[str, Any]]
) -> Found:
    parameters = command.get("parameters")
    known = [*list_in(command.get("needs")), *list_in(command.get("takes")), "item"]
    for path, name in _placeholders(parameters, ()):
        if name not in known:
            fix = did_you_mean(name, map(str, known), "Put it into needs or takes.")
            reason = f"The command has no slot '{name}'."
            yield rule_error((*where, "parameters", *path), name, "unknown_slot", reason, fix)
    built_in = next((each for each in BUILT_IN if each.type == command.get("action")), None)
    declared: Any = built_in or next(
        (each for each in own if each.get("type") == command.get("action")), None
    )
    if declared is None or (built_in is None and parameters is None):
        return
    present = fields_of(parameters)
    for each in map(fields_of, list_in(fields_of(declared).get("parameters"))):
        name = each.get("name")
        if each.get("required", True) and name not in present:
            reason = f"The action needs the parameter '{name}'."
            yield rule_error(
                (*where, "parameters"), None, "missing_parameter", reason, f"Add {name}: ..."
            )


def _placeholders(value: Any, where: Where) -> Iterator[tuple[Where, str]]:
    if isinstance(value, str):
        for found in PLACEHOLDER.finditer(value):
            yield where, found[1]
    elif isinstance(value, Mapping):
        for name, inner in cast("Mapping[str, Any]", value).items():
            yield from _placeholders(inner, (*where, name))
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(cast("Sequence[Any]", value)):
            yield from _placeholders(inner, (*where, index))


def _action_rules(action: Mapping[str, Any], where: Where) -> Found:
    kind = _text(action, "type")
    if kind in {each.type for each in BUILT_IN}:
        reason = "This is the name of a built-in action."
        yield rule_error((*where, "type"), kind, "duplicate_name", reason, "Give it another name.")
    elif action.get("run") is None:
        fix = "Give run a function, in a file as module:function."
        yield rule_error(where, None, "no_function", "The action has no function.", fix)


def _text(part: Mapping[str, Any], field: str) -> str:
    """A field that is text; empty if it is not, which its own check reports."""
    value = part.get(field)
    return value if isinstance(value, str) else ""
