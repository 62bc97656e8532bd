"""Rules between the parts of a job spec, in Python and in a file."""

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from pydantic_core import InitErrorDetails

from replan.base.declared.part import did_you_mean, fields_of, list_in, rule_error
from replan.jobs.spec.action_spec import BUILT_IN
from replan.jobs.spec.slot import ANY

PLACEHOLDER = re.compile(r"\{([a-z][a-z0-9_]*)\}")
"""How the value of a slot is named in a parameter of an action."""

Where = tuple[str | int, ...]
Found = Iterator[InitErrorDetails]
Fields = Mapping[str, Any]

_NUMBERS = ("integer", "number")
_FOR_TYPES = (
    ("choices", ("text", "list"), "A {} has no choices.", "Make it a slot of type text or list."),
    ("pattern", ("text",), "A {} has no pattern.", "Make it a slot of type text."),
    ("minimum", _NUMBERS, "A slot of type {} has no bound.", "Make it an integer or a number."),
    ("maximum", _NUMBERS, "A slot of type {} has no bound.", "Make it an integer or a number."),
)
"""Fields of slots of some types only: the types, and what is wrong elsewhere."""


def broken_rules_of(spec: Fields) -> Found:
    """Find mistakes between the parts, in addition to mistakes in each."""
    slots, commands, actions = (
        [fields_of(item) for item in list_in(spec.get(name))]
        for name in ("slots", "commands", "actions")
    )
    types = {_text(slot, "name"): slot.get("type", "text") for slot in slots}
    awaits = {_text(slot, "name"): [*list_in(slot.get("depends_on"))] for slot in slots}
    languages = [
        language for language in list_in(spec.get("languages", ("en",))) if language in ("en", "zh")
    ]
    yield from _names_twice("slots", slots)
    yield from _names_twice("commands", commands)
    for index, slot in enumerate(slots):
        where = ("slots", index)
        yield from _slot_rules(slot, where, types)
        if path := _path_back(_text(slot, "name"), awaits):
            reason = f"It depends on itself: {' -> '.join(path)}."
            at = (*where, "depends_on")
            yield rule_error(at, None, "cycle", reason, "Take one of these out.")
        yield from _missing_texts(slot, where, languages)
    for index, command in enumerate(commands):
        yield from _command_rules(command, ("commands", index), types, actions)
    for index, action in enumerate(actions):
        yield from _action_rules(action, ("actions", index))


def _names_twice(where: str, parts: Sequence[Fields]) -> Found:
    names = [part.get("name") for part in parts]
    for index, name in enumerate(names):
        if isinstance(name, str) and (first := names.index(name)) != index:
            reason = f"{where}[{first}] already has this name."
            yield rule_error((where, index, "name"), name, "duplicate_name", reason, "Rename one.")


def _unknown(
    where: Where, name: Any, known: Iterable[Any], reason: str, fix: str, code: str = "unknown_slot"
) -> Found:
    """What is wrong with a name, if it is none of those that are known."""
    names = [*known]
    if name not in names:
        fix = did_you_mean(str(name), map(str, names), fix)
        yield rule_error(where, name, code, reason.format(name), fix)


def _unknown_slots(part: Fields, where: Where, fields: Sequence[str], names: Fields) -> Found:
    for field in fields:
        for index, name in enumerate(list_in(part.get(field))):
            yield from _unknown((*where, field, index), name, names, _NO_SLOT, _UNDER_SLOTS)


_NO_SLOT, _UNDER_SLOTS = "There is no slot '{}'.", "Declare it under slots."


def _slot_rules(slot: Fields, where: Where, types: Fields) -> Found:
    yield from _unknown_slots(slot, where, ("depends_on",), types)
    if inspect.iscoroutinefunction(slot.get("check")):
        reason, fix = "A check is not asynchronous.", "Write it without async."
        yield rule_error((*where, "check"), None, "asynchronous", reason, fix)
    kind = slot.get("type", "text")
    for field, kinds, reason, fix in _FOR_TYPES:
        value = slot.get(field)
        if kind not in kinds and value is not None and value not in ({}, [], ()):
            shown = value if kinds is _NUMBERS else None
            yield rule_error((*where, field), shown, "unused_field", reason.format(kind), fix)


