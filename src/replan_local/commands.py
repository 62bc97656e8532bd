"""What a command means, as values; a sentence, parameters and a tool's call all end here."""

from typing import Annotated, Literal

from pydantic import Field

from replan.plan.model import Value

Aggregate = Literal["count", "total", "average", "median", "smallest", "largest", "distinct"]
"""What is computed of a column; `count` counts the rows and has none."""

Period = Literal["day", "week", "month", "quarter", "year"]
Operator = Literal["is not", "is", ">=", "<=", ">", "<"]
Chart = Literal["", "bar", "line"]
Count = Annotated[int, Field(ge=1)]

FORMS = {
    "data_analyst": (
        "list tables",
        "describe TABLE",
        "total COLUMN [by COLUMN] from TABLE [where COLUMN is VALUE] [top N]",
        "compare step N and step M by COLUMN",
    ),
    "librarian": ('search notes for "WORDS" [in FILE] [top N]',),
    "calculator": ("calculate EXPRESSION", 'calculate step 1["total cost"]["Berlin"] / step 2'),
    "writer": ('write report ["TITLE"] [with bar|line chart]',),
}
"""The commands of each specialist, for people and models."""


class Measure(Value):
    """A number to compute."""

    aggregate: Aggregate
    column: str = ""

    def __str__(self) -> str:
        return f"{self.aggregate} {self.column}".strip()


class Key(Value):
    """A column to group by, or a period of its dates."""

    column: str
    period: Period | None = None

    def __str__(self) -> str:
        return self.period or self.column


class Condition(Value):
    """What a column must be; a text is compared without regard to case."""

    column: str
    operator: Operator
    value: str | int | float

    def __str__(self) -> str:
        return f"{self.column} {self.operator} {self.value}"


class Figures(Value):
    """Figures from one table; all conditions must hold."""

    table: str
    measures: tuple[Measure, ...] = (Measure(aggregate="count"),)
    by: tuple[Key, ...] = ()
    where: tuple[Condition, ...] = ()
    # How many groups are shown, the largest first number first; all by default.
    top: Count | None = None
    bottom: Count | None = None  # the same with the smallest first

    def __str__(self) -> str:
        words = ", ".join(map(str, self.measures))
        words += f" by {' and '.join(map(str, self.by))}" if self.by else ""
        words += f", top {self.top}" if self.top else ""
        return words + (f", bottom {self.bottom}" if self.bottom else "")


class ListTables(Value):
    """The tables of the folder, with their columns."""


class Describe(Value):
    """The columns of a table, their ranges and gaps."""

    table: str


class Sql(Value):
    """One SELECT; it has no sentence, only a parameter."""

    sql: str


class Compare(Value):
    """The tables of two earlier steps side by side."""

    one: Count
    other: Count
    by: str


class Search(Value):
    """Passages of the notes with the words of a text."""

    query: str
    file: str = ""
    top: Count = 3


class Calculate(Value):
    """An expression of numbers and of figures of earlier steps."""

    expression: str


class Report(Value):
    """A report of all results that the step comes after."""

    title: str = ""
    chart: Chart = ""


Query = Figures | ListTables | Describe | Sql | Compare
Command = Query | Search | Calculate | Report
