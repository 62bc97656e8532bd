"""Read a question about a table from the parameters of a step."""

from collections.abc import Mapping

from pydantic import JsonValue

from replan_local.analyst.names import ColumnNames
from replan_local.analyst.question import LABELS, Aggregate, Filter, Measure, Question
from replan_local.analyst.settling import default_aggregate
from replan_local.analyst.tables import Column
from replan_local.analyst.wording import AGGREGATES
from replan_local.parameters import given_count, given_names
from replan_local.refusals import CannotAnswerError, did_you_mean

PARAMETERS = ("file", "sql", "group_by", "measure", "aggregate", "where", "top")
"""The parameters that a step may give."""

_QUESTION = frozenset(("group_by", "measure", "aggregate", "where", "top"))


def asks_by_parameters(parameters: Mapping[str, JsonValue]) -> bool:
    """Whether the parameters, and not the text, say what is asked."""
    return not _QUESTION.isdisjoint(parameters)


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
        top=given_count(parameters, "top"),
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
            equal = [
                _equals(name, each, names)
                for name, wanted in value.items()
                for each in (wanted if isinstance(wanted, list) else [wanted])
            ]
            return tuple(equal), ""
        case _:
            message = "The parameter 'where' must be a condition in SQL or columns with values."
            raise CannotAnswerError(message)


def _equals(name: str, wanted: JsonValue, names: ColumnNames) -> Filter:
    column = names.named(name).name
    if isinstance(wanted, int | float) and not isinstance(wanted, bool):
        return Filter(column=column, value=wanted)
    return Filter(column=column, value=str(wanted))
