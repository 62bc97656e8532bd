"""Find which column holds a value that a question speaks of."""

# ruff: noqa: S608 - names are quoted, values are parameters, a person's query is checked.

from collections.abc import Sequence

from replan_local.analyst.question import Filter
from replan_local.analyst.tables import (
    Column,
    Database,
    TableFile,
    UnreadableTableError,
    quoted,
)
from replan_local.refusals import CannotAnswerError
from replan_local.words import words_of

_MOST_VALUES = 200


class Values:
    """The values of the text columns of a table; read only if they are asked for."""

    def __init__(self, database: Database, file: TableFile, columns: Sequence[Column]) -> None:
        self._database = database
        self._file = file
        self._columns = columns
        self._owners: dict[tuple[str, ...], list[Filter]] | None = None

    def owner_of(self, words: Sequence[str]) -> Filter | None:
        """The condition that these words stand for, if exactly one column holds them.

        Raises:
            UnreadableTableError: The values cannot be read, though the head of the file could.
        """
        if self._owners is None:
            try:
                self._owners = self._read()
            except CannotAnswerError as refusal:
                raise UnreadableTableError(self._file, str(refusal)) from refusal
        found = self._owners.get(tuple(words_of(" ".join(words))), [])
        return found[0] if len(found) == 1 else None

    def _read(self) -> dict[tuple[str, ...], list[Filter]]:
        owners: dict[tuple[str, ...], list[Filter]] = {}
        for column in self._columns:
            if column.kind != "text":
                continue
            name = quoted(column.name)
            _, rows = self._database.select(
                f"SELECT DISTINCT CAST({name} AS VARCHAR) FROM {quoted(self._file.view)} "
                f"WHERE {name} IS NOT NULL LIMIT {_MOST_VALUES + 1}",
                most=_MOST_VALUES + 1,
            )
            # A column with very many values names single things, not groups worth asking for.
            for row in rows if len(rows) <= _MOST_VALUES else ():
                condition = Filter(column=column.name, value=str(row[0]))
                owners.setdefault(tuple(words_of(str(row[0]))), []).append(condition)
        return owners
