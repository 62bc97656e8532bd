"""The figures in the results of earlier steps, found by the names of their columns and rows."""

import re
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from replan.plan.model import Value
from replan_local.answer_table import AnswerTable, number, tables_in
from replan_local.refusals import CannotAnswerError, did_you_mean
from replan_local.words import joined, words_of

_STEP = re.compile(r"\b(?:of|in|from)?\s*(?:the\s+)?(?:result\s+of\s+)?step\s+(?P<step>\d+)\b")
_RESULT = re.compile(r"^.* = (?P<value>-?\d+(?:\.\d+)?)(?: %)?(?: \(rounded\))?$", re.MULTILINE)
_EMPTY = frozenset(
    re.findall(
        r"\S+",
        "a all amount and by every figure for from in its number of our result s that the this "
        "value",
    )
)
_ADDS_UP = re.compile(r"^(?:total\b|rows$|count of\b|distinct\b)", re.IGNORECASE)


class Column(Value):
    """A column of figures in a result.

    Attributes:
        step: The step it comes from.
        name: Its name.
        rows: The words that tell each row apart.
        values: The figures; none where a cell is empty.
    """

    step: int
    name: str
    rows: tuple[str, ...]
    values: tuple[str | None, ...]

    @property
    def words(self) -> frozenset[str]:
        """The words of its name."""
        return frozenset(words_of(self.name)) - _EMPTY


class Match(Value):
    """What a name means: some cells of one column."""

    column: Column
    values: tuple[str, ...]
    is_exact: bool

    @property
    def place(self) -> str:
        """Where it stands, for people."""
        return f"{self.column.name} of step {self.column.step}"


class EarlierFigures:
    """Finds figures by name, and keeps a note of each one that it gave."""

    def __init__(self, inputs: Mapping[int, str]) -> None:
        self._columns = [
            column for step, text in sorted(inputs.items()) for column in _columns(step, text)
        ]
        self._last: Column | None = None
        self.notes: list[str] = []
        self.added_up = False

    def one(self, name: str) -> Fraction:
        """The one number that a name means; a column of totals is added up.

        Raises:
            CannotAnswerError: There is no such figure, or there are several.
        """
        match = self._find(name)
        numbers = [Fraction(value) for value in match.values]
        whole = sum(numbers, Fraction(0))
        if len(numbers) == 1:
            self._note(name, match, "")
        elif _ADDS_UP.match(match.column.name):
            self.added_up = True
            self._note(name, match, f", the {len(numbers)} values added up")
        else:
            rows = ", ".join(match.column.rows[:5])
            message = (
                f"'{name}' has {len(numbers)} values in step {match.column.step} ({rows}, ...). "
                "Name one of the rows, or ask for their sum, average, largest or smallest."
            )
            raise CannotAnswerError(message)
        return whole

    def many(self, name: str) -> Sequence[Fraction]:
        """The numbers that a name means.

        Raises:
            CannotAnswerError: There is no such column.
        """
        match = self._find(name)
        self._note(name, match, f", {len(match.values)} values")
        return [Fraction(value) for value in match.values]

    def _note(self, name: str, match: Match, how: str) -> None:
        note = f"'{name}' is {match.place}{how}."
        if note not in self.notes:
            self.notes.append(note)

    def _find(self, name: str) -> Match:
        step = _STEP.search(name)
        columns = [c for c in self._columns if step is None or c.step == int(step["step"])]
        words = frozenset(words_of(_STEP.sub(" ", name))) - _EMPTY
        found = [match for column in columns if (match := _match(words, column))]
        found = [match for match in found if match.is_exact] or found
        if not found:
            raise self._unknown(name, columns)
        # "The share of North in the total revenue": what was found last says which column is meant.
        found = [match for match in found if match.column == self._last] or found
        if len({tuple(sorted(match.values)) for match in found}) > 1:
            places = joined([match.place for match in found])
            message = f"'{name}' could be any of: {places}. Name the step or the whole column."
            raise CannotAnswerError(message)
        self._last = found[0].column
        return found[0]

    def _unknown(self, name: str, columns: Sequence[Column]) -> CannotAnswerError:
        names = list(dict.fromkeys(column.name for column in columns))
        if not names:
            message = f"No number is known for '{name}': the step builds on no result with figures."
            return CannotAnswerError(message)
        rows = dict.fromkeys(row for column in columns for row in column.rows)
        hint = did_you_mean(name, [*names, *rows])
        return CannotAnswerError(
            f"No figure '{name}' in the earlier results. There are: {', '.join(names)}.{hint}"
        )


def _columns(step: int, text: str) -> Iterator[Column]:
    for table in tables_in(text, ""):
        keys = table.key_columns()
        for place, name in enumerate(table.columns):
            if name not in keys:
                yield _column(step, table, place, len(keys))
    for found in _RESULT.finditer(text):
        yield Column(step=step, name="result", rows=("result",), values=(found["value"],))


def _column(step: int, table: AnswerTable, place: int, keys: int) -> Column:
    names = table.key_columns()
    at = [index for index, name in enumerate(table.columns) if name in names][:keys]
    return Column(
        step=step,
        name=table.columns[place],
        rows=tuple(" ".join(str(row[key]) for key in at) for row in table.cells),
        values=tuple(
            None if number(row[place]) is None else str(row[place]) for row in table.cells
        ),
    )


def _match(words: frozenset[str], column: Column) -> Match | None:
    """The cells of a column that words mean: all of them, or those of a row that they name."""
    rest = words - column.words
    if not words & column.words and column.name != "result" and not rest:
        return None
    rows = range(len(column.values))
    if rest:
        rows = [row for row in rows if rest <= frozenset(words_of(column.rows[row]))]
    values = tuple(value for row in rows if (value := column.values[row]) is not None)
    if not values:
        return None
    return Match(column=column, values=values, is_exact=column.words <= words)
