"""Threads of pipelines in SQL, row by row: one implementation for SQLite and PostgreSQL."""

import secrets
from collections.abc import Mapping
from typing import Any

from pydantic import JsonValue
from sqlalchemy import ColumnElement, Connection, bindparam, delete, func, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from replan.adapters.storage.database import Database
from replan.adapters.storage.stored_values import places
from replan.adapters.storage.stored_values.sealing import Seal
from replan.adapters.storage.tables import schema
from replan.adapters.thread_repositories import RowRepository
from replan.state.pipeline.thread_rows import Changes, Rows
from replan.state.pipeline.threads import Thread

_table = schema.thread_rows
_MAIN = ""

# Sets the columns of which it is given values.
_TAKEN = update(_table).where(
    _table.c.thread_id == bindparam("of"),
    _table.c.path == _MAIN,
    _table.c.revision == bindparam("before"),
)


class SqlThreads(RowRepository):
    """Keeps threads in a database; a save is one transaction with the rows that changed."""

    def __init__(self, database: Database, seal: Seal) -> None:
        super().__init__()
        self._database = database
        self._seal = seal
        # Made once: to make a statement again for each message takes longer than to execute it.
        inserted = database.insert(_table)
        self._first = inserted.on_conflict_do_nothing()
        self._put = inserted.on_conflict_do_update(
            index_elements=["thread_id", "path"], set_={"value": inserted.excluded.value}
        )

    async def _read(self, thread_id: str) -> tuple[Rows, int, str] | None:
        query = select(_table).where(_table.c.thread_id == thread_id)

        def read_row(row: Any) -> tuple[str, JsonValue, int, str]:
            value = self._seal.open(row.value, *places.of_thread_row(thread_id, row.path))
            return row.path, value, row.revision, row.run_id

        found = await self._database.rows(query, read_row)
        main = [(revision, run_id) for path, _, revision, run_id in found if path == _MAIN]
        return ({path: value for path, value, *_ in found}, *main[0]) if main else None

    async def _write(self, thread: Thread, changes: Changes, *, lasting: bool) -> bool:
        write, rows = secrets.token_hex(16), dict(changes.rows)
        main = self._row(thread, _MAIN, rows.pop(_MAIN, None))
        new = [self._row(thread, path, value) for path, value in rows.items()]

        def work(connection: Connection) -> bool:
            is_ours = _table.c.thread_id == thread.id
            if not self._take(connection, {**main, "write": write}, thread.revision):
                # Done already, if the connection broke after the commit and before its receipt.
                last = select(_table.c.write).where(is_ours, _table.c.path == _MAIN)
                return connection.scalar(last) == write
            if changes.gone:
                gone = or_(*(_below(path) for path in changes.gone))
                connection.execute(delete(_table).where(is_ours, gone))
            if new:
                connection.execute(self._put, new)
            return True

        return await self._database.write_whole(work, lasting=lasting)

    def _take(self, connection: Connection, main: Mapping[str, Any], revision: int) -> bool:
        """Raise the revision of a thread; False if it is another one by now."""
        if not revision:
            return bool(connection.execute(self._first, [main]).rowcount)
        changed = {name: main[name] for name in ("revision", "write")}
        if main["value"] is not None:
            changed["value"] = main["value"]
        given = {**changed, "of": main["thread_id"], "before": revision}
        return bool(connection.execute(_TAKEN, given).rowcount)

    async def rows(self, run_id: str) -> Mapping[str, Rows]:
        query = select(_table).where(_table.c.run_id == run_id)

        def read_row(row: Any) -> tuple[str, str, JsonValue]:
            place = places.of_thread_row(row.thread_id, row.path)
            return row.thread_id, row.path, self._seal.open(row.value, *place)

        found = dict[str, dict[str, JsonValue]]()
        for thread_id, path, value in await self._database.rows(query, read_row):
            found.setdefault(thread_id, {})[path] = value
        return found

    async def adopt(self, run_id: str, threads: Mapping[str, Rows]) -> None:
        rows = [
            self._row(Thread(thread_id, run_id=run_id), path, value)
            for thread_id, given in threads.items()
            for path, value in given.items()
        ]

        async def work(connection: AsyncConnection) -> None:
            query = select(_table.c.thread_id).where(_table.c.thread_id.in_(threads))
            known = set((await connection.scalars(query)).all())
            new = [row for row in rows if row["thread_id"] not in known]
            if new:
                put = self._database.insert(_table).on_conflict_do_nothing()
                await connection.execute(put, new)

        await self._database.write(work)

    async def closed(self, run_id: str) -> None:
        """Keep everything: the threads of a run stay until it is removed."""

    async def forget(self, run_id: str) -> None:
        statement = delete(_table).where(_table.c.run_id == run_id)
        await self._database.write(lambda connection: connection.execute(statement))

    def _row(self, thread: Thread, path: str, value: JsonValue) -> dict[str, Any]:
        sealed = (
            None
            if value is None
            else self._seal.close(value, *places.of_thread_row(thread.id, path))
        )
        return {
            "thread_id": thread.id,
            "path": path,
            "run_id": thread.run_id,
            "revision": thread.revision + 1,
            "write": "",
            "value": sealed,
        }


def _below(path: str) -> ColumnElement[bool]:
    return or_(_table.c.path == path, func.substr(_table.c.path, 1, len(path) + 1) == f"{path}.")
