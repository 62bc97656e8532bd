"""The journal in SQL: one implementation for SQLite and PostgreSQL."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from pydantic import JsonValue
from sqlalchemy import Table, and_, bindparam, delete, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from replan.adapters.storage.database import Database
from replan.adapters.storage.stored_values import places
from replan.adapters.storage.stored_values.sealing import Seal
from replan.adapters.storage.tables import schema
from replan.adapters.storage.tables.adopted_rows import insert_rows
from replan.ports.journal import (
    UNKNOWN_ENDS,
    Attempt,
    AttemptOutcome,
    Bound,
    Charged,
    LedgerEntry,
    Refused,
    Reservation,
    RunRows,
    Spending,
    begun_already,
)
from replan.spending.scopes import ROUNDING, first_refusal
from replan.state.results import SpecialistResult, result_as_json
from replan.values import restored

_Totals = tuple[Spending, Spending]  # what of a scope is settled, and what is reserved

_AMOUNTS = 0  # what of a run is locked while its amounts are reckoned with

_RESULT = select(schema.results.c.key, schema.results.c.result).where(
    schema.results.c.run_id == bindparam("run_id", type_=schema.results.c.run_id.type),
    schema.results.c.key.in_([bindparam("attempt_key"), bindparam("result_key")]),
)
_BEGUN = {
    column.name: bindparam(column.name, type_=column.type)
    for column in schema.attempts.columns
    if column.name not in ("id", "ended_at")
}
_NEW = select(*_BEGUN.values()).where(~_RESULT.exists())
"""The row of an attempt that begins, if its result is not on record."""

_HELD = [
    schema.reservations.c[name].label(f"held_{name}") for name in ("id", "calls", "tokens", "cost")
]
_WITH_HELD = schema.spending.outerjoin(
    schema.reservations,
    and_(
        schema.spending.c.run_id == schema.reservations.c.run_id,
        schema.spending.c.scope == schema.reservations.c.scope,
    ),
)
"""The amounts of each scope, in addition to those of each reservation that it has."""


class SqlJournal:
    """Rows that outlive the process; they go when their run is removed."""

    def __init__(self, database: Database, seal: Seal) -> None:
        self._database = database
        self._seal = seal
        # One statement, so that a start costs as much as one that looks for nothing.
        self._begin = (
            self._database.insert(schema.attempts)
            .from_select(list(_BEGUN), _NEW)
            .on_conflict_do_nothing()
            .returning(schema.attempts.c.id)
        )

    async def reserve(self, reservation: Reservation, bounds: Sequence[Bound]) -> Refused | None:
        amount, run_id = reservation.amount, reservation.run_id

        async def work(connection: AsyncConnection) -> Refused | None:
            await self._database.take_run(connection, run_id, _AMOUNTS)
            if await connection.scalar(
                select(schema.reservations.c.id).where(
                    _is_reservation(schema.reservations, reservation)
                )
            ):
                return None
            scopes = await _scopes(connection, run_id, [bound.scope for bound in bounds])
            charged = {
                each.scope: scopes.get(each.scope, (Spending(), Spending())) for each in bounds
            }
            for bound in bounds:
                settled, reserved = charged[bound.scope]
                refused = first_refusal(bound, amount, settled + reserved)
                if refused is not None:
                    return refused
            more = {scope: (settled, held + amount) for scope, (settled, held) in charged.items()}
            await self._charge(connection, run_id, more)
            row = {"run_id": run_id, "id": reservation.id, **dict(amount)}
            rows = [{**row, "scope": scope} for scope in more]
            if rows:
                await connection.execute(self._database.insert(schema.reservations), rows)
            return None

        return await self._database.write(work)

    async def settle(self, reservation: Reservation, used: Spending) -> None:
        table, run_id = schema.reservations, reservation.run_id

        async def work(connection: AsyncConnection) -> None:
            await self._database.take_run(connection, run_id, _AMOUNTS)
            rows = await connection.execute(
                delete(table)
                .where(_is_reservation(table, reservation))
                .returning(table.c.scope, table.c.calls, table.c.tokens, table.c.cost)
            )
            charged = {row.scope: _spending(row) for row in rows}
            scopes = await _scopes(connection, run_id, list(charged))
            left = {
                scope: (settled + used, _subtract(reserved, charged[scope]))
                for scope, (settled, reserved) in scopes.items()
            }
            await self._charge(connection, run_id, left)

        await self._database.write(work)

    async def spent(self, run_id: str) -> Mapping[str, Spending]:
        scopes = await self._database.read(lambda connection: _scopes(connection, run_id))
        return {scope: settled + reserved for scope, (settled, reserved) in scopes.items()}

    async def charged(self, run_id: str) -> Mapping[str, Charged]:
        query = select(schema.spending, *_HELD).select_from(_WITH_HELD)
        query = query.where(schema.spending.c.run_id == run_id)

        def read(row: Any) -> tuple[str, Spending, dict[str, Spending]]:
            spent = _spending(row, "settled_") + _spending(row, "reserved_")
            held = {} if row.held_id is None else {row.held_id: _spending(row, "held_")}
            return row.scope, spent, held

        spent, reserved = dict[str, Spending](), dict[str, dict[str, Spending]]()
        for scope, amount, held in await self._database.rows(query, read):
            spent[scope] = amount
            reserved.setdefault(scope, {}).update(held)
        return {name: Charged(spent=spent[name], reserved=reserved[name]) for name in spent}

    async def started(self, attempt: Attempt, key: str = "") -> SpecialistResult | None:
        error = self._seal.close("", *places.of_attempt(attempt))
        row = {**dict(attempt), "outcome": "in doubt", "error": error}
        keys = {"attempt_key": attempt.key, "result_key": key or attempt.key}

        async def work(connection: AsyncConnection) -> SpecialistResult | None:
            has_begun = await connection.scalar(self._begin, {**row, **keys}) is not None
            return None if has_begun else await self._recorded_result(connection, attempt, keys)

        return await self._database.write(work)

    async def ended(
        self, attempt: Attempt, outcome: AttemptOutcome, at: datetime, error: str = ""
    ) -> None:
        await self._database.write(
            lambda connection: self._end(connection, attempt, outcome, at, error)
        )

    async def finished(
        self, attempt: Attempt, result: SpecialistResult, at: datetime, key: str = ""
    ) -> None:
        key = key or attempt.key
        sealed = self._seal.close(result_as_json(result), *places.of_result(attempt.run_id, key))
        outcome: AttemptOutcome = "failed" if result.is_failed else "done"

        async def work(connection: AsyncConnection) -> None:
            await self._end(connection, attempt, outcome, at, result.error)
            await connection.execute(
                self._database.insert(schema.results)
                .values(run_id=attempt.run_id, key=key, result=sealed)
                .on_conflict_do_nothing()
            )

        await self._database.write(work)

    async def results(self, run_id: str) -> Mapping[str, SpecialistResult]:
        table = schema.results
        query = select(table.c.key, table.c.result).where(table.c.run_id == run_id)

        def read(row: Any) -> tuple[str, SpecialistResult]:
            opened = self._seal.open(row.result, *places.of_result(run_id, row.key))
            return row.key, restored(SpecialistResult, opened)

        return dict(await self._database.rows(query, read))

    async def ledger(self, run_id: str) -> Sequence[LedgerEntry]:
        table = schema.attempts
        query = select(table).where(table.c.run_id == run_id).order_by(table.c.id)

        def read(row: Any) -> LedgerEntry:
            fields = {name: getattr(row, name) for name in LedgerEntry.model_fields}
            error = self._seal.open(row.error, *places.of_attempt(row))
            return LedgerEntry(**{**fields, "error": error})

        return await self._database.rows(query, read)

    async def note(self, run_id: str, key: str, value: JsonValue) -> JsonValue:
        table, place = schema.notes, places.of_note(run_id, key)
        sealed = self._seal.close(value, *place)

        async def work(connection: AsyncConnection) -> JsonValue:
            await connection.execute(
                self._database.insert(table)
                .values(run_id=run_id, key=key, value=sealed)
                .on_conflict_do_nothing()
            )
            query = select(table.c.value).where(table.c.run_id == run_id, table.c.key == key)
            return self._seal.open((await connection.execute(query)).scalar_one(), *place)

        return await self._database.write(work)

    async def notes(self, run_id: str, prefix: str = "") -> Mapping[str, JsonValue]:
        table = schema.notes
        query = (
            select(table.c.key, table.c.value)
            .where(_has_prefix(table, run_id, prefix))
            .order_by(table.c.id)
        )

        def read(row: Any) -> tuple[str, JsonValue]:
            return row.key, self._seal.open(row.value, *places.of_note(run_id, row.key))

        return dict(await self._database.rows(query, read))

    async def strike(self, run_id: str, prefix: str) -> None:
        statement = delete(schema.notes).where(_has_prefix(schema.notes, run_id, prefix))
        await self._database.write(lambda connection: connection.execute(statement))

    async def adopt(self, run_id: str, rows: RunRows) -> None:
        async def work(connection: AsyncConnection) -> None:
            await self._database.take_run(connection, run_id, _AMOUNTS)
            await insert_rows(connection, self._seal, run_id, rows)

        await self._database.write(work)

    async def closed(self, run_id: str) -> None:
        """Keep everything: the run stays to be looked at until it is removed."""

    async def _recorded_result(
        self, connection: AsyncConnection, attempt: Attempt, keys: Mapping[str, str]
    ) -> SpecialistResult | None:
        """The result because of which an attempt was not begun; None if it was begun already."""
        rows = await connection.execute(_RESULT, {"run_id": attempt.run_id, **keys})
        if (found := rows.first()) is not None:
            opened = self._seal.open(found.result, *places.of_result(attempt.run_id, found.key))
            return restored(SpecialistResult, opened)
        table = schema.attempts
        begun = select(table.c.started_at, table.c.step_id).where(
            table.c.run_id == attempt.run_id,
            table.c.key == attempt.key,
            table.c.number == attempt.number,
        )
        (row,) = await connection.execute(begun)
        if row != (attempt.started_at, attempt.step_id):
            raise begun_already(self._database.where, attempt)
        return None

    async def _end(
        self,
        connection: AsyncConnection,
        attempt: Attempt,
        outcome: AttemptOutcome,
        at: datetime,
        error: str,
    ) -> None:
        """Write the end of an attempt; its beginning stays, and so does an end that is final."""
        end = {
            "ended_at": at,
            "outcome": outcome,
            "error": self._seal.close(error, *places.of_attempt(attempt)),
        }
        statement = self._database.insert(schema.attempts).values(**dict(attempt), **end)
        await connection.execute(
            statement.on_conflict_do_update(
                index_elements=["run_id", "key", "number"],
                set_=end,
                where=schema.attempts.c.outcome.in_(UNKNOWN_ENDS),
            )
        )

    async def _charge(
        self, connection: AsyncConnection, run_id: str, totals: Mapping[str, _Totals]
    ) -> None:
        rows = [
            {"run_id": run_id, "scope": scope}
            | {f"settled_{kind}": value for kind, value in settled}
            | {f"reserved_{kind}": value for kind, value in reserved}
            for scope, (settled, reserved) in totals.items()
        ]
        if not rows:
            return
        insert = self._database.insert(schema.spending)
        new = {name: insert.excluded[name] for name in rows[0].keys() - {"run_id", "scope"}}
        change = insert.on_conflict_do_update(index_elements=["run_id", "scope"], set_=new)
        await connection.execute(change, rows)


async def _scopes(
    connection: AsyncConnection, run_id: str, names: Sequence[str] | None = None
) -> dict[str, _Totals]:
    table = schema.spending
    query = select(table).where(table.c.run_id == run_id)
    if names is not None:
        query = query.where(table.c.scope.in_(names))
    rows = await connection.execute(query.order_by(table.c.scope))
    return {row.scope: (_spending(row, "settled_"), _spending(row, "reserved_")) for row in rows}


def _spending(row: Any, prefix: str = "") -> Spending:
    kinds = ("calls", "tokens", "cost")
    return Spending(**{kind: getattr(row, f"{prefix}{kind}") for kind in kinds})


def _subtract(amount: Spending, part: Spending) -> Spending:
    """Take a part away; what rounding leaves of the last one is nothing."""
    cost = amount.cost - part.cost
    return Spending(
        calls=amount.calls - part.calls,
        tokens=amount.tokens - part.tokens,
        cost=cost if cost > ROUNDING else 0.0,
    )


def _is_reservation(table: Table, reservation: Reservation) -> Any:
    return and_(table.c.run_id == reservation.run_id, table.c.id == reservation.id)


def _has_prefix(table: Table, run_id: str, prefix: str) -> Any:
    """Rows of a run whose keys begin so: exactly, which `LIKE` is not in every database."""
    begins = func.substr(table.c.key, 1, len(prefix)) == prefix
    return and_(table.c.run_id == run_id, begins)
