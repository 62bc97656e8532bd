"""The tables of a folder, and a database that sees these and nothing else."""

# ruff: noqa: S608 - names are quoted, values are literals, a person's query is checked.

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from replan.base.errors import ConfigurationError
from replan.base.texts.bounds import COLUMN_NAME, TABLE_COLUMNS
from replan.base.texts.files import FolderFile, files_below
from replan_local.answer_table import EMPTY, MOST_ROWS, AnswerTable, shown
from replan_local.figures import literal, quoted
from replan_local.refusals import CannotAnswerError, did_you_mean

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_ENDINGS = (".csv", ".tsv", ".parquet", ".json", ".jsonl", ".ndjson")
_DEEPEST, _MOST_FILES, _FIRST_LINES = 3, 200, 2
_NUMBERS = re.compile(r"U?(?:TINY|SMALL|BIG|HUGE)?INT(?:EGER)?|DECIMAL\([\d,]+\)|DOUBLE|FLOAT")
_NO_COLUMN = re.compile(r'column "(?P<name>[^"]+)" not found.*\nCandidate bindings: (?P<near>.+)')
_NAME = re.compile(r'"([^"]+)"')
LONGEST_CELL = 500
"""Characters of a cell; the rest of it stays in the database."""

LONGEST_SQL = 20_000
"""Characters of a query or a condition; a parser that is asked for more may not come back."""

MOST_TABLES = 24
"""Tables and stars in a query: what joins a table with itself over and over has millions of columns
before anything of it runs, and cannot be stopped."""

# In the tree of a query, as DuckDB writes it.
_TABLE = re.compile(r'"class":"STAR"|"type":"(?:BASE_TABLE|TABLE_FUNCTION|SUBQUERY)"')
# What reveals the database or the machine, and what runs a query that is not visible here.
_CATALOG = re.compile(
    r'(?i)"(?:function|table|schema|catalog)_name":"('
    r"duckdb_\w{1,60}|pragma_\w{1,60}|sqlite_(?:temp_)?(?:master|schema)|information_schema"
    r'|pg_catalog|pg_(?:views|settings)|query|query_table|current_setting|getenv)"'
)
_UNREADABLE = re.compile(r'\{"error":true.*"error_message":"(?P<reason>[^"\\]*)')


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFile(FolderFile):
    """A file with a table; `view` is its name in SQL."""

    view: str


def table_files(directory: Path) -> tuple[TableFile, ...]:
    """Find the tables; where two have one name, the second has its ending or its folder, too."""
    found: dict[str, TableFile] = {}
    for file in files_below(directory, _ENDINGS, deepest=_DEEPEST, most=_MOST_FILES).files:
        path = Path(file.name)
        names = (path.stem, path.name, file.name)
        view = next((name for name in names if name.casefold() not in found), file.name)
        found[view.casefold()] = TableFile(path=file.path, name=file.name, view=view)
    return tuple(found.values())


