"""Answer a command about tables; all of it in one thread."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

from replan_local.answer_table import MOST_ROWS, AnswerTable, table_of
from replan_local.commands import Compare, Figures, ListTables, Query, Sql
from replan_local.figures import select_of, source_of
from replan_local.named_files import find_file
from replan_local.refusals import CannotAnswerError, one_of
from replan_local.tables import Database, TableFile, table_files


class Querying:
    """A command about the tables of a folder; may be interrupted from another thread."""

    def __init__(self, directory: Path, inputs: Mapping[int, str] | None = None) -> None:
        self._directory = directory
        self._inputs = inputs or {}
        self._database = Database()

    def answer(self, query: Query) -> str:
        with closing(self._database):
            match query:
                case Sql():
                    return self._sql(query.sql)
                case ListTables():
                    return self._list()
                case Figures():
                    return self._figures(query)
                case Compare():
                    return _table_text(_compared(query, self._inputs))

    def interrupt(self) -> None:
        """Stop the work; what it would have given is lost."""
        self._database.interrupt()

    def _opened(self, name: str) -> TableFile:
        file = find_file(name, table_files(self._directory), "table")
        if damaged := self._database.open([file]):
            raise damaged[file.view]
        return file

    def _count(self, source: str) -> str:
        _, ((count,),) = self._database.select(f"SELECT count(*) {source}", most=1)
        return f"{count} rows"

    def _table(self, title: str, sql: str) -> AnswerTable:
        columns, rows = self._database.select(sql, most=MOST_ROWS + 1)
        first, is_cut = tuple(rows[:MOST_ROWS]), len(rows) > MOST_ROWS
        return AnswerTable(title=title, columns=columns, rows=first, is_cut=is_cut)

    def _figures(self, query: Figures) -> str:
        file = self._opened(query.table)
        source = source_of(query, file.view)
        title = str(query)[0].upper() + str(query)[1:]
        names = tuple(map(str, (*query.by, *query.measures)))
        if len(set(names)) < len(names):
            raise CannotAnswerError(f"'{query}' asks for the same thing twice.")
        table = self._table(title, select_of(query, source))
        told = "; ".join([f"{file.name}, {self._count(source)}", *map(str, query.where)])
        return _table_text(table.replace(columns=names, key_count=len(query.by)), told)

    def _sql(self, sql: str) -> str:
        """Run one SELECT; only the tables that it names are opened."""
        folded = sql.casefold()
        files = table_files(self._directory)
        used = [file for file in files if file.view.casefold() in folded]
        damaged = self._database.open(used)
        try:
            table = self._table("Query", self._database.checked(sql))
        except CannotAnswerError as refusal:
            # A file that cannot be read is the reason before what the query says itself.
            raise next(iter(damaged.values()), refusal) from refusal
        return _table_text(table, ", ".join(file.name for file in used) or "no file")

    def _list(self) -> str:
        files = table_files(self._directory)
        damaged = self._database.open(files)
        if not files:
            return "The folder has no CSV, Parquet or JSON file."
        lines = [f"- {damaged.get(file.view) or self._columns_of(file)}" for file in files]
        return "\n".join([f"The tables are: {', '.join(file.name for file in files)}.", "", *lines])

    def _columns_of(self, file: TableFile) -> str:
        columns = self._database.columns(file.view)
        told = [f"{name} ({kind.lower()})" for name, kind in columns.items()][:MOST_ROWS]
        more = f" and {len(columns) - MOST_ROWS} more" if len(columns) > MOST_ROWS else ""
        return f"{file.name}, in SQL {file.view}: {', '.join(told)}{more}"


def _table_text(table: AnswerTable, source: str = "") -> str:
    head = f"**{table.title}**" + (f" ({source})" if source else "")
    return f"{head}\n\n{table.markdown()}"


def _compared(asked: Compare, inputs: Mapping[int, str]) -> AnswerTable:
    """Join the two tables; where each has one figure, with the ratio of the two."""
    sides = [table_of(step, inputs) for step in asked.steps]
    names = [side.figures() for side in sides]
    figures = [_figures_by_key(side, asked.by) for side in sides]
    # One name for two columns would not say which is which.
    columns = [
        f"{name} ({side.title})" if name in names[0] and name in names[1] else name
        for side, column_names in zip(sides, names, strict=True)
        for name in column_names
    ]
    has_ratio = len(names[0]) == len(names[1]) == 1
    rows: list[tuple[object, ...]] = []
    for key in dict.fromkeys([*figures[0], *figures[1]]):
        one, other = (
            by_key.get(key, [None] * len(column_names))
            for by_key, column_names in zip(figures, names, strict=True)
        )
        rows.append((key, *one, *other, *([_ratio(one[0], other[0])] if has_ratio else [])))
    return AnswerTable(
        title=f"Comparison of {sides[0].title} and {sides[1].title}",
        columns=(asked.by, *columns, *(["ratio"] if has_ratio else [])),
        rows=tuple(rows),
        key_count=1,
    )


def _figures_by_key(table: AnswerTable, by: str) -> Mapping[str, Sequence[float | None]]:
    figures = table.figures()
    keys = [name for name in table.columns if name not in figures]
    one_of(by, keys, f"key in '{table.title}'")
    columns = [table.values(name) for name in figures]
    return {label: column for label, *column in zip(table.labels(), *columns, strict=True)}


def _ratio(one: float | None, other: float | None) -> float | None:
    return float(other) / float(one) if one and other is not None else None
