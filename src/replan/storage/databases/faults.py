"""What a database's error means: whether it can pass, what is wrong, and what to do."""

import json
import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from replan.base.errors import StorageError
from replan.base.failures import describe

SAFE = "What was recorded before stays recorded, and no finished step is lost."
GO_ON = "Then continue the run on its thread (`replan resume`): it continues where it stopped."


@dataclass(frozen=True)
class Fault:
    """A database's error in our words."""

    problem: str  # what is wrong
    fix: str
    is_transient: bool = False  # whether the same again may succeed a little later
    is_safe: bool = True  # whether what was recorded before is known to be as it was


Part = str | int | None
RecordLocation = tuple[
    Part, ...
]  # the place of a value: its table, the key of its row, and its column


class UnreadableRecordError(ValueError):
    """A record differs from what was written: it was damaged, or changed without the key."""

    def __init__(self, reason: str, location: RecordLocation = ()) -> None:
        super().__init__(reason)
        self.location = location


class FileReplacedError(Exception):
    """The file that is open is not the one that has its name."""


class UnstorableValueError(ValueError):
    """A value cannot be stored and restored."""


@contextmanager
def readable(*location: Part) -> Generator[None]:
    try:
        yield
    except (UnreadableRecordError, UnicodeEncodeError):
        # The second is of what is looked for, not of what was found.
        raise
    except (ValueError, TypeError, LookupError, RecursionError) as error:
        raise UnreadableRecordError(describe(error), location) from error


_FULL = Fault(
    "The disk is full, so nothing more can be recorded.", "Free some space.", is_transient=True
)
_BUSY = Fault(
    "Another process keeps it locked.",
    "See which process has it open, and end it.",
    is_transient=True,
)
DAMAGED = Fault(
    "It is damaged, or not a database.",
    "Restore it from a copy, or name another place.",
    is_safe=False,
)
GONE = Fault(
    "The database server cannot be reached.", "Start it, or fix the address.", is_transient=True
)
_REFUSED = Fault(
    "The database refuses this user.", "Fix the user name, the password or the permissions."
)
REPLACED = Fault(
    "Its file was removed or replaced while it was open: what was recorded since then is lost.",
    "Put the file back, or begin a new one.",
    is_safe=False,
)
_NO_DATABASE = Fault("The server has no such database.", "Create it, or fix the address.")
_UNSTORABLE = Fault(
    "A value cannot be kept there: a number of more than 64 bits, half a character, a NUL, or "
    "something that is not a plain value.",
    "Give the value as text, without NUL and half characters.",
)
_WRITE_PROTECTED = Fault(
    "It cannot be written.", "Fix its permissions and those of its folder, or name another place."
)

# The first two characters of PostgreSQL's SQLSTATE name the class of an error.
_OF_POSTGRES = {
    "08": GONE,
    "57": GONE,
    "28": _REFUSED,
    "42501": _REFUSED,
    "3D": _NO_DATABASE,
    "53100": _FULL,
    "53": Fault("The database server has no room for this.", "See its log.", is_transient=True),
    "40": Fault("The database gave way to another write.", "Try again.", is_transient=True),
    "25006": _WRITE_PROTECTED,
    "22021": _UNSTORABLE,
    "22P02": _UNSTORABLE,
    "22P05": _UNSTORABLE,
    "XX001": DAMAGED,
    "XX002": DAMAGED,
}


# A refused connection has no SQLSTATE, only what the server said.
_SAID = (
    (re.compile(r"cannot contain NUL"), _UNSTORABLE),
    (re.compile(r'database ".*" does not exist'), _NO_DATABASE),
    (re.compile(r'authentication failed|no pg_hba\.conf entry|role ".*" '), _REFUSED),
)


def fault_of(error: BaseException) -> Fault | None:
    """Read an error of a driver, or one of ours; None if it is no such error."""
    if isinstance(error, FileReplacedError):
        return REPLACED
    if isinstance(error, UnreadableRecordError):
        return _unreadable(error.location)
    if isinstance(error, UnstorableValueError | UnicodeEncodeError):
        return replace(_UNSTORABLE, problem=f"{_UNSTORABLE.problem} ({describe(error)})")
    if _is_of("sqlite3", error):
        return _of_sqlite(error)
    return _of_psycopg(error) if _is_of("psycopg", error) else None


def _of_sqlite(driver: Any) -> Fault:
    code: int | None = getattr(driver, "sqlite_errorcode", None)
    # The extended codes are above the first byte.
    fault = None if code is None else _faults_of_sqlite().get(code & 0xFF)
    return fault or _unknown(driver)


@cache
def _faults_of_sqlite() -> Mapping[int, Fault]:
    import sqlite3  # noqa: PLC0415 - whoever stores nothing does without

    return {
        sqlite3.SQLITE_BUSY: _BUSY,
        sqlite3.SQLITE_LOCKED: _BUSY,
        sqlite3.SQLITE_FULL: _FULL,
        # A full disk is often reported as a failed write.
        sqlite3.SQLITE_IOERR: Fault(
            "The disk cannot be read or written.", "Look at the disk.", is_transient=True
        ),
        sqlite3.SQLITE_CORRUPT: DAMAGED,
        sqlite3.SQLITE_NOTADB: DAMAGED,
        sqlite3.SQLITE_READONLY: _WRITE_PROTECTED,
        sqlite3.SQLITE_CANTOPEN: _WRITE_PROTECTED,
        sqlite3.SQLITE_PERM: _WRITE_PROTECTED,
        sqlite3.SQLITE_AUTH: _WRITE_PROTECTED,
    }


def _of_psycopg(driver: Any) -> Fault:
    state: str | None = getattr(driver, "sqlstate", None)
    if state is None:
        # The connection broke, could not be made, or the pool had none to give.
        message = str(driver)
        return next((fault for pattern, fault in _SAID if pattern.search(message)), GONE)
    return _OF_POSTGRES.get(state) or _OF_POSTGRES.get(state[:2]) or _unknown(driver)


def storage_error(where: str, fault: Fault, *, is_opening: bool = False) -> StorageError:
    if is_opening or not fault.is_safe:
        return StorageError(where, fault.problem, fault.fix)
    return StorageError(where, f"{fault.problem} {SAFE}", f"{fault.fix} {GO_ON}")


def _unreadable(location: RecordLocation) -> Fault:
    where = f" of {location[0]} at {json.dumps(location[1:])}" if location else ""
    what = "delete the item" if location[:1] == ("replan_items",) else "remove the run"
    return Fault(
        f"A record{where} cannot be read: it was damaged, or another program changed or "
        "inserted it.",
        f"Restore the storage from a copy, or {what}.",
        is_safe=False,
    )


def _unknown(error: BaseException) -> Fault:
    problem = f"The database says: {describe(error)}."
    return Fault(problem, "See the database's log.", is_safe=False)


def _is_of(driver: str, error: BaseException) -> bool:
    # By name, so that a driver need not be loaded.
    return any(
        kind.__module__.startswith(driver) and kind.__name__ == "Error"
        for kind in type(error).__mro__
    )
