"""Read a question about a table from the parameters of a step."""

from collections.abc import Mapping

from pydantic import JsonValue

from replan.specialists.local.names import ColumnNames
from replan.specialists.local.question import LABELS, Aggregate, Filter, Measure, Question
from replan.specialists.local.settling import default_aggregate
from replan.specialists.local.tables import CannotAnswerError, Column, did_you_mean
from replan.specialists.local.wording import AGGREGATES

PARAMETERS = ("file", "sql", "group_by", "measure", "aggregate", "where", "top")
"""The parameters that a step may give."""

_QUESTION = frozenset(("group_by", "measure", "aggregate", "where", "top"))


def check_parameters(parameters: Mapping[str, JsonValue]) -> None:
    """Refuse a parameter that is a misspelt one of ours; others are somebody else's business.

    Raises:
        CannotAnswerError: A name is nearly one that is understood.
    """
    for name in parameters:
        hint = "" if name in PARAMETERS else did_you_mean(name, PARAMETERS)
        if hint:
            message = f"No parameter '{name}'. There are: {', '.join(PARAMETERS)}.{hint}"
            raise CannotAnswerError(message)


def asks_by_parameters(parameters: Mapping[str, JsonValue]) -> bool:
    """Whether the parameters, and not the text, say what is asked."""
    return not _QUESTION.isdisjoint(parameters)


def given_names(parameters: Mapping[str, JsonValue], name: str) -> tuple[str, ...]:
    """A parameter that holds one name or several."""
    value = parameters.get(name)
    if value is None:
        return ()
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    if isinstance(value, list):
        return tuple(str(part) for part in value)
    message = f"The parameter '{name}' must be a name or a list of names, not {value!r}."
    raise CannotAnswerError(message)


def given_question(parameters: Mapping[str, JsonValue], names: ColumnNames) -> Question:
    """Read the question.

    Raises:
        CannotAnswerError: A column or an aggregate is unknown, or a value has the wrong form.
    """
    filters, condition = _where(parameters.get("where"), names)
    return Question(
        measures=_measures(parameters, names),
        groups=tuple(names.named(name).name for name in given_names(parameters, "group_by")),
        filters=filters,
        condition=condition,
        top=_top(parameters.get("top")),
    )


def _measures(parameters: Mapping[str, JsonValue], names: ColumnNames) -> tuple[Measure, ...]:
    kinds: list[Aggregate] = [_aggregate(name) for name in given_names(parameters, "aggregate")]
    columns = [names.named(name) for name in given_names(parameters, "measure")]
    if not columns:
        if any(kind != "count" for kind in kinds):
            message = f"The aggregate '{kinds[0]}' needs the parameter 'measure': a column."
            raise CannotAnswerError(message)
        return (Measure(aggregate="count"),)
    return tuple(
        _measure(kind, column, names) for column in columns for kind in kinds or _usual(column)
    )


def _usual(column: Column) -> list[Aggregate]:
    return [default_aggregate(column)]


def _measure(kind: Aggregate, column: Column, names: ColumnNames) -> Measure:
    if kind in ("sum", "avg", "median") and column.kind != "number":
        message = f"The column {column.name} of {names.table} has no numbers for: {LABELS[kind]}."
        raise CannotAnswerError(message)
    return Measure(aggregate=kind, column=column.name)


def _aggregate(name: str) -> Aggregate:
    found = AGGREGATES.get(name.casefold())
    if found is None:
        message = f"No aggregate '{name}'.{did_you_mean(name, AGGREGATES)}"
        raise CannotAnswerError(message)
    return found


def _where(value: JsonValue, names: ColumnNames) -> tuple[tuple[Filter, ...], str]:
    match value:
        case None:
            return (), ""
        case str():
            return (), value
        case dict():
            return tuple(_equals(name, wanted, names) for name, wanted in value.items()), ""
        case _:
            message = "The parameter 'where' must be a condition in SQL or columns with values."
            raise CannotAnswerError(message)


def _equals(name: str, wanted: JsonValue, names: ColumnNames) -> Filter:
    column = names.named(name).name
    if isinstance(wanted, int | float) and not isinstance(wanted, bool):
        return Filter(column=column, value=wanted)
    return Filter(column=column, value=str(wanted))


def _top(value: JsonValue) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        message = f"The parameter 'top' must be a whole number from 1, not {value!r}."
        raise CannotAnswerError(message)
    return value
