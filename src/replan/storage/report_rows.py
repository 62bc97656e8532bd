"""The reports of runs that are over, from the rows of a SQLite file that is not encrypted.

It loads no framework, and is None wherever anything is missing or odd: who opens the storage is
told what is wrong with it.
"""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import TypeVar, get_args

from replan.log.report import LAST_EVENTS, RunReport, kept_report
from replan.ports.run_book import RunRecord
from replan.state.outcomes import Outcome
from replan.storage.databases.cipher import Cipher
from replan.storage.databases.database import Connection
from replan.storage.databases.schema import SCHEMA
from replan.storage.databases.sqlite import SqliteConnection
from replan.storage.log_rows import RememberedTexts, SqlRows
from replan.storage.runs import NEWEST_FIRST, WITH_PREFIX, records

_FACTS = "SELECT name, value FROM replan_facts WHERE name IN ('schema', 'token')"
_OURS = {"schema": SCHEMA.encode(), "token": b""}
_PLAIN = Cipher()
_PAGE = 100  # runs that are read at once

T = TypeVar("T")


def report_in_file(path: Path, name: str | None) -> RunReport | None:
    """Read the run whose id begins so, or without a name the one that began last."""

    def read(connection: Connection) -> RunReport | None:
        wanted = [len(name or ""), name or "", 2]
        runs = records(connection, _PLAIN, f"{WITH_PREFIX} LIMIT ?", wanted)
        is_one = len(runs) == 1 or (name is None and runs)
        return _report(connection, runs[0]) if is_one else None

    return None if name == "" else _in_file(path, read)


def reports_in_file(
    path: Path, takes: Callable[[RunReport], bool], most: int
) -> list[RunReport] | None:
    """Read the newest runs that are taken, each without all but its last events.

    None where one of them, or of those in front of it, is not over.
    """

    def read(connection: Connection) -> list[RunReport] | None:
        reports = list[RunReport]()
        for run in _newest(connection):
            if len(reports) == most:
                break
            report = _report(connection, run, LAST_EVENTS)
            if report is None:
                return None
            reports += [report] if takes(report) else []
        return reports

    return _in_file(path, read)


def _in_file(path: Path, read: Callable[[Connection], T]) -> T | None:
    """Read from a storage file that is only looked at; None if it cannot be read in this way."""
    if not path.is_file():
        return None
    try:
        with (
            closing(SqliteConnection(f"{path.resolve().as_uri()}?mode=ro")) as connection,
            connection.transaction(),
        ):
            is_ours = dict(connection.query(_FACTS)) == _OURS
            return read(connection) if is_ours else None
    except (sqlite3.Error, ValueError, TypeError, LookupError, RecursionError):
        return None


def _newest(connection: Connection) -> Iterator[RunRecord]:
    for start in count(0, _PAGE):
        tail = f"ORDER BY {NEWEST_FIRST} LIMIT ? OFFSET ?"
        runs = records(connection, _PLAIN, tail, [_PAGE, start])
        yield from runs
        if len(runs) < _PAGE:
            return


def _report(connection: Connection, run: RunRecord, last: int | None = None) -> RunReport | None:
    if run.outcome not in get_args(Outcome):
        return None
    rows = SqlRows(connection, _PLAIN, run.run_id, RememberedTexts())
    kept = kept_report(rows, run.run_id, last)
    # Without it, the run went on since, or was never shown to be over.
    return None if kept is None else RunReport(**run.reported, **kept)
