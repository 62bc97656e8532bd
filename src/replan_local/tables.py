"""The tables of a folder, and a database that sees these and nothing else."""

# ruff: noqa: S608 - names are quoted, values are parameters, a person's query is checked.

import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from replan.errors import ConfigurationError
from replan.plan.model import Value
from replan.texts.bounds import COLUMN_NAME, TABLE_COLUMNS
from replan.texts.safe_folder import FolderFile, files_below
from replan_local.person_sql import check_length, check_tree
from replan_local.refusals import CannotAnswerError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

Cell = object
"""A value in a row, as DuckDB gives it to Python."""

Kind = Literal["number", "date", "text"]

_READERS = {
    ".csv": "read_csv_auto",
    ".tsv": "read_csv_auto",
    ".parquet": "read_parquet",
    ".json": "read_json_auto",
    ".jsonl": "read_json_auto",
    ".ndjson": "read_json_auto",
}
_DEEPEST, _MOST_FILES = 3, 200
_NUMBER = re.compile(r"^U?(?:TINY|SMALL|BIG|HUGE)?INT(?:EGER)?$|^(?:DECIMAL|DOUBLE|FLOAT|BIGNUM)")
_FIRST_LINES = 2
# What is as small as a number whatever is in it. Times with a zone need a package that DuckDB
# does not bring along; text does not.
_SMALL = re.compile(
    r"(?:U?(?:TINY|SMALL|BIG|HUGE)?INT(?:EGER)?|DECIMAL(?:\([\d,]+\))?|DOUBLE|FLOAT|NUMBER|BOOLEAN"
    r"|BOOL|DATE|TIME|TIMESTAMP(?:_S|_MS|_NS)?|DATETIME|INTERVAL|UUID|NULL)\Z"
)
LONGEST_CELL = 500
"""Characters of a cell; the rest of it stays in the database."""

_MEMORY, _THREADS = "1GB", "2"


class Column(Value):
    """A column of a table."""

    name: str
    kind: Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFile(FolderFile):
    """A file with a table; `view` is its name in SQL."""

    view: str


class UnreadableTableError(CannotAnswerError):
    """A file of the folder is damaged, or no table whatever its name says."""

    def __init__(self, file: TableFile, reason: str) -> None:
        self.file = file
        self.reason = reason
        super().__init__(f"{file.name} cannot be read as a table: {reason}")


def table_files(directory: Path) -> tuple[TableFile, ...]:
    taken: set[str] = set()
    found: list[TableFile] = []
    for file in files_below(directory, _READERS, deepest=_DEEPEST, most=_MOST_FILES).files:
        path = Path(file.name)
        view = path.stem if path.stem.casefold() not in taken else path.name
        if view.casefold() in taken:
            view = file.name
        taken.add(view.casefold())
        found.append(TableFile(path=file.path, name=file.name, view=view))
    return tuple(found)


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


