"""A first look at a run in a SQLite file that is not encrypted: rows alone, no framework.

It shows something early, and returns None wherever that is not certain: opening the storage
reports what is wrong with it.
"""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from replan.log.attempt_rows import LedgerEntry, ledger_of

_RUN = "SELECT run_id, title, outcome, started_at, updated_at FROM replan_runs"
_LAST = f"{_RUN} ORDER BY started_at DESC, run_id LIMIT 1"
_NAMED = f"{_RUN} WHERE substr(run_id, 1, length(:name)) = :name LIMIT 2"
_EVENTS = "SELECT seq, event FROM replan_log WHERE run_id = ? AND seq IS NOT NULL ORDER BY number"
_VALUES = (
    "SELECT value FROM replan_log WHERE run_id = ?1 AND substr(key, 1, length(?2)) = ?2"
    " ORDER BY number"
)
_ATTEMPTS = ("attempt/", "end/")
_LABELS = "SELECT name, value FROM replan_labels WHERE run_id = ? ORDER BY name"
_CHARGED = (
    "SELECT settled_calls + reserved_calls AS calls, settled_tokens + reserved_tokens AS tokens,"
    " settled_cost + reserved_cost AS cost FROM replan_spent WHERE run_id = ? AND scope = 'run'"
)
_TOKEN = "SELECT value FROM replan_facts WHERE name = 'token'"  # noqa: S105 - of a key, no key
_MOMENTS = ("started_at", "updated_at")


@dataclass(frozen=True)
class Glimpse:
    """The rows of a run, their times and texts read."""

    run: Mapping[str, Any]
    labels: Mapping[str, str]
    charged: Mapping[str, Any] | None
    attempts: Sequence[LedgerEntry]
    events: Sequence[tuple[int, Mapping[str, Any]]]  # with their numbers


def glimpse(path: Path, name: str | None) -> Glimpse | None:
    """Read the run whose id begins so, or without a name the one that began last."""
    if not path.is_file():
        return None
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            connection.row_factory = sqlite3.Row
            return _read(connection, name)
    except (sqlite3.Error, ValueError, TypeError, RecursionError):
        return None


def _read(connection: sqlite3.Connection, name: str | None) -> Glimpse | None:
    if [bytes(row["value"]) for row in connection.execute(_TOKEN)] != [b""]:
        return None
    query = connection.execute(_NAMED, {"name": name}) if name else connection.execute(_LAST)
    found = query.fetchall()
    if len(found) != 1:
        return None
    run = _read_row(found[0], "title")
    own = (run["run_id"],)
    return Glimpse(
        run=run,
        labels={row["name"]: row["value"] for row in connection.execute(_LABELS, own)},
        charged=next((dict(row) for row in connection.execute(_CHARGED, own)), None),
        attempts=ledger_of(*(_values(connection, *own, family) for family in _ATTEMPTS)),
        events=[(row["seq"], json.loads(row["event"])) for row in connection.execute(_EVENTS, own)],
    )


def _values(connection: sqlite3.Connection, run_id: str, family: str) -> list[Any]:
    """The values of the rows of a family; one with long texts is not read early."""
    stored = [json.loads(row["value"]) for row in connection.execute(_VALUES, (run_id, family))]
    return [value for (value,) in stored]


def _read_row(row: sqlite3.Row, text: str) -> dict[str, Any]:
    fields = {**dict(row), text: json.loads(row[text])}
    moments = {name: fields[name] for name in _MOMENTS if fields.get(name)}
    return fields | {name: datetime.fromisoformat(value) for name, value in moments.items()}
