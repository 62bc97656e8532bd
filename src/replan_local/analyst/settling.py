"""Settle what a sentence leaves open: what is grouped, what is added up, which date is meant."""

import re
from dataclasses import dataclass, field

from replan_local.analyst.names import ColumnNames, one_of
from replan_local.analyst.question import Aggregate, Filter, Measure, Period, Question
from replan_local.analyst.tables import Column
from replan_local.refusals import CannotAnswerError

_IDENTIFIER = re.compile(r"(?:^|_)(?:id|key|code|no|number|zip|year)$", re.IGNORECASE)


@dataclass(kw_only=True)
class Found:
    """What a sentence said, word for word.

    Attributes:
        mentioned: Columns named outside of a "by".
        order: `highest` or `lowest`, if the sentence asks for an order.
        unexplained: Words that are neither columns nor values nor known words.
        guessed: What was read with less than certainty.
    """

    groups: list[Column] = field(default_factory=list[Column])
    measures: list[Measure] = field(default_factory=list[Measure])
    mentioned: list[Column] = field(default_factory=list[Column])
    filters: list[Filter] = field(default_factory=list[Filter])
    series: list[Filter] = field(default_factory=list[Filter])
    aggregates: list[Aggregate] = field(default_factory=list[Aggregate])
    period: Period = ""
    top: int | None = None
    order: str = ""
    unexplained: list[str] = field(default_factory=list[str])
    guessed: list[str] = field(default_factory=list[str])


def settle(found: Found, names: ColumnNames) -> Question:
    """Make a question of what was found.

    Raises:
        CannotAnswerError: A column that is needed is not there, or could be several.
    """
    _settle_groups(found)
    _settle_measures(found, names)
    _settle_extremes(found)
    return Question(
        measures=tuple(dict.fromkeys(found.measures)),
        groups=tuple(dict.fromkeys(column.name for column in found.groups)),
        period=found.period,
        period_column=_period_column(found, names),
        filters=tuple(found.filters),
        series=tuple(found.series),
        top=found.top,
        ascending=found.order == "lowest",
        guessed=tuple(found.guessed),
    )


def default_aggregate(column: Column) -> Aggregate:
    """Amounts are added up, everything else is counted."""
    return "count" if column.kind != "number" or is_key(column) else "sum"


def is_key(column: Column) -> bool:
    """Whether a number only names something, so that adding it up has no meaning."""
    return _IDENTIFIER.search(column.name) is not None


def _settle_groups(found: Found) -> None:
    texts = [column for column in found.mentioned if column.kind == "text"]
    counted = any(kind in ("count", "distinct") for kind in found.aggregates)
    if found.order and texts and all(column.kind == "number" for column in found.groups):
        # "Top 5 products by revenue" groups by product and orders by revenue.
        kinds = found.aggregates or ["sum"]
        found.measures += [
            Measure(aggregate=kind, column=column.name) for column in found.groups for kind in kinds
        ]
        found.groups = texts[:1]
    elif not found.groups and not found.period and texts and not counted:
        found.groups = texts


def _settle_measures(found: Found, names: ColumnNames) -> None:
    counts = bool(found.aggregates) and set(found.aggregates) <= {"count", "distinct"}
    if found.unexplained and (found.measures or counts):
        found.guessed.append(f"'{' '.join(found.unexplained)}' was not understood and left out")
    if found.measures:
        return
    if counts:
        found.measures = [Measure(aggregate="count")]
    elif found.unexplained:
        raise names.unknown(" ".join(found.unexplained), "number")
    elif found.aggregates:
        _refuse_text(found, names)
        numbers = [column for column in names.of_kind("number") if not is_key(column)]
        column = one_of(numbers, f"a column for the {found.aggregates[0]}", names.table)
        found.measures = [Measure(aggregate=kind, column=column.name) for kind in found.aggregates]
        found.guessed.append(f"{column.name}, the only column with amounts")
    else:
        found.measures = [Measure(aggregate="count")]
        found.guessed.append("the rows are counted, for no number is named")


def _refuse_text(found: Found, names: ColumnNames) -> None:
    """Refuse to add up a column that is named and holds text, where there are no numbers at all."""
    texts = [column.name for column in found.mentioned if column.kind == "text"]
    if texts and not names.of_kind("number"):
        message = f"The column {texts[0]} in {names.table} holds text, not numbers."
        raise CannotAnswerError(message)


def _settle_extremes(found: Found) -> None:
    """Read "the highest price" as the maximum where there is nothing to put in order."""
    if not found.order or found.groups or found.period or found.aggregates:
        return
    extreme: Aggregate = "min" if found.order == "lowest" else "max"
    found.measures = [
        Measure(aggregate=extreme, column=measure.column) if measure.aggregate == "sum" else measure
        for measure in found.measures
    ]


def _period_column(found: Found, names: ColumnNames) -> str:
    if not found.period:
        return ""
    dates = [column for column in found.mentioned if column.kind == "date"]
    dates = dates or list(names.of_kind("date"))
    return one_of(dates, f"a date to tell the {found.period}", names.table).name
