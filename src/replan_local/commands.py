"""What a command means, as values; a sentence, parameters and a tool's call all end here."""

from typing import Annotated, ClassVar

from pydantic import Field

from replan.plan.model import Value
from replan.state.team import SpecialistCard

Count = Annotated[int, Field(ge=1)]


CARDS = (
    SpecialistCard(
        name="data_analyst",
        intended_use="Exact figures from CSV, Parquet and JSON files of the folder; a step is one "
        "command, or has the parameter sql.",
        capabilities=(
            "list tables",
            "total COLUMN [by COLUMN] from TABLE [where COLUMN is VALUE] [top N]",
            "compare step N and step M by COLUMN",
        ),
    ),
    SpecialistCard(
        name="librarian",
        intended_use="Passages in the notes of the folder (txt, md, rst, html); a step is one "
        "command.",
        capabilities=('search notes for "WORDS" [in FILE] [top N]',),
    ),
    SpecialistCard(
        name="calculator",
        intended_use="Exact arithmetic on numbers and on figures of earlier steps; a step is one "
        "command.",
        capabilities=("calculate EXPRESSION", 'calculate step 1["total cost"]["Berlin"] / step 2'),
    ),
    SpecialistCard(
        name="writer",
        intended_use="One report file of the results of earlier steps; a step is one command.",
        capabilities=('write report ["TITLE"]',),
    ),
)
"""What each specialist says of itself, with the forms of its commands."""


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
