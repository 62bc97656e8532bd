"""Put tables side by side on the columns that they share, and say where they differ."""

from collections.abc import Sequence
from typing import Any

from replan_local.answer_table import MOST_ROWS, AnswerTable, number, shown
from replan_local.refusals import CannotAnswerError
from replan_local.words import joined, words_of

_PAIR, _MOST_NAMED = 2, 3


def compare_tables(
    tables: Sequence[AnswerTable], wished: Sequence[str] = ()
) -> tuple[AnswerTable, list[str]]:
    """Join tables on the columns that all of them share.

    Args:
        tables: Two tables or more.
        wished: Words that may name the columns to join on; else all shared ones.

    Raises:
        CannotAnswerError: The tables share no column, or have several rows for one value of it.
    """
    keys = _shared_keys(tables, wished)
    sides = [_Side(table, keys) for table in tables]
    pair = len(sides) == _PAIR and all(len(side.numbers) == 1 for side in sides)
    # A total less an average would be a number without a meaning.
    alike = pair and sides[0].numbers == sides[1].numbers
    extra = ["difference", "ratio"] if alike else ["ratio"] if pair else []
    rows = [
        _joined(name, sides, extra)
        for name in dict.fromkeys(n for side in sides for n in side.rows)
    ]
    table = AnswerTable(
        title=_title(keys, sides),
        columns=(*keys, *(name for side in sides for name in _named(side, sides)), *extra),
        cells=tuple(rows[:MOST_ROWS]),
        total_rows=len(rows),
        key_count=len(keys),
    )
    return table, _findings(keys, sides, rows, pair=pair)


def _title(keys: Sequence[str], sides: "Sequence[_Side]") -> str:
    names = [name for side in sides for name in side.numbers]
    what = f" of {joined(names)}" if len(set(names)) == len(names) <= _MOST_NAMED else ""
    return f"Comparison{what} by {joined(keys)}"


class _Side:
    """One of the tables: its numbers by the values of the shared columns."""

    def __init__(self, table: AnswerTable, keys: Sequence[str]) -> None:
        at_keys = [place for key in keys if (place := table.place(key)) is not None]
        texts = {table.place(name) for name in table.key_columns()}
        places = [at for at in range(len(table.columns)) if at not in texts]
        self.title = table.title
        self.numbers = [table.columns[at] for at in places]
        self.rows = {
            tuple(shown(row[at]) for at in at_keys): [row[at] for at in places]
            for row in table.cells
        }
        if len(self.rows) < len(table.cells):
            message = f"{table.title} has several rows for one {' and '.join(keys)}."
            raise CannotAnswerError(message)


def _shared_keys(tables: Sequence[AnswerTable], wished: Sequence[str]) -> tuple[str, ...]:
    first, *others = tables
    shared = [
        name
        for name in first.key_columns()
        if all(name.casefold() in {key.casefold() for key in o.key_columns()} for o in others)
    ]
    if not shared:
        columns = [", ".join(table.key_columns()) or "no column but figures" for table in tables]
        message = f"The tables share no column to compare them by: {'; '.join(columns)}."
        raise CannotAnswerError(message)
    named = [name for name in shared if set(words_of(name)) <= set(wished)]
    return tuple(named or shared)


def _named(side: _Side, sides: Sequence[_Side]) -> list[str]:
    """The numbers of a side; with its title where another side has the same names."""
    names = [name for each in sides for name in each.numbers]
    if len(set(names)) == len(names):
        return side.numbers
    return [f"{name} ({side.title})" for name in side.numbers]


def _joined(name: tuple[str, ...], sides: Sequence[_Side], extra: Sequence[str]) -> tuple[Any, ...]:
    numbers = [cell for side in sides for cell in side.rows.get(name, [None] * len(side.numbers))]
    return (*name, *numbers, *(_relation(word, numbers) for word in extra))


def _relation(word: str, numbers: Sequence[object]) -> float | None:
    """The first number less the second one, or the second as a part of the first."""
    one, other = (number(value) for value in numbers)
    if one is None or other is None:
        return None
    if word == "difference":
        return one - other
    return other / one if one else None


def _findings(
    keys: Sequence[str], sides: Sequence[_Side], rows: Sequence[tuple[Any, ...]], *, pair: bool
) -> list[str]:
    findings: list[str] = []
    for side in sides:
        lacking = [_name(row, keys) for row in rows if row[: len(keys)] not in side.rows]
        if lacking:
            findings.append(f"Without a row in {side.title}: {_some(lacking)}.")
    by_ratio = [row for row in rows if pair and row[-1] is not None]
    if len(by_ratio) > 1:
        one, other = (name for side in sides for name in _named(side, sides))
        high = max(by_ratio, key=lambda row: row[-1])
        low = min(by_ratio, key=lambda row: row[-1])
        ratio = f"ratio of {other} to {one}"
        findings.append(f"Largest {ratio}: {_name(high, keys)} with {shown(high[-1])}.")
        findings.append(f"Smallest {ratio}: {_name(low, keys)} with {shown(low[-1])}.")
    return findings or [f"Every {' and '.join(keys)} stands in all tables."]


def _name(row: tuple[Any, ...], keys: Sequence[str]) -> str:
    return " / ".join(str(cell) for cell in row[: len(keys)])


def _some(names: Sequence[str], most: int = 5) -> str:
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")
