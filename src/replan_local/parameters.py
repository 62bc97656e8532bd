"""Make a command of the parameters of a step, each of which is a part of one."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from pydantic import JsonValue, ValidationError

from replan_local.commands import (
    Calculate,
    Command,
    Describe,
    Figures,
    Key,
    Measure,
    Report,
    Search,
    Sql,
)
from replan_local.grammar import Reader, conditions, key, listed, measure
from replan_local.refusals import CannotAnswerError, did_you_mean

PARAMETERS: Mapping[str, Sequence[str]] = {
    "data_analyst": ("sql", "table", "measures", "by", "where", "top", "bottom"),
    "librarian": ("query", "file", "top"),
    "calculator": ("expression",),
    "writer": ("title", "chart"),
}
"""What each specialist takes."""

_Part = TypeVar("_Part")


def command_of(specialist: str, given: Mapping[str, JsonValue]) -> Command:
    known = PARAMETERS[specialist]
    for name in given:
        if name not in known:
            message = f"No parameter '{name}'. There are: {', '.join(known)}."
            raise CannotAnswerError(f"{message}{did_you_mean(name, known)}")
    try:
        return _MAKERS[specialist](given)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"]))
        message = f"The parameter '{name}' cannot be {first['input']!r}: {first['msg']}."
        raise CannotAnswerError(message) from None


def _query(given: Mapping[str, JsonValue]) -> Command:
    if "sql" in given and len(given) > 1:
        raise CannotAnswerError("The parameter 'sql' allows no other: the query says everything.")
    if "sql" in given:
        return Sql.model_validate(given, strict=True)
    if set(given) == {"table"}:
        return Describe.model_validate(given, strict=True)
    parts = {
        "measures": _parts(given, "measures", _measures) or (Measure(aggregate="count"),),
        "by": _parts(given, "by", _keys),
        "where": _parts(given, "where", conditions),
    }
    return Figures.model_validate({**given, **parts}, strict=True)


def _parts(
    given: Mapping[str, JsonValue], name: str, rule: Callable[[Reader], tuple[_Part, ...]]
) -> tuple[_Part, ...]:
    value = given.get(name, [])
    texts = value if isinstance(value, list) else [value]
    if not all(isinstance(each, str) for each in texts):
        message = f"The parameter '{name}' must be a text or a list of texts, not {value!r}."
        raise CannotAnswerError(message)
    try:
        return tuple(part for text in texts for part in Reader(str(text)).whole(rule))
    except CannotAnswerError as refusal:
        raise CannotAnswerError(f"The parameter '{name}': {refusal}") from None


def _measures(reader: Reader) -> tuple[Measure, ...]:
    return listed(reader, measure)


def _keys(reader: Reader) -> tuple[Key, ...]:
    return listed(reader, key)


_MAKERS: Mapping[str, Callable[[Mapping[str, JsonValue]], Command]] = {
    "data_analyst": _query,
    "librarian": lambda given: Search.model_validate(given, strict=True),
    "calculator": lambda given: Calculate.model_validate(given, strict=True),
    "writer": lambda given: Report.model_validate(given, strict=True),
}
