"""Threads of pipelines in a database."""

import secrets
from collections.abc import Mapping, Sequence
from typing import Any, cast

from pydantic import JsonValue

from replan.base.errors import StaleThreadError
from replan.log.uninterrupted import uninterrupted
from replan.pipelines.messages import change_message
from replan.state.pipeline.thread_rows import Changes, Rows, Saved, thread_from
from replan.state.pipeline.threads import Thread
from replan.storage.databases.cipher import Cipher
from replan.storage.databases.database import Connection, Database, first
from replan.storage.databases.sqlite import MemoryDatabase

MAIN = ""  # the path of the row of a main thread, which says who wrote last

_INSERT = """
    INSERT INTO replan_thread_rows (thread_id, path, run_id, revision, write_id, value)
    VALUES (?, ?, ?, ?, ?, ?)"""
_PUT = f"{_INSERT} ON CONFLICT (thread_id, path) DO UPDATE SET value = excluded.value"
_ADD = f"{_INSERT} ON CONFLICT DO NOTHING"
_REMOVE = "DELETE FROM replan_thread_rows WHERE thread_id = ? AND path = ?"


class Threads:
    """A `ThreadRepository` in a database; a save is one transaction with the rows that changed."""

    def __init__(self, database: Database, cipher: Cipher) -> None:
        self._database = database
        self._cipher = cipher
        self._saved = Saved()

    async def get_thread(self, thread_id: str) -> Thread | None:
        if (found := await self._read(thread_id)) is None:
            return None
        rows, revision, run_id = found
        thread = thread_from(rows, run_id=run_id)
        thread.revision = revision
        self._saved.take(thread)
        return thread

    async def get_thread_settings(self, thread_id: str) -> dict[str, Any]:
        thread = await self._read(thread_id)
        return {} if thread is None else dict(cast("Any", thread[0][MAIN])["settings"])

    async def update_thread_settings(self, thread: Thread, settings: Mapping[str, Any]) -> None:
        before = dict(thread.settings)
        # Its agent holds the same dictionary.
        thread.settings.clear()
        thread.settings.update(settings if settings is not thread.settings else before)
        await self.save_thread(thread)

    async def update_message(
        self, thread: Thread, message_id: str, changes: Mapping[str, Any]
    ) -> None:
        change_message(thread, message_id, **changes)
        await self.save_thread(thread)

    async def save_thread(self, thread: Thread, *, lasting: bool = True) -> None:
        changes = self._saved.changes(thread)
        if not (changes.rows or changes.gone):
            return
        saving = self._save(thread, changes, lasting=lasting)
        if isinstance(self._database, MemoryDatabase):
            # It waits for nothing, so that it cannot be cancelled in the middle.
            await saving
        else:
            # Who is cancelled meanwhile, such as by a time limit, may continue the thread.
            await uninterrupted(saving)

    async def _save(self, thread: Thread, changes: Changes, *, lasting: bool) -> None:
        if not await self._write(thread, changes, lasting=lasting):
            raise StaleThreadError(thread.id)
        self._saved.take(thread, changes)
        thread.revision += 1

    async def _read(self, thread_id: str) -> tuple[Rows, int, str] | None:
        """Read the rows of a thread, its revision and its run."""

        def work(connection: Connection) -> tuple[Rows, int, str] | None:
            found = connection.query(
                "SELECT path, value, revision, run_id FROM replan_thread_rows WHERE thread_id = ?",
                [thread_id],
            )
            rows = {path: self._decrypt(thread_id, path, value) for path, value, _, _ in found}
            main = [(revision, run_id) for path, _, revision, run_id in found if path == MAIN]
            return (rows, *main[0]) if main else None

        return await self._database.read(work)

    async def _write(self, thread: Thread, changes: Changes, *, lasting: bool) -> bool:
        """Write changes if the thread still has its revision, and raise that by one."""
        rows = dict(changes.rows)
        main = self._row(thread, MAIN, rows.pop(MAIN, None), secrets.token_hex(16))
        new = [self._row(thread, path, value) for path, value in rows.items()]

        def work(connection: Connection) -> bool:
            if not _take(connection, thread, main):
                # Done already, if the connection broke after the commit and before its receipt.
                query = "SELECT write_id FROM replan_thread_rows WHERE thread_id = ? AND path = ''"
                return first(connection.query(query, [thread.id])) == main[4]
            if changes.gone:
                connection.change_many(_REMOVE, [(thread.id, path) for path in changes.gone])
            if new:
                connection.change_many(_PUT, new)
            return True

        return await self._database.write(work, lasting=lasting)

    async def rows(self, run_id: str) -> Mapping[str, Rows]:
        def work(connection: Connection) -> Mapping[str, Rows]:
            query = "SELECT thread_id, path, value FROM replan_thread_rows WHERE run_id = ?"
            threads = dict[str, dict[str, JsonValue]]()
            for thread_id, path, value in connection.query(query, [run_id]):
                row = self._decrypt(thread_id, path, value)
                threads.setdefault(thread_id, {})[path] = row
            return threads

        return await self._database.read(work)

    async def adopt(self, run_id: str, threads: Mapping[str, Rows]) -> None:
        new = {
            thread_id: [
                self._row(Thread(thread_id, run_id=run_id), path, value)
                for path, value in rows.items()
            ]
            for thread_id, rows in threads.items()
        }

        def work(connection: Connection) -> None:
            exists = "SELECT 1 FROM replan_thread_rows WHERE thread_id = ? LIMIT 1"
            for thread_id, rows in new.items():
                if not connection.query(exists, [thread_id]):
                    connection.change_many(_ADD, rows)

        await self._database.write(work)

    async def closed(self, run_id: str) -> None:
        """Keep everything: the threads of a run stay until it is removed."""

    async def forget(self, run_id: str) -> None:
        statement = "DELETE FROM replan_thread_rows WHERE run_id = ?"
        await self._database.write(lambda connection: connection.change(statement, [run_id]))

    def _row(
        self, thread: Thread, path: str, value: JsonValue, write_id: str = ""
    ) -> Sequence[Any]:
        data = None
        if value is not None:
            data = self._cipher.encrypt(value, "replan_thread_rows", thread.id, path, "value")
        return thread.id, path, thread.run_id, thread.revision + 1, write_id, data

    def _decrypt(self, thread_id: str, path: str, value: bytes) -> JsonValue:
        return self._cipher.decrypt(value, "replan_thread_rows", thread_id, path, "value")


def _take(connection: Connection, thread: Thread, main: Sequence[Any]) -> bool:
    """Raise the revision of a thread; False if it is another one by now."""
    if not thread.revision:
        return bool(connection.change(_ADD, main))
    *_, revision, write_id, value = main
    changed, values = "", []
    if value is not None:
        changed, values = ", value = ?", [value]
    return bool(
        connection.change(
            f"UPDATE replan_thread_rows SET revision = ?, write_id = ?{changed}"
            " WHERE thread_id = ? AND path = '' AND revision = ?",
            [revision, write_id, *values, thread.id, thread.revision],
        )
    )
