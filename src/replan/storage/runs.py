"""Which runs there are, in SQL: their status, what they are found by, and what continues them."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from replan.base.values import restored
from replan.log.rows import FORKED, span
from replan.ports.ownership import ThreadLocks
from replan.ports.run_book import BY_NEED, RunOrder, RunOutcome, RunRecord, TeamIdentity
from replan.state.limits import RunSettings
from replan.state.outcomes import NOT_OVER
from replan.storage.databases.cipher import Cipher
from replan.storage.databases.database import Connection, Database, Row, first, marks, moment
from replan.storage.databases.schema import delete_runs, delete_thread

_COLUMNS = "run_id, thread_id, title, team_order, settings, team, outcome, started_at, updated_at"
_BEGIN = (
    f"INSERT INTO replan_runs ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (run_id)"
    " DO UPDATE SET team = excluded.team, outcome = excluded.outcome,"
    " updated_at = excluded.updated_at"
)
_LABEL = (
    "INSERT INTO replan_labels (run_id, name, value) VALUES (?, ?, ?)"
    " ON CONFLICT (run_id, name) DO NOTHING"
)
_HAS_GONE_BACK = (
    "EXISTS (SELECT 1 FROM replan_log WHERE replan_log.run_id = replan_runs.run_id"
    " AND key >= ? AND key < ?)"
)
NEWEST_FIRST = "started_at DESC, run_id"
WITH_PREFIX = f"WHERE substr(run_id, 1, ?) = ? ORDER BY {NEWEST_FIRST}"


class Runs:
    """Rows about runs; removing one removes all that is recorded of it."""

    def __init__(self, database: Database, cipher: Cipher, holds: ThreadLocks) -> None:
        """Prepare.

        Args:
            database: Where they are.
            cipher: Of titles, and of what is needed to continue.
            holds: Which run works on which thread.
        """
        self._database = database
        self._cipher = cipher
        self._holds = holds

    async def begin(self, record: RunRecord) -> None:
        """Enter a run; an existing one keeps its order, settings, title and beginning."""
        encrypt, run_id = self._cipher.encrypt, record.run_id
        # What the caller did not set stays the team's.
        settings = record.settings and record.settings.model_dump(mode="json", exclude_unset=True)
        row = [
            run_id,
            record.thread_id,
            encrypt(record.title, "replan_runs", run_id, "title"),
            encrypt(record.order, "replan_runs", run_id, "team_order"),
            encrypt(settings, "replan_runs", run_id, "settings"),
            encrypt(record.team and record.team.model_dump(), "replan_runs", run_id, "team"),
            record.outcome,
            moment(record.started_at),
            moment(record.updated_at),
        ]
        labels = [(run_id, name, value) for name, value in record.labels.items()]

        def work(connection: Connection) -> None:
            connection.change(_BEGIN, row)
            if labels:
                connection.change_many(_LABEL, labels)

        await self._database.write(work)

    async def update(self, run_id: str, outcome: RunOutcome, at: datetime) -> None:
        """Set the status of a run; an unknown run is ignored."""
        statement = "UPDATE replan_runs SET outcome = ?, updated_at = ? WHERE run_id = ?"
        values = [outcome, moment(at), run_id]
        await self._database.write(lambda connection: connection.change(statement, values))

    async def get(self, run_id: str) -> RunRecord | None:
        """The run with exactly this id."""
        records = await self._records("WHERE run_id = ?", [run_id])
        return records[0] if records else None

    async def find(self, prefix: str) -> Sequence[RunRecord]:
        """The runs whose ids have this prefix, the newest first."""
        return await self._records(WITH_PREFIX, [len(prefix), prefix])

    async def recent(
        self,
        limit: int,
        labels: Mapping[str, str] | None = None,
        *,
        behind: RunRecord | None = None,
        outcomes: Collection[RunOutcome] = (),
        order: RunOrder = "began",
    ) -> Sequence[RunRecord]:
        """The first runs in an order, by default the newest; those that have these labels.

        With `behind`, those that come after this run in that order. With `outcomes`, those whose
        records are so, and those that went back to an older state. Of equal runs, the newest come
        first. One whose record says `running` took the time until now.
        """
        place = None if order == "began" else self._place_in(order)
        conditions, values = list[str](), list[object]()
        if outcomes:
            # What LangGraph's own methods made of one that went back is in its state alone.
            conditions.append(f"(outcome IN ({marks(len(outcomes))}) OR {_HAS_GONE_BACK})")
            values += [*outcomes, *span(FORKED)]
        if behind is not None:
            later = "(started_at < ? OR (started_at = ? AND run_id > ?))"
            began = moment(behind.started_at)
            cursor_values = [began, began, behind.run_id]
            if place is not None:
                # The database compares what it computed itself: nothing is rounded on the way.
                there = f"(SELECT {place} FROM replan_runs WHERE run_id = ?)"
                later = f"({place} < {there} OR ({place} = {there} AND {later}))"
                cursor_values = [behind.run_id, behind.run_id, *cursor_values]
            conditions.append(later)
            values += cursor_values
        for name, value in (labels or {}).items():
            conditions.append(
                "run_id IN (SELECT run_id FROM replan_labels WHERE name = ? AND value = ?)"
            )
            values += [name, value]
        where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
        ahead = "" if place is None else f"{place} DESC, "
        tail = f"{where} ORDER BY {ahead}{NEWEST_FIRST} LIMIT ?"
        return await self._records(tail, [*values, limit])

    def _place_in(self, order: RunOrder) -> str:
        """What runs with more of it stand first by, as SQL of a row of `replan_runs`."""
        match order:
            case "began":
                return "started_at"
            case "outcome":
                cases = " ".join(
                    f"WHEN '{outcome}' THEN {-at}" for at, outcome in enumerate(BY_NEED)
                )
                return f"CASE outcome {cases} ELSE {-len(BY_NEED)} END"
            case "took" if self._database.is_postgres:
                ended = (
                    "CASE outcome WHEN 'running' THEN clock_timestamp()"
                    " ELSE updated_at::timestamptz END"
                )
                return f"extract(epoch FROM {ended}) - extract(epoch FROM started_at::timestamptz)"
            case "took":
                ended = "CASE outcome WHEN 'running' THEN 'now' ELSE updated_at END"
                return f"(julianday({ended}) - julianday(started_at))"
            case amount:
                charged = f"settled_{amount} + reserved_{amount}"
                spent_of_run = "replan_spent.run_id = replan_runs.run_id AND scope = 'run'"
                return f"coalesce((SELECT {charged} FROM replan_spent WHERE {spent_of_run}), 0)"

    async def count_unfinished(self, label: str) -> Mapping[tuple[str, RunOutcome], int]:
        """How many runs are not over, by their value of a label ("" without it) and outcome."""
        query = f"""
            SELECT coalesce(value, ''), outcome, count(*) FROM replan_runs
            LEFT JOIN replan_labels
                ON replan_labels.run_id = replan_runs.run_id AND replan_labels.name = ?
            WHERE outcome IN ({marks(len(NOT_OVER))}) GROUP BY 1, 2
        """
        values = [label, *NOT_OVER]
        rows = await self._database.read(lambda connection: connection.query(query, values))
        return {(value, outcome): number for value, outcome, number in rows}

    async def remove(self, run_id: str) -> None:
        """Remove a run with its log, and its thread if no other run is on it.

        Raises:
            ThreadBusyError: A run works on the thread.
        """
        query = "SELECT thread_id FROM replan_runs WHERE run_id = ?"
        others = "SELECT count(*) FROM replan_runs WHERE thread_id = ? AND run_id <> ?"
        thread = first(await self._database.read(lambda reading: reading.query(query, [run_id])))

        def work(connection: Connection) -> None:
            if thread is not None and not first(connection.query(others, [thread, run_id])):
                delete_thread(connection, thread)
            delete_runs(connection, [(run_id,)])

        if thread is None:
            await self._database.write(work)
            return
        async with self._holds.lock(thread) as owner:
            with owner.at_work():
                await self._database.write(work)

    async def _records(self, tail: str, values: Sequence[object]) -> Sequence[RunRecord]:
        return await self._database.read(
            lambda connection: records(connection, self._cipher, tail, values)
        )


def records(
    connection: Connection, cipher: Cipher, tail: str, values: Sequence[object]
) -> list[RunRecord]:
    """The runs that the tail of a query finds, in its order."""
    rows = connection.query(f"SELECT {_COLUMNS} FROM replan_runs {tail}", values)
    labels = _labels(connection, [row[0] for row in rows])
    return [_record(cipher, row, labels.get(row[0], {})) for row in rows]


def _record(cipher: Cipher, row: Row, labels: Mapping[str, str]) -> RunRecord:
    run_id, thread_id, title, order, settings, team, outcome, started_at, updated_at = row
    settings = cipher.decrypt(settings, "replan_runs", run_id, "settings")
    team = cipher.decrypt(team, "replan_runs", run_id, "team")
    return RunRecord(
        run_id=run_id,
        thread_id=thread_id,
        title=cipher.decrypt(title, "replan_runs", run_id, "title"),
        order=cipher.decrypt(order, "replan_runs", run_id, "team_order"),
        settings=settings and restored(RunSettings, settings),
        team=team and restored(TeamIdentity, team),
        outcome=outcome,
        started_at=datetime.fromisoformat(started_at),
        updated_at=datetime.fromisoformat(updated_at),
        labels=dict(labels),
    )


def _labels(connection: Connection, run_ids: Sequence[Any]) -> dict[str, dict[str, str]]:
    labels = dict[str, dict[str, str]]()
    query = "SELECT run_id, name, value FROM replan_labels WHERE run_id IN ({}) ORDER BY name"
    # SQLite takes some ten thousand values in a statement.
    for start in range(0, len(run_ids), 1_000):
        part = run_ids[start : start + 1_000]
        for run_id, name, value in connection.query(query.format(marks(len(part))), part):
            labels.setdefault(run_id, {})[name] = value
    return labels