class Tables:
    """DuckDB in memory, for one thread, that reads the tables of a folder and nothing else."""

    def __init__(self, directory: Path) -> None:
        self.files = table_files(directory)
        self._opened = list[str]()  # the names of the files that queries can see
        self._is_stopped = False
        self._connection = _connect()
        paths = ", ".join(literal(str(file.path)) for file in self.files)
        for setting in (
            "autoinstall_known_extensions = false",
            "autoload_known_extensions = false",
            "temp_directory = ''",
            "memory_limit = '1GB'",
            "threads = 2",
            "enable_progress_bar = false",  # It would be drawn into what the terminal shows.
            "TimeZone = 'UTC'",
            f"allowed_paths = [{paths}]",
            "enable_external_access = false",
            "lock_configuration = true",
        ):
            self._connection.execute(f"SET {setting}")

    def open(self, file: TableFile) -> Mapping[str, str]:
        """Let queries see a file; return the types of its columns by their names."""
        problem = f"{file.name} cannot be read as a table"
        if not file.path.exists() or not file.path.stat().st_size:
            raise CannotAnswerError(f"{problem}: it is empty or gone")
        view, source = quoted(file.view), quoted(str(file.path))
        self._run(f"CREATE VIEW {view} AS SELECT * FROM {source}", problem)
        self._opened.append(file.name)
        described = self._run(f"DESCRIBE {view}").fetchall()
        columns = {str(name): str(kind) for name, kind, *_ in described}
        longest = max(columns, key=len, default="")
        if len(columns) > TABLE_COLUMNS or len(longest) > COLUMN_NAME:
            raise CannotAnswerError(
                f"{file.name} has {len(columns):,} columns, one with a name of {len(longest):,} "
                f"characters; at most {TABLE_COLUMNS:,} are read, with names of {COLUMN_NAME}."
            )
        return columns

    def checked(self, sql: str) -> str:
        """The tree of the SQL of a step, which does no more than look at a few tables."""
        if len(sql) > LONGEST_SQL:
            message = f"The SQL has {len(sql):,} characters; at most {LONGEST_SQL:,} are read."
            raise CannotAnswerError(message)
        tree = self._cell(f"json_serialize_sql({literal(sql)})")
        _check_tree(tree)
        if self._cell(f"json_array_length({literal(tree)}, '$.statements')") != "1":
            raise CannotAnswerError("Only one single SELECT may be run on the tables.")
        return tree

    def sql_of(self, tree: str) -> str:
        """SQL of the very tree that was looked through, without the signs and remarks behind it."""
        return self._cell(f"json_deserialize_sql({literal(tree)}::JSON)")

    def answer(self, title: str, sql: str, *, key_count: int = 0) -> AnswerTable:
        """Run one SELECT; of its first columns, so many are keys, even if they hold numbers."""
        description = self._run(f"FROM ({sql}) LIMIT 0").description
        kinds = {str(name): str(kind) for name, kind, *_ in description}
        figures = [name for name in [*kinds][key_count:] if _NUMBERS.fullmatch(kinds[name])]
        cells = f"SELECT left(COLUMNS(*)::VARCHAR, {LONGEST_CELL}) FROM ({sql})"
        rows = self._run(cells).fetchmany(MOST_ROWS + 1)
        return AnswerTable(
            title=title,
            columns=tuple(kinds),
            figures=tuple(figures),
            rows=tuple(
                tuple(
                    _shown(cell, is_figure=name in figures)
                    for name, cell in zip(kinds, row, strict=True)
                )
                for row in rows[:MOST_ROWS]
            ),
            is_cut=len(rows) > MOST_ROWS,
        )

    def interrupt(self) -> None:
        """Stop what runs, and let nothing more start; may be called from another thread."""
        self._is_stopped = True
        self._connection.interrupt()

    def _cell(self, expression: str) -> str:
        row = self._run(f"SELECT {expression}").fetchone()
        return str(row and row[0])

    def _run(self, sql: str, problem: str = "The query failed") -> "DuckDBPyConnection":
        import duckdb  # noqa: PLC0415 - an optional extra

        if self._is_stopped:
            raise CannotAnswerError("The query was stopped.")
        try:
            return self._connection.execute(sql)
        except duckdb.Error as error:
            text = str(error)
            for file in self.files:
                text = text.replace(str(file.path), file.name)
            told = _missing_column(text, ", ".join(self._opened))
            raise CannotAnswerError(told or f"{problem}: {_first_lines(text)}") from error


def _connect() -> "DuckDBPyConnection":
    try:
        import duckdb  # noqa: PLC0415 - an optional extra
    except ImportError as error:
        raise ConfigurationError(
            "specialists",
            "data_analyst",
            "reading tables needs DuckDB, which is not installed",
            'Install it with: pip install "replan[local]"',
        ) from error
    return duckdb.connect(":memory:")


def _shown(cell: str | None, *, is_figure: bool) -> str:
    if cell is None:
        return EMPTY
    return shown(Decimal(cell)) if is_figure else " ".join(cell.split())


def _first_lines(error: str) -> str:
    # After these it speaks of ways out that are not ours, and of our statement.
    told = re.split(r"\n\n|\nLINE |\n\tCandidate ", error)[0]
    return " ".join(" ".join(told.splitlines()[:_FIRST_LINES]).split())


def _missing_column(error: str, tables: str) -> str:
    """Say what DuckDB says of a column that is not there; empty for any other error."""
    found = _NO_COLUMN.search(error)
    if found is None:
        return ""
    near = _NAME.findall(found["near"])
    told = f"No column '{found['name']}' in {tables}. The nearest are: {', '.join(near)}."
    return told + did_you_mean(found["name"], near)


def _check_tree(tree: str) -> None:
    """Refuse a query that looks at more than the tables, or at too many of them."""
    if found := _UNREADABLE.match(tree):
        raise CannotAnswerError(f"Only one single SELECT may be run: {found['reason']}")
    if found := _CATALOG.search(tree):
        message = f"A query may look at the tables only; '{found[1]}' shows the database itself."
        raise CannotAnswerError(message)
    count = sum(1 for _ in _TABLE.finditer(tree))
    if count > MOST_TABLES:
        message = f"The query names tables and stars {count} times; at most {MOST_TABLES} are read."
        raise CannotAnswerError(message)
