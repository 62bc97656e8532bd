"""A SQLite file: made once, checked before it is used, never changed if it is not ours.

All of it happens under a lock next to the file. Two processes that start at the same time on a
fresh file would else both switch it to write-ahead logging, which SQLite refuses one of them
without waiting.
"""

import os
import sqlite3
import struct
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from pathlib import Path

from replan.base.errors import StorageError
from replan.storage.databases import schema
from replan.storage.databases.encryption import Facts
from replan.storage.databases.faults import DAMAGED, FileReplacedError, fault_of
from replan.storage.databases.sqlite import SqliteConnection

LARGEST_CHECKED = 256 * 2**20
"""Bytes up to which a file is looked through for damage before it is used."""

_OURS = int.from_bytes(b"Repl", "big")
_MAGIC = b"SQLite format 3\0"
_HEADER = 100
_WAIT = 60.0
_ANOTHER = "Give another path."
_LEFT = f"It was left as it was. {_ANOTHER}"


@contextmanager
def file_errors(path: Path) -> Generator[None]:
    """Raise what the system or SQLite says about a file as a `StorageError`."""
    try:
        yield
    except sqlite3.Error as error:
        fault = fault_of(error)
        if fault is None:
            raise
        raise StorageError(str(path), fault.problem, fault.fix) from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise StorageError(
            str(path), f"The system says: {reason}.", "Fix its permissions, or give another path."
        ) from error


def make_private(path: Path) -> None:
    """Make the folders that a file needs, and the files next to it, for this user alone."""
    missing = [folder for folder in path.parents if not folder.exists()]
    for folder in reversed(missing):
        folder.mkdir(mode=0o700, exist_ok=True)
    os.close(os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT, 0o600))


def lock_of(path: Path) -> sqlite3.Connection:
    """Take the lock next to a file; closing the connection gives it back, and so does dying."""
    # SQLite's own lock is the one that every system has, that waits, and that falls by itself.
    lock = sqlite3.connect(
        f"{path}.lock", timeout=_WAIT, isolation_level=None, check_same_thread=False
    )
    try:
        lock.execute("BEGIN EXCLUSIVE")
    except BaseException:
        lock.close()
        raise
    return lock


def same_file(path: Path) -> Callable[[], None]:
    """Remember a file, to be asked later whether it still has its name."""
    opened = path.stat()

    def check() -> None:
        try:
            is_same = os.path.samestat(opened, path.stat())
        except FileNotFoundError:
            is_same = False
        if not is_same:
            raise FileReplacedError

    return check


def prepare(path: Path, new_facts: Callable[[], Facts]) -> Facts:
    """Create the file, or check an existing one; under its lock."""
    _check_names(path)
    left = _LEFT
    if path.exists() and Path(f"{path}-journal").exists():
        # A process was killed while it made the file; reading takes its traces back, perhaps all.
        _count_tables(path, "")
        left = _ANOTHER
    if not path.exists() or path.stat().st_size == 0:
        return _make(path, new_facts())
    application = _application_of(path, left)
    if application != _OURS:
        if application or _count_tables(path, _read_mode(path)):
            raise StorageError(str(path), "It is the database of another program.", left)
        return _make(path, new_facts())
    return _read_facts(path)


def _check_names(path: Path) -> None:
    """Refuse a file with hard links: SQLite's log and our locks are found by the name alone."""
    names = path.stat().st_nlink if path.is_file() else 1
    if names > 1:
        raise StorageError(
            str(path),
            f"It has {names} names (hard links), and opening it by another name would damage it.",
            "It was left as it was. Remove the others (`find -samefile` finds them), make them "
            "symbolic links, or give the path of a copy.",
        )


def upgrade(path: Path) -> None:
    """Bring a file of an older format to the newest, in one transaction; under its lock."""
    with _opened(path, _read_mode(path)) as reading:
        if reading.query("PRAGMA user_version") == [(schema.FORMAT,)]:
            return
    with _opened(path) as connection:
        with connection.transaction("BEGIN IMMEDIATE"):
            schema.upgrade(connection, str(path))
        # The format is at the start of the file, also for those who look there only.
        connection.change("PRAGMA wal_checkpoint(TRUNCATE)")


def _application_of(path: Path, left: str) -> int:
    """Read whose file it is from its start, without opening it as a database."""
    with path.open("rb") as file:
        start = file.read(_HEADER)
    if len(start) < _HEADER or not start.startswith(_MAGIC):
        raise StorageError(str(path), "It is not a SQLite database, or its start is damaged.", left)
    return struct.unpack(">I", start[68:72])[0]


def _read_mode(path: Path) -> str:
    # A process that has it open keeps a log next to it. Without a log, there is no writer, and none
    # can begin while we hold the lock.
    log = Path(f"{path}-wal")
    try:
        has_log = log.stat().st_size > 0
    except FileNotFoundError:  # at once, for who closes the file last removes its log
        has_log = False
    return "?mode=ro" if has_log else "?immutable=1"


@contextmanager
def _opened(path: Path, mode: str = "?mode=rw") -> Generator[SqliteConnection]:
    with closing(SqliteConnection(f"{path.resolve().as_uri()}{mode}")) as connection:
        yield connection


def _count_tables(path: Path, mode: str) -> int:
    with _opened(path, mode) as connection:
        return connection.query("SELECT count(*) FROM sqlite_master")[0][0]


def _read_facts(path: Path) -> Facts:
    """Look a file through for damage, and read what it keeps about itself."""
    damaged = StorageError(str(path), DAMAGED.problem, schema.LEFT)
    try:
        with _opened(path, _read_mode(path)) as connection:
            is_checked = path.stat().st_size <= LARGEST_CHECKED
            if is_checked and connection.query("PRAGMA quick_check(1)") != [("ok",)]:
                raise damaged
            facts = schema.read_facts(connection, str(path))
    except sqlite3.DatabaseError as error:
        if fault_of(error) is DAMAGED:
            raise damaged from error
        raise
    if not facts:
        raise damaged
    return facts


def _make(path: Path, facts: Facts) -> Facts:
    """Write the tables and the facts in one transaction, then switch to write-ahead logging."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    with _opened(path) as connection:
        # Most rows are small, and a commit writes whole pages.
        connection.change("PRAGMA page_size = 1024")
        with connection.transaction("BEGIN IMMEDIATE"):
            schema.make(connection, facts, str(path))
            connection.change(f"PRAGMA application_id = {_OURS}")
        connection.change("PRAGMA journal_mode = WAL")
    return facts
