"""What a command means, as values; a sentence, parameters and a tool's call all end here."""

import tomllib
from pathlib import Path
from typing import ClassVar

from pydantic import Field

from replan.base.values import Value
from replan.state.team import SpecialistCard

_CARDS = tomllib.loads(Path(__file__).with_name("cards.toml").read_text(encoding="utf-8"))
CARDS = tuple(map(SpecialistCard.model_validate, _CARDS["specialists"]))
"""What each specialist says of itself, with the forms of its commands."""


class Part(Value):
    """A part of a sentence: a number to compute, a key to group by, or a condition."""

    said: str
    sql: str

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
    # How many groups are shown, the largest first figure first.
    top: int | None = Field(default=None, ge=1)

    def __str__(self) -> str:
        words = ", ".join(map(str, self.measures))
        words += f" by {' and '.join(map(str, self.by))}" if self.by else ""
        return words + (f", top {self.top}" if self.top else "")


class Query(_Command):
    """One SELECT on the tables; without one, a list of them."""

    sql: str = ""


class Compare(_Command):
    """The tables of two earlier steps side by side."""

    by: str


class Search(_Command):
    """Passages of the notes with the words of a text."""

    doer: ClassVar[str] = "librarian"

    query: str
    file: str = ""
    top: int = Field(default=3, ge=1)


class Calculate(_Command):
    """An expression of numbers and of figures of earlier steps."""

    doer: ClassVar[str] = "calculator"

    expression: str


class Report(_Command):
    """A report of all results that the step comes after."""

    doer: ClassVar[str] = "writer"

    title: str = ""


Command = Figures | Query | Compare | Search | Calculate | Report
