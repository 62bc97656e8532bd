"""Answer a command about tables; all of it in one thread."""

# ruff: noqa: S608 - names are quoted.

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from replan_local.answer_table import MOST_ROWS, AnswerTable, tables_in
from replan_local.commands import (
    CompareSteps,
    CompareTables,
    Describe,
    Figures,
    ListTables,
    Query,
    Sql,
)
from replan_local.comparison import compared
from replan_local.figures import figures
from replan_local.folder import find_file
from replan_local.refusals import CannotAnswerError
from replan_local.tables import Database, TableFile, quoted, table_files

_MOST_COLUMNS, _MOST_GROUPS = 200, 10_000
_TITLE = re.compile(r"\*\*(?P<title>[^*\n]+)\*\*")


class Querying:
    """Commands about the tables of a folder; may be interrupted from another thread."""

    def __init__(self, directory: Path, inputs: Mapping[int, str] | None = None) -> None:
        self._directory = directory
        self._inputs = inputs or {}
        self._database = Database()
        self._files: tuple[TableFile, ...] = ()

    def answer(self, query: Query) -> str:
        try:
            self._files = table_files(self._directory)
            return self._answer(query)
        finally:
            self._database.close()

    def interrupt(self) -> None:
        """Stop the work; what it would have given is lost."""
        self._database.interrupt()

    def _answer(self, query: Query) -> str:
        match query:
            case Sql():
                return self._sql(query.sql)
            case ListTables():
                return self._list()
            case Describe():
                return self._description(query.table)
            case Figures():
                return self._figures(query)
            case CompareSteps():
                return self._steps(query)
            case CompareTables():
                return self._tables(query)

    def _opened(self, *names: str) -> TableFile:
        files = [find_file(name, self._files, "table") for name in names]
        if damaged := self._database.open(files):
            raise damaged[0]
        return files[-1]

    def _description(self, name: str) -> str:
        file = self._opened(name)
        _, ((count,),) = self._database.select(f"SELECT count(*) FROM {quoted(file.view)}", most=1)
        sql = (
            "SELECT column_name AS column, lower(column_type) AS type, min AS smallest, "
            'max AS largest, avg AS average, null_percentage AS "% missing" '
            f"FROM (SUMMARIZE {quoted(file.view)})"
        )
        columns, rows = self._database.select(sql, most=_MOST_COLUMNS)
        table = AnswerTable(title=f"Columns of {file.name}", columns=columns, cells=tuple(rows))
        return _told(table, [], f"{count} rows")

    def _figures(self, query: Figures) -> str:
        table, (source, *findings) = figures(self._database, self._opened(query.table), query)
        return _told(table, findings, source)

    def _tables(self, query: CompareTables) -> str:
        sides: list[AnswerTable] = []
        for measure, name in zip(query.measures, query.tables, strict=True):
            asked = Figures(table=name, measures=(measure,), by=(query.by,))
            file = self._opened(name)
            table, _ = figures(self._database, file, asked, most=_MOST_GROUPS)
            sides.append(table.replace(title=f"{measure} of {file.name}"))
        return _told(*compared(sides[0], sides[1], str(query.by)))

    def _steps(self, query: CompareSteps) -> str:
        return _told(
            *compared(self._table_of(query.steps[0]), self._table_of(query.steps[1]), query.by)
        )

    def _table_of(self, step: int) -> AnswerTable:
        if step not in self._inputs:
            known = ", ".join(map(str, sorted(self._inputs))) or "none"
            message = f"Step {step} is none of the steps that this one comes after ({known})."
            raise CannotAnswerError(message)
        text = self._inputs[step]
        found = _TITLE.match(text.strip())
        tables = tables_in(text, found["title"] if found else f"step {step}")
        if len(tables) != 1:
            message = f"Step {step} has {len(tables) or 'no'} tables; one is needed to compare."
            raise CannotAnswerError(message)
        return tables[0]

    def _sql(self, sql: str) -> str:
        """Run one SELECT; only the tables that it names are opened."""
        folded = sql.casefold()
        used = [file for file in self._files if file.view.casefold() in folded]
        damaged = self._database.open(used)
        try:
            self._database.check(sql)
            columns, rows = self._database.select(sql, most=MOST_ROWS + 1)
        except CannotAnswerError as refusal:
            # A file that cannot be read is the reason before what the query says itself.
            raise (damaged[0] if damaged else refusal) from refusal
        table = AnswerTable(title="Query", columns=columns, cells=tuple(rows[:MOST_ROWS]))
        notes = ["There are more rows than these."] if len(rows) > MOST_ROWS else []
        return _told(table, notes, ", ".join(file.name for file in used) or "no file")

    def _list(self) -> str:
        damaged = {each.file.view: each for each in self._database.open(self._files)}
        if not self._files:
            return "The folder has no CSV, Parquet or JSON file."
        lines = [f"The tables are: {', '.join(file.name for file in self._files)}.", ""]
        for file in self._files:
            if file.view in damaged:
                lines.append(f"- {damaged[file.view]}")
                continue
            columns = self._database.columns(file.view)
            told = ", ".join(f"{each.name} ({each.kind})" for each in columns[:MOST_ROWS])
            more = f" and {len(columns) - MOST_ROWS} more" if len(columns) > MOST_ROWS else ""
            lines.append(f"- {file.name}, in SQL {file.view}: {told}{more}")
        return "\n".join(lines)


def _told(table: AnswerTable, findings: Sequence[str], source: str = "") -> str:
    head = f"**{table.title}**" + (f" ({source})" if source else "")
    lines = "\n".join(f"- {line}" for line in findings)
    return "\n\n".join(part for part in (head, table.markdown(), lines) if part)