class Database:
    """DuckDB in memory, for one thread, that reads some files as views and nothing else."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connection: DuckDBPyConnection | None = None
        self._stopped = False

    def open(self, files: Sequence[TableFile]) -> tuple[UnreadableTableError, ...]:
        """Register these files alone, shut the door to all else, and return what cannot be read."""
        connection = _connect()
        self.close()
        with self._lock:
            self._connection = connection
        paths = ", ".join(_text(str(file.path)) for file in files)
        connection.execute(f"SET allowed_paths = [{paths}]")
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        found = (self._register(file) for file in files)
        return tuple(each for each in found if each is not None)

    def columns(self, view: str) -> tuple[Column, ...]:
        described = self._run(f"DESCRIBE {quoted(view)}", f"{view} cannot be described").fetchall()
        _check_head(view, [str(row[0]) for row in described])
        return tuple(Column(name=row[0], kind=_kind(row[1])) for row in described)

    def check(self, sql: str) -> None:
        """Refuse SQL of a step that does more than look at a few tables."""
        check_length(sql)
        _the_select_in(sql)
        row = self._run("SELECT json_serialize_sql(?)", "The query failed", [sql]).fetchone()
        check_tree(str(row and row[0]))

    def select(
        self, sql: str, parameters: Sequence[object] = (), *, most: int
    ) -> tuple[tuple[str, ...], list[tuple[Cell, ...]]]:
        """Run one SELECT; return the names of its columns and at most this many rows."""
        problem, inner = "The query failed", _the_select_in(sql)
        columns = self._run(f"FROM ({inner}\n) LIMIT 0", problem, parameters).description
        cells = ", ".join(
            f"#{place}" if _SMALL.match(str(kind)) else _cut(place)
            for place, (_, kind, *_) in enumerate(columns, start=1)
        )
        found = self._run(f"SELECT {cells} FROM ({inner}\n)", problem, parameters)
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

    def _register(self, file: TableFile) -> UnreadableTableError | None:
        import duckdb  # noqa: PLC0415 - an optional extra

        source = f"{_READERS[file.path.suffix.casefold()]}({_text(str(file.path))})"
        try:
            if not file.path.stat().st_size:
                return UnreadableTableError(file, "it is empty")
            self._execute(f"CREATE VIEW {quoted(file.view)} AS SELECT * FROM {source}")
        except OSError as error:
            return UnreadableTableError(file, str(error.strerror))
        except duckdb.Error as error:
            # First it speaks of the file, then of ways out that are not ours, and of our statement.
            reason = _first_lines(str(error).partition("\n\n")[0].partition("\nLINE ")[0])
            return UnreadableTableError(file, reason.replace(str(file.path), file.name))
        return None

    def _run(
        self, sql: str, problem: str, parameters: Sequence[object] = ()
    ) -> "DuckDBPyConnection":
        import duckdb  # noqa: PLC0415 - an optional extra

        try:
            return self._execute(sql, parameters)
        except duckdb.Error as error:
            raise CannotAnswerError(f"{problem}: {_first_lines(error)}") from error

    def _execute(self, sql: str, parameters: Sequence[object] = ()) -> "DuckDBPyConnection":
        with self._lock:
            connection = self._connection
        if connection is None or self._stopped:
            raise CannotAnswerError("The query was stopped.")
        return connection.execute(sql, list(parameters))


def require_duckdb() -> None:
    """Fail early and clearly where the extra is not installed."""
    try:
        import duckdb  # noqa: F401, PLC0415 # pyright: ignore[reportUnusedImport]
    except ImportError as error:
        raise ConfigurationError(
            "specialists",
            "data_analyst",
            "reading tables needs DuckDB, which is not installed",
            'Install it with: pip install "replan[local]"',
        ) from error


def _the_select_in(sql: str) -> str:
    import duckdb  # noqa: PLC0415 - an optional extra

    try:
        statements = duckdb.extract_statements(sql)
    except duckdb.Error as error:
        raise CannotAnswerError(f"The query cannot be read: {_first_lines(error)}") from error
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise CannotAnswerError("Only one single SELECT may be run on the tables.")
    head, end, rest = sql.rpartition(";")
    is_over = all(not line.strip() or line.strip().startswith("--") for line in rest.splitlines())
    return head.rstrip().rstrip(";") if end and is_over else sql


def _connect() -> "DuckDBPyConnection":
    require_duckdb()
    import duckdb  # noqa: PLC0415 - an optional extra

    connection = duckdb.connect(
        ":memory:",
        config={
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "temp_directory": "",
            "memory_limit": _MEMORY,
            "threads": _THREADS,
        },
    )
    # It would be drawn into whatever the terminal shows.
    connection.execute("SET enable_progress_bar = false")
    return connection


def _cut(place: int) -> str:
    return f"left(CAST(#{place} AS VARCHAR), {LONGEST_CELL})"


def _kind(type_name: str) -> Kind:
    if _NUMBER.match(type_name):
        return "number"
    return "date" if type_name.startswith(("DATE", "TIMESTAMP")) else "text"


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _first_lines(error: Exception | str) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " ".join(lines[:_FIRST_LINES])


def _check_head(view: str, names: Sequence[str]) -> None:
    if len(names) > TABLE_COLUMNS:
        raise CannotAnswerError(
            f"{view} has {len(names):,} columns; at most {TABLE_COLUMNS:,} are read."
        )
    longest = max(names, key=len, default="")
    if len(longest) > COLUMN_NAME:
        raise CannotAnswerError(
            f"A column of {view} has a name of {len(longest):,} characters, "
            f"'{longest[:40]}…'; at most {COLUMN_NAME} are read."
        )
