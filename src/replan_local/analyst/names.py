"""Match the words of a question to the columns of a table, in any case, number or spelling."""

from collections.abc import Sequence

from replan.plan.model import Value
from replan_local.analyst.tables import Column, Kind
from replan_local.analyst.wording import in_english
from replan_local.refusals import CannotAnswerError, did_you_mean
from replan_local.words import words_of


class Match(Value):
    """A column found in a run of words.

    Attributes:
        column: The column.
        length: How many words stand for it.
        guessed: Whether the words are only a part of the column's name.
    """

    column: Column
    length: int
    guessed: bool = False


class ColumnNames:
    """The columns of one table, to be found by their names."""

    def __init__(self, columns: Sequence[Column], table: str) -> None:
        self.columns = tuple(columns)
        self.table = table
        self._words = {column.name: words_of(column.name) for column in columns}

    def at(self, words: Sequence[str], place: int) -> Match | None:
        """The column whose whole name stands at a place, the longest one first."""
        found = [
            Match(column=column, length=len(name))
            for column in self.columns
            if (name := self._words[column.name]) and list(words[place : place + len(name)]) == name
        ]
        return max(found, key=lambda match: match.length, default=None)

    def partly(self, word: str) -> Match | None:
        """The only column that has a word in its name; none if no column has it.

        Raises:
            CannotAnswerError: Several columns have it.
        """
        found = [column for column in self.columns if word in self._words[column.name]]
        if len(found) > 1:
            names = ", ".join(column.name for column in found)
            message = f"'{word}' could be any of these columns of {self.table}: {names}. Name one."
            raise CannotAnswerError(message)
        return Match(column=found[0], length=1, guessed=True) if found else None

    def named(self, name: str) -> Column:
        """The column with a name, read as in a question.

        Raises:
            CannotAnswerError: There is no such column.
        """
        words = words_of(name)
        match = self.at(words, 0)
        if match is None or match.length != len(words):
            raise self.unknown(name)
        return match.column

    def set_apart(self, text: str) -> str:
        """Put a text into English, the columns in it set apart.

        Only a script without blanks between words needs that.
        """
        kept: list[str] = []
        for column in self.columns:
            if not column.name.isascii() and column.name in text:
                text = text.replace(column.name, f" \x00{len(kept)}\x00 ")
                kept.append(column.name)
        text = in_english(text)
        for number, name in enumerate(kept):
            text = text.replace(f"\x00{number}\x00", name)
        return text

    def unknown(self, name: str, kind: Kind | None = None) -> CannotAnswerError:
        """The refusal of a name, with what there is and the nearest name of a kind."""
        names = [column.name for column in self.columns]
        fitting = [column.name for column in self.columns if kind in (None, column.kind)]
        return CannotAnswerError(
            f"No column '{name}' in {self.table}. Its columns are: {', '.join(names)}."
            + did_you_mean(name, fitting)
        )

    def of_kind(self, kind: str) -> tuple[Column, ...]:
        """All columns of a kind."""
        return tuple(column for column in self.columns if column.kind == kind)


def one_of(columns: Sequence[Column], what: str, table: str) -> Column:
    """The only column there is.

    Raises:
        CannotAnswerError: There is none, or there are several.
    """
    if len(columns) == 1:
        return columns[0]
    names = ", ".join(column.name for column in columns)
    problem = f"has several: {names}. Name one." if columns else "has none."
    message = f"The step needs {what}, and {table} {problem}"
    raise CannotAnswerError(message)