def _path_back(start: str, awaits: Mapping[str, Sequence[Any]]) -> list[str]:
    """The slots over which one depends on itself; empty if it does not."""
    paths, seen = [[start]], set[str]()
    for path in paths:
        for awaited in awaits.get(path[-1], ()):
            if awaited == start and start:
                return [*path, start]
            if isinstance(awaited, str) and awaited not in seen:
                seen.add(awaited)
                paths.append([*path, awaited])
    return []


def _missing_texts(slot: Fields, where: Where, languages: Sequence[str]) -> Found:
    question = slot.get("question")
    texts = {ANY: question} if isinstance(question, str) else question
    if not isinstance(texts, Mapping) or (ANY in texts and len(languages) <= 1):
        return
    if lacking := [language for language in languages if language not in texts]:
        reason = f"It has no text in the language {', '.join(lacking)}."
        fix = "Write one for each: {en: ..., zh: ...}; or take a language out of languages."
        yield rule_error((*where, "question"), None, "no_text", reason, fix)


def _command_rules(
    command: Fields, where: Where, types: Fields, actions: Sequence[Fields]
) -> Found:
    yield from _unknown_slots(command, where, ("needs", "takes"), types)
    known = [*actions, *map(fields_of, BUILT_IN)]
    action, each = command.get("action"), command.get("each")
    if isinstance(action, str):
        at, names = (*where, "action"), [one.get("type") for one in known]
        reason, fix = "There is no action '{}'.", "Declare it under actions."
        yield from _unknown(at, action, names, reason, fix, "unknown_action")
    for status, name in fields_of(command.get("refusals")).items():
        yield from _unknown((*where, "refusals", status), name, types, _NO_SLOT, _UNDER_SLOTS)
    if command.get("refusals") and each is not None:
        # The items before would be done again, under the plan of the new value.
        reason = "A command with `each` cannot ask for a value again."
        yield rule_error((*where, "refusals"), None, "refusals_of_each", reason, "Leave it out.")
    needs = list_in(command.get("needs"))
    if isinstance(each, str) and (each not in needs or types.get(each) != "list"):
        reason = "This is not a slot of type list that the command needs."
        fix = "Name a slot of type list from needs."
        yield rule_error((*where, "each"), each, "no_list", reason, fix)
    taken = [*needs, *list_in(command.get("takes")), "item"]
    declared = next((one for one in known if one.get("type") == action), dict[str, Any]())
    is_own = declared in actions
    yield from _parameter_rules(command, (*where, "parameters"), taken, declared, is_own=is_own)


def _parameter_rules(
    command: Fields, at: Where, taken: Sequence[str], action: Fields, *, is_own: bool
) -> Found:
    parameters = command.get("parameters")
    for path, name in _placeholders(parameters, ()):
        reason, fix = "The command has no slot '{}'.", "Put it into needs or takes."
        yield from _unknown((*at, *path), name, taken, reason, fix)
    # Without parameters, an action of one's own gets the slots by their names.
    declared = () if is_own and parameters is None else list_in(action.get("parameters"))
    for one in map(fields_of, declared):
        name = one.get("name")
        if one.get("required", True) and name not in fields_of(parameters):
            reason = f"The action needs the parameter '{name}'."
            yield rule_error(at, None, "missing_parameter", reason, f"Add {name}: ...")


def _placeholders(value: Any, where: Where) -> Iterator[tuple[Where, str]]:
    if isinstance(value, str):
        for found in PLACEHOLDER.finditer(value):
            yield where, found[1]
    inner: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, Mapping):
        inner = cast("Fields", value).items()
    elif isinstance(value, list | tuple):
        inner = enumerate(cast("Sequence[Any]", value))
    for name, each in inner:
        yield from _placeholders(each, (*where, name))


def _action_rules(action: Fields, where: Where) -> Found:
    kind = _text(action, "type")
    if kind in {action.type for action in BUILT_IN}:
        reason = "This is the name of a built-in action."
        yield rule_error((*where, "type"), kind, "duplicate_name", reason, "Give it another name.")
    elif action.get("run") is None:
        fix = "Give run a function, in a file as module:function."
        yield rule_error(where, None, "no_function", "The action has no function.", fix)


def _text(part: Fields, field: str) -> str:
    """A field that is text; empty if it is not, which its own check reports."""
    value = part.get(field)
    return value if isinstance(value, str) else ""
