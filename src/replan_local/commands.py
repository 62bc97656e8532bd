"""What a command means, as values; a sentence, parameters and a tool's call all end here."""

from typing import Annotated, ClassVar

from pydantic import Field

from replan.plan.model import Value

Count = Annotated[int, Field(ge=1)]


class Part(Value):
    """A part of a sentence: a number to compute, a key to group by, or a condition."""

    said: str
    sql: str
    is_period: bool = False

    def __str__(self) -> str:
        return self.said


class _Command(Value):
    """What one specialist does; each kind of command has one."""

    doer: ClassVar[str] = "data_analyst"

    steps: tuple[int, ...] = ()  # the earlier steps whose results it names


class Figures(_Command):
    """Figures from one table; all conditions must hold."""

    table: str
    measures: tuple[Part, ...] = (Part(said="count", sql="count(*)"),)
    by: tuple[Part, ...] = ()
    where: tuple[Part, ...] = ()
    # How many groups are shown, the largest first number first; all by default.
    top: Count | None = None
    bottom: Count | None = None  # the same with the smallest first

    def __str__(self) -> str:
        words = ", ".join(map(str, self.measures))
        words += f" by {' and '.join(map(str, self.by))}" if self.by else ""
        words += f", top {self.top}" if self.top else ""
        return words + (f", bottom {self.bottom}" if self.bottom else "")


class ListTables(_Command):
    """The tables of the folder, with their columns."""


class Sql(_Command):
    """One SELECT; it has no sentence, only a parameter."""

    sql: str


class Compare(_Command):
    """The tables of two earlier steps side by side."""

    by: str


class Search(_Command):
    """Passages of the notes with the words of a text."""

    doer: ClassVar[str] = "librarian"

    query: str
    file: str = ""
    top: Count = 3


class Calculate(_Command):
    """An expression of numbers and of figures of earlier steps."""

    doer: ClassVar[str] = "calculator"

    expression: str


class Report(_Command):
    """A report of all results that the step comes after."""

    doer: ClassVar[str] = "writer"

    title: str = ""


Query = Figures | ListTables | Sql | Compare
Command = Query | Search | Calculate | Report
