"""What is asked of a table, as a value: measures, groups, period, filters, order."""

from typing import Literal

from replan.plan.model import Value

Aggregate = Literal["sum", "avg", "median", "min", "max", "count", "distinct"]
Period = Literal["", "day", "week", "month", "quarter", "year"]
Operator = Literal["=", "!=", "<", ">", "<=", ">="]

LABELS: dict[Aggregate, str] = {
    "sum": "total",
    "avg": "average",
    "median": "median",
    "min": "minimum",
    "max": "maximum",
    "count": "count of",
    "distinct": "distinct",
}


class Measure(Value):
    """A number to compute; without a column, the rows are counted."""

    aggregate: Aggregate
    column: str = ""

    @property
    def label(self) -> str:
        """The name of the column in the answer."""
        return f"{LABELS[self.aggregate]} {self.column}" if self.column else "rows"

    @property
    def adds_up(self) -> bool:
        """Whether the numbers of the groups make a whole, so that a share has a meaning."""
        return self.aggregate in ("sum", "count")


class Filter(Value):
    """A condition on a column; `part` compares the year or the month of a date."""

    column: str
    operator: Operator = "="
    value: str | int | float
    part: Literal["", "year", "month"] = ""

    def __str__(self) -> str:
        name = f"{self.part} of {self.column}" if self.part else self.column
        return f"{name} {self.operator} {self.value}"


class Question(Value):
    """A question to one table.

    Attributes:
        measures: What to compute, the first one gives the order.
        groups: The columns to group by.
        period: Groups by this part of `period_column` too.
        condition: A condition in SQL, as a parameter may give it.
        series: Values of one column that become a column each.
        top: How many groups are shown.
        ascending: Whether the smallest come first.
        guessed: What was guessed, in words; empty if nothing was.
    """

    measures: tuple[Measure, ...]
    groups: tuple[str, ...] = ()
    period: Period = ""
    period_column: str = ""
    filters: tuple[Filter, ...] = ()
    condition: str = ""
    series: tuple[Filter, ...] = ()
    top: int | None = None
    ascending: bool = False
    guessed: tuple[str, ...] = ()

    @property
    def conditions(self) -> tuple[tuple[Filter, ...], ...]:
        """The filters, all of which must hold; values that one column should equal are a choice."""
        choices: dict[object, list[Filter]] = {}
        for place, each in enumerate(self.filters):
            key = (each.column, each.part) if each.operator == "=" else place
            choices.setdefault(key, []).append(each)
        return tuple(tuple(choice) for choice in choices.values())

    @property
    def conditions_in_words(self) -> tuple[str, ...]:
        """Each condition as the answer tells it."""
        return tuple(
            " or ".join([str(first), *(str(each.value) for each in others)])
            for first, *others in self.conditions
        )

    @property
    def key_names(self) -> tuple[str, ...]:
        """The names of the columns that tell the groups apart."""
        return ((self.period,) if self.period else ()) + self.groups

    @property
    def title(self) -> str:
        """The question in words."""
        measures = ", ".join(measure.label for measure in self.measures)
        words = f"{measures} by {' and '.join(self.key_names)}" if self.key_names else measures
        if self.series:
            words += f": {' and '.join(str(each.value) for each in self.series)}"
        if self.top:
            words += f", {'bottom' if self.ascending else 'top'} {self.top}"
        return words[0].upper() + words[1:]
