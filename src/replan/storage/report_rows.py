"""The reports of runs that are over, from the rows of a SQLite file that is not encrypted.

It loads no framework, and is None wherever anything is missing or odd: who opens the storage is
told what is wrong with it.
"""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar, get_args

from replan.base.values import restored
from replan.log.amounts import Spending
from replan.log.kept_events import events_of
from replan.log.report import LAST_EVENTS, RunReport, StateFacts, masked
from replan.log.rows import REPORT, REQUEST, LoggedEvent, Request
from replan.state.outcomes import Outcome
from replan.storage.log_texts import whole_value
from replan.storage.schema import SCHEMA

_RUNS = (
    "SELECT run_id, title, team, outcome, started_at, updated_at FROM replan_runs"
    " WHERE substr(run_id, 1, length(:name)) = :name ORDER BY started_at DESC, run_id"
)
_EVENTS = (
    "SELECT seq, event FROM replan_log WHERE run_id = ? AND seq IS NOT NULL"
    " ORDER BY seq DESC LIMIT ?"
)
_VALUES = (
    "SELECT value FROM replan_log WHERE run_id = ?1 AND substr(key, 1, length(?2)) = ?2"
    " ORDER BY number"
)
_TEXT = "SELECT text FROM replan_texts WHERE run_id = ? AND ref = ?"
_LABELS = "SELECT name, value FROM replan_labels WHERE run_id = ? ORDER BY name"
_CHARGED = (
    "SELECT settled_calls + reserved_calls AS calls, settled_tokens + reserved_tokens AS tokens,"
    " settled_cost + reserved_cost AS cost FROM replan_spent WHERE run_id = ? AND scope = 'run'"
)
_FACTS = "SELECT name, value FROM replan_facts WHERE name IN ('schema', 'token')"

_ALL = -1  # events

T = TypeVar("T")


def report_in_file(path: Path, name: str | None) -> RunReport | None:
    """Read the run whose id begins so, or without a name the one that began last."""

    def read(connection: sqlite3.Connection) -> RunReport | None:
        runs = connection.execute(_RUNS, {"name": name or ""}).fetchmany(2)
        is_one = len(runs) == 1 or (name is None and runs)
        return _report(connection, runs[0], _ALL) if is_one else None

    return None if name == "" else _in_file(path, read)


def reports_in_file(
    path: Path, takes: Callable[[RunReport], bool], most: int
) -> list[RunReport] | None:
    """Read the newest runs that are taken, each without all but its last events.

    None where one of them, or of those in front of it, is not over.
    """

    def read(connection: sqlite3.Connection) -> list[RunReport] | None:
        reports = list[RunReport]()
        for run in connection.execute(_RUNS, {"name": ""}):
            if len(reports) == most:
                break
            report = _report(connection, run, LAST_EVENTS)
            if report is None:
                return None
            reports += [report] if takes(report) else []
        return reports

    return _in_file(path, read)


def _in_file(path: Path, read: Callable[[sqlite3.Connection], T]) -> T | None:
    if not path.is_file():
        return None
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            connection.row_factory = sqlite3.Row
            facts = {row["name"]: bytes(row["value"]) for row in connection.execute(_FACTS)}
            is_ours = facts.get("schema") == SCHEMA.encode()
            return read(connection) if is_ours and facts.get("token") == b"" else None
    except (sqlite3.Error, ValueError, TypeError, LookupError, RecursionError):
        return None


def _report(connection: sqlite3.Connection, run: sqlite3.Row, most: int) -> RunReport | None:
    """The report of a run, with so many of its events; of a part of them only what lists show."""
    run_id: str = run["run_id"]
    if run["outcome"] not in get_args(Outcome):
        return None
    rows = connection.execute(_EVENTS, (run_id, most)).fetchall()[::-1]
    logged = [LoggedEvent(seq=row["seq"], event=json.loads(row["event"])) for row in rows]
    kept = _values(connection, run_id, f"{REPORT}{logged[-1].seq}") if logged else []
    if len(kept) != 1:
        # It went on since, or was never shown to be over.
        return None
    facts = restored(StateFacts, kept[0])
    team: dict[str, Any] = json.loads(run["team"]) or {}
    asked = _values(connection, run_id, REQUEST) if most == _ALL else []
    requests = [Request(run_id=run_id, **each) for each in asked]
    charged = connection.execute(_CHARGED, (run_id,)).fetchone()
    return RunReport(
        **dict(facts),
        run_id=run_id,
        title=json.loads(run["title"]),
        team=team.get("name", ""),
        team_source=team.get("source", ""),
        unsafe=team.get("unsafe", ()),
        currency=team.get("currency", ""),
        outcome=run["outcome"],
        started_at=datetime.fromisoformat(run["started_at"]),
        last_seen_at=datetime.fromisoformat(run["updated_at"]),
        labels={row["name"]: row["value"] for row in connection.execute(_LABELS, (run_id,))},
        spent={"run": Spending(**dict(charged))} if charged else {},
        requests=masked(requests, facts.questions),
        events=tuple(events_of(run_id, logged)),
    )


def _values(connection: sqlite3.Connection, run_id: str, prefix: str) -> list[Any]:
    """The values of the rows whose keys begin so."""

    def text_of(ref: str) -> str | None:
        row = connection.execute(_TEXT, (run_id, ref)).fetchone()
        return None if row is None else json.loads(row["text"])

    stored = connection.execute(_VALUES, (run_id, prefix))
    return [whole_value(json.loads(row["value"]), text_of) for row in stored]
