"""The tables of a folder, and a database that sees these and nothing else."""

# ruff: noqa: S608 - names are quoted, values are literals, a person's query is checked.

import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from replan.base.texts.bounds import COLUMN_NAME, TABLE_COLUMNS
from replan.base.texts.safe_folder import FolderFile, files_below
from replan.errors import ConfigurationError
from replan_local.figures import literal, quoted
from replan_local.refusals import CannotAnswerError, did_you_mean

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_READERS = {
    ".csv": "read_csv_auto",
    ".tsv": "read_csv_auto",
    ".parquet": "read_parquet",
    ".json": "read_json_auto",
    ".jsonl": "read_json_auto",
    ".ndjson": "read_json_auto",
}
_DEEPEST, _MOST_FILES, _FIRST_LINES = 3, 200, 2
# What is as small as a number whatever is in it. Times with a zone need a package that DuckDB
# does not bring along; text does not.
_SMALL = re.compile(
    r"(?:U?(?:TINY|SMALL|BIG|HUGE)?INT(?:EGER)?|DECIMAL(?:\([\d,]+\))?|DOUBLE|FLOAT|NUMBER|BOOLEAN"
    r"|BOOL|DATE|TIME|TIMESTAMP(?:_S|_MS|_NS)?|DATETIME|INTERVAL|UUID|NULL)\Z"
)
_NO_COLUMN = re.compile(r'column "(?P<name>[^"]+)" not found.*\nCandidate bindings: (?P<near>.+)')
_NAME = re.compile(r'"([^"]+)"')
LONGEST_CELL = 500
"""Characters of a cell; the rest of it stays in the database."""

_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "temp_directory": "",
    "memory_limit": "1GB",
    "threads": 2,
}

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
    for file in files_below(directory, _READERS, deepest=_DEEPEST, most=_MOST_FILES).files:
        path = Path(file.name)
        names = (path.stem, path.name, file.name)
        view = next((name for name in names if name.casefold() not in found), file.name)
        found[view.casefold()] = TableFile(path=file.path, name=file.name, view=view)
    return tuple(found.values())


class Database:
    """DuckDB in memory, for one thread, that reads some files as views and nothing else."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connection: DuckDBPyConnection | None = None
        self._stopped = False
        self._names = ""  # of the files

    def open(self, files: Sequence[TableFile]) -> Mapping[str, CannotAnswerError]:
        """Register these files alone, shut the door to all else; return why a view is not there."""
        connection = _connect()
        with self._lock:
            self._connection = connection
        paths = ", ".join(literal(str(file.path)) for file in files)
        connection.execute(f"SET allowed_paths = [{paths}]")
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        self._names = ", ".join(file.name for file in files)
        damaged: dict[str, CannotAnswerError] = {}
        for file in files:
            try:
                self._register(file)
            except CannotAnswerError as error:
                damaged[file.view] = error
        return damaged

    def columns(self, view: str) -> Mapping[str, str]:
        """The types of the columns of a view, by their names."""
        rows = self._run(f"DESCRIBE {quoted(view)}").fetchall()
        return {str(name): str(kind) for name, kind, *_ in rows}

    def checked(self, sql: str) -> str:
        """Refuse SQL of a step that does more than look at a few tables; else return it.

        What is returned is written from the very tree that was looked through, without the signs
        and remarks that end it.
        """
        if len(sql) > LONGEST_SQL:
            message = f"The SQL has {len(sql):,} characters; at most {LONGEST_SQL:,} are read."
            raise CannotAnswerError(message)
        tree = self._cell(f"json_serialize_sql({literal(sql)})")
        _check_tree(tree)
        if self._cell(f"json_array_length({literal(tree)}, '$.statements')") != "1":
            raise CannotAnswerError("Only one single SELECT may be run on the tables.")
        return self._cell(f"json_deserialize_sql({literal(tree)}::JSON)")

    def select(self, sql: str, *, most: int) -> tuple[tuple[str, ...], list[tuple[object, ...]]]:
        """Run one SELECT; return the names of its columns and at most this many rows."""
        columns = self._run(f"FROM ({sql}) LIMIT 0").description
        cells = ", ".join(
            f"#{place}"
            if _SMALL.match(str(kind))
            else f"left(CAST(#{place} AS VARCHAR), {LONGEST_CELL})"
            for place, (_, kind, *_) in enumerate(columns, start=1)
        )
        found = self._run(f"SELECT {cells} FROM ({sql})")
        return tuple(str(name) for name, *_ in columns), found.fetchmany(most)

    def interrupt(self) -> None:
        """Stop what runs, and let nothing more start."""
        with self._lock:
            self._stopped = True
            if self._connection is not None:
                self._connection.interrupt()

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _register(self, file: TableFile) -> None:
        problem = f"{file.name} cannot be read as a table"
        if not _size(file.path):
            raise CannotAnswerError(f"{problem}: it is empty or gone")
        source = f"{_READERS[file.path.suffix.casefold()]}({literal(str(file.path))})"
        try:
            self._run(f"CREATE VIEW {quoted(file.view)} AS SELECT * FROM {source}", problem)
        except CannotAnswerError as error:
            raise CannotAnswerError(str(error).replace(str(file.path), file.name)) from error
        _check_head(file.name, list(self.columns(file.view)))

    def _cell(self, expression: str) -> str:
        row = self._run(f"SELECT {expression}").fetchone()
        return str(row and row[0])

    def _run(self, sql: str, problem: str = "The query failed") -> "DuckDBPyConnection":
        import duckdb  # noqa: PLC0415 - an optional extra

        with self._lock:
            connection = self._connection
        if connection is None or self._stopped:
            raise CannotAnswerError("The query was stopped.")
        try:
            return connection.execute(sql)
        except duckdb.Error as error:
            told = _missing_column(str(error), self._names)
            raise CannotAnswerError(told or f"{problem}: {_first_lines(error)}") from error


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
    connection = duckdb.connect(":memory:", config=_CONFIG)
    # It would be drawn into whatever the terminal shows.
    connection.execute("SET enable_progress_bar = false")
    return connection


def _first_lines(error: Exception) -> str:
    # After these it speaks of ways out that are not ours, and of our statement.
    told = re.split(r"\n\n|\nLINE |\n\tCandidate ", str(error))[0]
    return " ".join(" ".join(told.splitlines()[:_FIRST_LINES]).split())


def _missing_column(error: str, tables: str) -> str:
    """Say what DuckDB says of a column that is not there; empty for any other error."""
    found = _NO_COLUMN.search(error)
    if found is None:
        return ""
    near = _NAME.findall(found["near"])
    told = f"No column '{found['name']}' in {tables}. The nearest are: {', '.join(near)}."
    return told + did_you_mean(found["name"], near)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # Gone since the folder was listed.
        return 0


def _check_head(table: str, names: Sequence[str]) -> None:
    longest = max(names, key=len, default="")
    if len(names) > TABLE_COLUMNS or len(longest) > COLUMN_NAME:
        raise CannotAnswerError(
            f"{table} has {len(names):,} columns, one with a name of {len(longest):,} characters; "
            f"at most {TABLE_COLUMNS:,} are read, with names of {COLUMN_NAME}."
        )


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
