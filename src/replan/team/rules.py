"""What must hold between the fields of a team file, whatever else is wrong with it."""

from collections.abc import Iterator
from typing import Any, cast

from replan.errors import FieldMistake
from replan.graph.ways import FIELDS_OF_WAYS, WAYS
from replan.team.keys import MEND, keys_in
from replan.team.mistakes import complain, known_fields
from replan.team.yaml_source import Where, YamlSource

_WAYS = {**WAYS, "local": ()}
_ONE = "Give exactly one of chat_model, invokable (or streamable), run, local."


def broken_rules(source: YamlSource) -> Iterator[FieldMistake]:
    """Find keys that stand in the file, and specialists that cannot be."""
    for where in keys_in(source.value):
        yield complain(source, where, "literal_secret", "This looks like a key.", MEND)
    seen: dict[str, int] = {}
    for index, specialist in _specialists(source.value):
        where = ("specialists", index)
        yield from _same_name(source, where, specialist, seen)
        # A misspelt field may be the way that seems to be missing.
        if specialist.keys() <= set(known_fields(where)):
            yield from _ways(source, where, specialist)
            yield from _identity(source, where, specialist)


def _specialists(value: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    given: Any = cast("dict[str, Any]", value).get("specialists")
    if not isinstance(given, list):
        return
    for index, specialist in enumerate(cast("list[Any]", given)):
        if isinstance(specialist, dict):
            yield index, cast("dict[str, Any]", specialist)


def _same_name(
    source: YamlSource, where: Where, specialist: dict[str, Any], seen: dict[str, int]
) -> Iterator[FieldMistake]:
    field = "name" if "name" in specialist else "local"
    name = specialist.get(field)
    if not isinstance(name, str):
        return
    first = seen.setdefault(name.casefold(), cast("int", where[-1]))
    if first != where[-1]:
        reason = f"specialists[{first}] has this name already."
        mend = "Give each a name of its own."
        yield complain(source, (*where, field), "duplicate_specialist", reason, mend)


def _ways(source: YamlSource, where: Where, specialist: dict[str, Any]) -> Iterator[FieldMistake]:
    given = [way for way in _WAYS if way in specialist]
    if not given:
        yield complain(source, where, "no_way", "It has no way to work.", _ONE)
        return
    way, fitting = given[0], _WAYS[given[0]]
    for other in given[1:]:
        if other not in fitting:
            reason = f"It has {way} already as its way to work."
            yield complain(source, (*where, other), "two_ways", reason, _ONE)
    for name in specialist:
        if name in FIELDS_OF_WAYS and name not in fitting:
            reason = f"A specialist with {way} does not use this."
            yield complain(source, (*where, name), "unused_field", reason, "Leave it out.")


def _identity(
    source: YamlSource, where: Where, specialist: dict[str, Any]
) -> Iterator[FieldMistake]:
    if "local" in specialist:
        return
    needed = {
        "name": "A specialist needs a name.",
        "intended_use": "A specialist needs an intended_use: the planner chooses by it.",
    }
    for name, reason in needed.items():
        if name not in specialist:
            place = (*where, name)
            yield complain(source, place, "missing", reason, f"Add {name}: ...")
