"""The book of runs in SQL: one implementation for SQLite and PostgreSQL."""

import secrets
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import datetime
from itertools import count
from typing import Any

from pydantic import JsonValue
from sqlalchemy import (
    ColumnElement,
    FromClause,
    Select,
    case,
    delete,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from replan.adapters.storage.database import Database
from replan.adapters.storage.faults import readable
from replan.adapters.storage.stored_values import places
from replan.adapters.storage.stored_values.sealing import Seal
from replan.adapters.storage.tables import schema
from replan.adapters.thread_holds import Holds
from replan.ports.run_book import (
    BY_NEED,
    NOT_OVER,
    KeptText,
    LoggedEvent,
    Request,
    RunOrder,
    RunOutcome,
    RunRecord,
)

ForgetThread = Callable[[str], Awaitable[None]]  # removes the checkpoints of a thread


_NUMBERS = 1  # what of a run is locked while its events are numbered


class SqlRunBook:
    """Rows about runs; removing one removes all that is recorded of it."""

    def __init__(
        self,
        database: Database,
        seal: Seal,
        holds: Holds,
        forget_thread: ForgetThread,
    ) -> None:
        self._database = database
        self._seal = seal
        self._holds = holds
        self._forget_thread = forget_thread

    async def begin(self, record: RunRecord) -> None:
        row = {column.name: getattr(record, column.name) for column in schema.runs.columns}
        row |= {
            "title": self._seal.close(record.title, *places.of_run(record.run_id, "title")),
            "order": self._seal.close(record.order, *places.of_run(record.run_id, "order")),
        }
        statement = (
            self._database.insert(schema.runs)
            .values(**row)
            .on_conflict_do_update(
                index_elements=["run_id"],
                set_={"outcome": record.outcome, "updated_at": record.updated_at},
            )
        )
        labels = [
            {"run_id": record.run_id, "name": name, "value": value}
            for name, value in record.labels.items()
        ]
        label = self._database.insert(schema.labels).on_conflict_do_nothing()

        async def work(connection: AsyncConnection) -> None:
            await connection.execute(statement)
            if labels:
                await connection.execute(label, labels)

        await self._database.write(work)

    async def update(self, run_id: str, outcome: RunOutcome, at: datetime) -> None:
        statement = (
            update(schema.runs)
            .where(schema.runs.c.run_id == run_id)
            .values(outcome=outcome, updated_at=at)
        )
        await self._database.write(lambda connection: connection.execute(statement))

    async def get(self, run_id: str) -> RunRecord | None:
        found = await self._records(select(schema.runs).where(schema.runs.c.run_id == run_id))
        return found[0] if found else None

    async def find(self, prefix: str) -> Sequence[RunRecord]:
        begins = func.substr(schema.runs.c.run_id, 1, len(prefix)) == prefix
        return await self._records(_newest_first(select(schema.runs).where(begins)))

    async def recent(
        self,
        limit: int,
        labels: Mapping[str, str] | None = None,
        *,
        behind: RunRecord | None = None,
        outcomes: Collection[RunOutcome] = (),
        order: RunOrder = "began",
    ) -> Sequence[RunRecord]:
        query, table = select(schema.runs), schema.labels
        if outcomes:
            query = query.where(schema.runs.c.outcome.in_(outcomes))
        if behind is not None:
            began, own_id = schema.runs.c.started_at, schema.runs.c.run_id
            same = (began == behind.started_at) & (own_id > behind.run_id)
            later = (began < behind.started_at) | same
            if order != "began":
                # The database compares what it computed itself: nothing is rounded on the way.
                place, other = self._order_key(order, schema.runs), schema.runs.alias()
                ahead = select(self._order_key(order, other)).where(other.c.run_id == behind.run_id)
                of_behind = ahead.scalar_subquery()
                later = (place < of_behind) | ((place == of_behind) & later)
            query = query.where(later)
        if order != "began":
            query = query.order_by(self._order_key(order, schema.runs).desc())
        for name, value in (labels or {}).items():
            labelled = select(table.c.run_id).where(table.c.name == name, table.c.value == value)
            query = query.where(schema.runs.c.run_id.in_(labelled))
        return await self._records(_newest_first(query).limit(limit))

    def _order_key(self, order: RunOrder, runs: FromClause) -> ColumnElement[Any]:
        """What runs with more of it stand first by."""
        match order:
            case "began":
                return runs.c.started_at
            case "outcome":
                needs = {outcome: -place for place, outcome in enumerate(BY_NEED)}
                return case(needs, value=runs.c.outcome, else_=-len(BY_NEED))
            case "took":
                return self._database.seconds_between(
                    runs.c.started_at, runs.c.updated_at, runs.c.outcome == "running"
                )
            case amount:
                spent = schema.spending
                charged = spent.c[f"settled_{amount}"] + spent.c[f"reserved_{amount}"]
                own = (spent.c.run_id == runs.c.run_id) & (spent.c.scope == "run")
                return func.coalesce(select(charged).where(own).scalar_subquery(), 0)

    async def count_unfinished(self, label: str) -> Mapping[tuple[str, RunOutcome], int]:
        table, named = schema.runs, schema.labels
        has = (named.c.run_id == table.c.run_id) & (named.c.name == label)
        value = func.coalesce(named.c.value, "").label("value")
        query = (
            select(value, table.c.outcome, func.count().label("number"))
            .select_from(table.outerjoin(named, has))
            .where(table.c.outcome.in_(NOT_OVER))
            .group_by(value, table.c.outcome)
        )
        rows = await self._database.rows(query, lambda row: row)
        return {(row.value, row.outcome): row.number for row in rows}

    async def remove(self, run_id: str) -> None:
        table = schema.runs
        own = select(table.c.thread_id).where(table.c.run_id == run_id)
        thread = await self._database.read(lambda connection: connection.scalar(own))
        if thread is None:
            await self._forget(run_id)
            return
        others = select(func.count()).where(table.c.thread_id == thread, table.c.run_id != run_id)
        async with self._holds.holding(thread) as owner:
            # The run's own row goes last: what is killed between can be begun again.
            if not await self._database.read(lambda connection: connection.scalar(others)):
                with owner.at_work():
                    await self._forget_thread(thread)
            await self._forget(run_id)

    async def add_events(
        self, run_id: str, events: Sequence[JsonValue], texts: Sequence[KeptText] = ()
    ) -> int:
        table, batch, tries = schema.events, secrets.token_hex(16), count()
        rows = [
            {
                "run_id": run_id,
                "batch": batch,
                "event": self._seal.close(event, *places.of_event(run_id, batch, number)),
            }
            for number, event in enumerate(events, 1)
        ]
        kept = [self._text_row(run_id, each) for each in texts]
        keep = self._database.insert(schema.texts).on_conflict_do_nothing()

        async def work(connection: AsyncConnection) -> int:
            # Done already, if the connection broke after the commit and before its receipt.
            done = select(func.min(table.c.seq)).where(table.c.batch == batch)
            if next(tries) and (first := await connection.scalar(done)) is not None:
                return first
            await self._database.take_run(connection, run_id, _NUMBERS)
            newest = select(func.max(table.c.seq)).where(table.c.run_id == run_id)
            first = (await connection.scalar(newest) or 0) + 1
            numbered = [{**row, "seq": seq} for seq, row in enumerate(rows, first)]
            if numbered:
                await connection.execute(insert(table), numbered)
            if kept:
                await connection.execute(keep, kept)
            return first

        return await self._database.write(work)

    async def text(self, run_id: str, ref: str) -> str | None:
        table, name = schema.texts, self._seal.named(ref)
        query = select(table.c.text).where(table.c.run_id == run_id, table.c.ref == name)

        def read_row(row: Any) -> str:
            return self._seal.open(row.text, *places.of_text(run_id, ref))

        return next(iter(await self._database.rows(query, read_row)), None)

    async def forget_texts(self, before: datetime) -> None:
        statement = delete(schema.texts).where(schema.texts.c.at < before)
        await self._database.write(lambda connection: connection.execute(statement))

    async def events(self, run_id: str, after: int = 0) -> Sequence[LoggedEvent]:
        table = schema.events
        number = func.row_number().over(partition_by=table.c.batch, order_by=table.c.id)
        placed = (
            select(table.c.event, table.c.batch, table.c.seq, number.label("number"))
            .where(table.c.run_id == run_id)
            .subquery()
        )
        query = select(placed).where(placed.c.seq > after).order_by(placed.c.seq)

        def read_row(row: Any) -> LoggedEvent:
            event = self._seal.open(row.event, *places.of_event(run_id, row.batch, row.number))
            return LoggedEvent(seq=row.seq, event=event)

        return await self._database.rows(query, read_row)

    async def newest_events(
        self, run_ids: Collection[str], most: int
    ) -> Mapping[str, Sequence[LoggedEvent]]:
        table, other = schema.events, schema.events.alias()
        runs = schema.runs.c.run_id
        newest = select(func.max(other.c.seq)).where(other.c.run_id == runs).scalar_subquery()
        ends = select(runs, newest.label("newest")).where(runs.in_(run_ids)).subquery()
        is_before = (other.c.batch == table.c.batch) & (other.c.id <= table.c.id)
        number = select(func.count()).where(is_before).scalar_subquery()
        is_new = (table.c.run_id == ends.c.run_id) & (table.c.seq > ends.c.newest - most)
        columns = (table.c.run_id, table.c.event, table.c.batch, table.c.seq)
        query = select(*columns, number.label("number")).join(ends, is_new).order_by(table.c.seq)

        def read_row(row: Any) -> tuple[str, LoggedEvent]:
            place = places.of_event(row.run_id, row.batch, row.number)
            event = self._seal.open(row.event, *place)
            return row.run_id, LoggedEvent(seq=row.seq, event=event)

        found: dict[str, list[LoggedEvent]] = {each: [] for each in run_ids}
        for run_id, event in await self._database.rows(query, read_row):
            found[run_id].append(event)
        return found

    async def add_request(self, request: Request) -> None:
        row = {name: getattr(request, name) for name in ("run_id", "name", "kind", "at")}
        value: JsonValue = {"by": request.by, "answers": request.answers}
        sealed = self._seal.close(value, *places.of_request(request.run_id, request.name))
        statement = self._database.insert(schema.requests).values(**row, value=sealed)
        again_is_harmless = statement.on_conflict_do_nothing()
        await self._database.write(lambda connection: connection.execute(again_is_harmless))

    async def requests(self, run_ids: Collection[str], *, taken: bool = False) -> Sequence[Request]:
        table = schema.requests
        query = select(table).where(table.c.run_id.in_(run_ids))
        if not taken:
            query = query.where(table.c.taken_at.is_(None))
        return await self._database.rows(query.order_by(table.c.at, table.c.name), self._request)

    async def take_requests(self, requests: Collection[Request], at: datetime) -> None:
        table, names = schema.requests, [request.name for request in requests]
        statement = update(table).where(table.c.name.in_(names)).values(taken_at=at)
        await self._database.write(lambda connection: connection.execute(statement))

    async def _forget(self, run_id: str) -> None:
        async def work(connection: AsyncConnection) -> None:
            for each in schema.OF_A_RUN:
                await connection.execute(delete(each).where(each.c.run_id == run_id))

        await self._database.write(work)

    async def _records(self, query: Select[Any]) -> Sequence[RunRecord]:
        async def work(connection: AsyncConnection) -> Sequence[RunRecord]:
            rows = (await connection.execute(query)).all()
            labels = await _labels(connection, [row.run_id for row in rows])
            with readable():
                return [self._record(row, labels.get(row.run_id, {})) for row in rows]

        return await self._database.read(work)

    def _request(self, row: Any) -> Request:
        value: Any = self._seal.open(row.value, *places.of_request(row.run_id, row.name))
        fields = {name: getattr(row, name) for name in ("run_id", "name", "kind", "at")}
        return Request(**fields, **value)

    def _text_row(self, run_id: str, kept: KeptText) -> dict[str, Any]:
        sealed = self._seal.close(kept.text, *places.of_text(run_id, kept.ref))
        return {"run_id": run_id, "ref": self._seal.named(kept.ref), "at": kept.at, "text": sealed}

    def _record(self, row: Any, labels: Mapping[str, str]) -> RunRecord:
        fields = {column.name: getattr(row, column.name) for column in schema.runs.columns}
        opened = {
            name: self._seal.open(fields[name], *places.of_run(row.run_id, name))
            for name in ("title", "order")
        }
        return RunRecord(**{**fields, **opened}, labels=dict(labels))


async def _labels(
    connection: AsyncConnection, run_ids: Collection[str]
) -> dict[str, dict[str, str]]:
    table, found = schema.labels, dict[str, dict[str, str]]()
    query = select(table).where(table.c.run_id.in_(run_ids)).order_by(table.c.name)
    for row in await connection.execute(query) if run_ids else ():
        found.setdefault(row.run_id, {})[row.name] = row.value
    return found


def _newest_first(query: Select[Any]) -> Select[Any]:
    return query.order_by(schema.runs.c.started_at.desc(), schema.runs.c.run_id)
