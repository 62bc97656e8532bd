"""LangGraph's store in SQL: one implementation for SQLite and PostgreSQL, plain and encrypted."""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Generator, Iterable, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from copy import deepcopy
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar, cast

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
)
from pydantic import JsonValue
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from replan.adapters.storage.database import Database
from replan.adapters.storage.faults import UnreadableRecordError, fault_of, storage_error
from replan.adapters.storage.store.full_text import Kept, WordIndex, asked, has_full_text, score
from replan.adapters.storage.store.operations import checked, has, listed
from replan.adapters.storage.store.rows import (
    DELETED,
    MOST_NAMED,
    SAME,
    STATE,
    below,
    items,
    place_of,
    read_namespace,
    written,
)
from replan.adapters.storage.store.words_in_memory import WORTH, KeptWords, Prefixes, State
from replan.adapters.storage.stored_values import places
from replan.adapters.storage.stored_values.sealing import Seal
from replan.adapters.storage.tables import schema
from replan.errors import StorageError
from replan.failures import describe
from replan.texts.storable import LARGEST

T = TypeVar("T")
Rows = Sequence[Any]

_KEPT, _SMALL = 20_000, 2_000
"""How many items stay decrypted and read, and how large these are at most, in bytes."""

_FEW = 50  # rows up to which the event loop closes or opens them itself; more would hold it up

_log = logging.getLogger(__name__)


class _Rated(NamedTuple):
    """A row that a search found."""

    row: Any
    score: float | None


class SqlStore(BaseStore):
    """LangGraph's `BaseStore`, of an open storage; `Storage.store` is one.

    Items are found by the words of their texts, and the best come first. They are kept until they
    are deleted, whatever happens to runs and threads. From the event loop that opened the storage,
    await the asynchronous methods; the others are for other threads.
    """

    def __init__(self, database: Database, seal: Seal) -> None:
        self._database = database
        self._seal = seal
        self._loop = asyncio.get_running_loop()
        # What is encrypted is ranked in memory: an index would tell its words.
        is_plain_file = seal.cipher is None and not database.is_postgres
        self._index = WordIndex() if is_plain_file and has_full_text() else None
        self._is_ready = self._index is None
        self._in_memory = Prefixes()
        cipher = seal.cipher
        self._kept = KeptWords(database, cipher) if cipher and has_full_text() else None
        # To decrypt takes longer than all else of a search.
        self._opened_again = lru_cache(_KEPT)(self._open)

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Do operations from a thread without an event loop, or with another one.

        Raises:
            asyncio.InvalidStateError: It is called in the event loop that must do them.
        """
        if _running_loop() is self._loop:
            raise asyncio.InvalidStateError(
                "The event loop cannot wait for the storage without standing still. "
                "Use the asynchronous method, such as `await store.aget(...)`."
            )
        return self._schedule(self._do([*ops])).result()

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Do operations: all reads see what was there before, and the last put of a key counts."""
        if _running_loop() is self._loop:
            return await self._do([*ops])
        return await asyncio.wrap_future(self._schedule(self._do([*ops])))

    def _schedule(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop)
        except RuntimeError as error:  # The loop is closed.
            work.close()
            where = self._database.where
            raise StorageError(where, "It is closed.", "Open it again.") from error

    async def _do(self, ops: Sequence[Op]) -> list[Result]:
        ops = [checked(op) for op in ops]
        puts = {(op.namespace, op.key): op for op in ops if isinstance(op, PutOp)}
        kept = [op for op in puts.values() if op.value is not None]
        rows = await _in_thread_if_many(len(kept), lambda: [self._row(op) for op in kept])
        # Written in one order by all, so that two batches do not wait for each other.
        rows.sort(key=lambda each: (each[0]["namespace"], each[0]["key"]))
        gone = [place_of(puts[place]) for place in sorted(puts) if puts[place].value is None]

        async def work(connection: AsyncConnection) -> tuple[list[Rows], dict[str, bytes]]:
            found = [await self._read(connection, op) for op in ops]
            return found, await self._write(connection, gone, rows)

        ranked = [op for op in ops if isinstance(op, SearchOp) and op.query]
        if puts or ranked:
            await self._prepare_index()
        if self._index is None:
            for prefix in {written(op.namespace_prefix) for op in ranked}:
                await self._catch_up(prefix)
        found, dropped = await (self._database.write if puts else self._database.read)(work)
        for prefix, sealed in dropped.items():
            await self._note_dropped(prefix, sealed)
        return await _in_thread_if_many(sum(map(len, found)), lambda: self._results(ops, found))

    async def _prepare_index(self) -> None:
        if self._index is None or self._is_ready:
            return
        index = self._index

        async def work(connection: AsyncConnection) -> None:
            await connection.run_sync(index.catch_up, self._words_to_index)

        await self._database.write(work)
        self._is_ready = True

    async def _catch_up(self, prefix: str) -> None:
        """Have the words of all items below a prefix in memory."""
        words = self._in_memory.of(prefix)
        kept = self._kept

        async def work(connection: AsyncConnection) -> tuple[State, set[int], Rows] | None:
            counted = (await connection.execute(below(prefix, *STATE))).one()
            state = cast("State", tuple(counted))
            if state == words.state:
                return None
            numbers = set((await connection.scalars(below(prefix, items.c.id))).all())
            new = numbers - words.numbers
            query = below(prefix)
            query = query.where(items.c.id.in_(new)) if len(new) <= _FEW else query
            rows = (await connection.execute(query)).all()
            return state, numbers, [row for row in rows if row.id in new]

        def update(state: State, numbers: set[int], rows: Rows) -> None:
            words.update(
                state,
                numbers,
                {row.id: self._open(row.value, row.namespace, row.key).words for row in rows},
            )

        async with words.alone:
            if kept is not None and not words.numbers:
                await kept.take(prefix, words)
            changed = await self._database.read(work)
            if changed is not None:
                with self._reporting_faults():
                    await _in_thread_if_many(len(changed[2]), lambda: update(*changed))
            if kept is not None and words.unkept >= WORTH:
                await kept.keep(prefix, words)

    async def _note_dropped(self, prefix: str, sealed: bytes) -> None:
        """Have words in memory, to be kept again without those that had to go."""
        words = self._in_memory.of(prefix)
        async with words.alone:
            words.is_dropped = True
            if self._kept is not None and not words.numbers:
                await self._kept.open(prefix, words, sealed)

    async def close(self) -> None:
        """Keep words again that had to go with an item among them."""
        for prefix, words in self._in_memory:
            if words.is_dropped:
                words.unkept += WORTH
                try:
                    await self._catch_up(prefix)
                except StorageError:
                    _log.warning("words could not be kept", exc_info=True)

    async def _read(self, connection: AsyncConnection, op: Op) -> Rows:
        """The rows that an operation may need."""
        if isinstance(op, GetOp):
            query = select(items).where(*SAME)
            given = {"of": written(op.namespace), "named": str(op.key)}
            return (await connection.execute(query, given)).all()
        if isinstance(op, SearchOp):
            return await self._candidates(connection, op)
        if isinstance(op, ListNamespacesOp):
            return (await connection.scalars(select(items.c.namespace).distinct())).all()
        return ()

    async def _candidates(self, connection: AsyncConnection, op: SearchOp) -> Rows:
        """The rows that a search may find; all that it finds, if nothing is left to be judged."""
        bounds = (LARGEST, 0) if op.filter else (op.limit, op.offset)
        limit, offset = (min(each, LARGEST) for each in bounds)
        prefix = written(op.namespace_prefix)
        if op.query and not asked(op.query):
            return ()
        if op.query and self._index is not None:
            query, given = self._index.found(op.query, prefix, limit, offset)
            rows = (await connection.execute(query, given)).all()
            return [_Rated(row, score(row.far)) for row in rows]
        if op.query:
            found = self._in_memory.of(prefix).ranked(op.query, limit, offset)
            query = below(prefix)
            if len(found) <= MOST_NAMED:
                query = query.where(items.c.id.in_([number for number, _ in found]))
            rows = {row.id: row for row in (await connection.execute(query)).all()}
            return [_Rated(rows[number], rate) for number, rate in found if number in rows]
        newest_first = (items.c.updated_at.desc(), items.c.id.desc())
        query = below(prefix).order_by(*newest_first).limit(limit).offset(offset)
        return [_Rated(row, None) for row in (await connection.execute(query)).all()]

    async def _write(
        self,
        connection: AsyncConnection,
        gone: Sequence[dict[str, Any]],
        rows: Sequence[tuple[dict[str, Any], str]],
    ) -> dict[str, bytes]:
        """Write and delete items; return the kept words that had to go with them."""
        new_rows = [row for row, _ in rows]
        dropped: dict[str, bytes] = {}
        if self._kept is not None and (gone or rows):
            dropped = await self._kept.drop(connection, gone, new_rows)
        if self._index is not None and (gone or rows):
            await self._index.forget(connection, [*gone, *new_rows])
        if gone:
            doomed = [{"of": each["namespace"], "named": each["key"]} for each in gone]
            await connection.execute(DELETED, doomed)
        if new_rows:
            insert = self._database.insert(schema.items)
            new = {name: insert.excluded[name] for name in ("id", "value", "updated_at")}
            change = insert.on_conflict_do_update(index_elements=["namespace", "key"], set_=new)
            await connection.execute(change, new_rows)
        if self._index is not None and rows:
            await self._index.note(connection, rows)
        return dropped

    def _row(self, op: PutOp) -> tuple[dict[str, Any], str]:
        """The row of an item, and its words if they are to be indexed."""
        place, now = place_of(op), datetime.fromtimestamp(time.time(), UTC)
        kept = Kept(dict(op.value or {}), op.index)
        value = cast("JsonValue", {"value": kept.value, "index": kept.index})
        sealed = self._seal.close(value, *places.of_item(**place))
        row = {**place, "value": sealed, "created_at": now, "updated_at": now}
        return row, "" if self._index is None else kept.words

    def _results(self, ops: Sequence[Op], found: Sequence[Rows]) -> list[Result]:
        with self._reporting_faults():
            return [self._result(op, rows) for op, rows in zip(ops, found, strict=True)]

    @contextmanager
    def _reporting_faults(self) -> Generator[None]:
        """Report a row that cannot be read like any other fault of the storage."""
        try:
            yield
        except UnreadableRecordError as error:
            fault = fault_of(error)
            raise storage_error(self._database.where, cast("Any", fault)) from error

    def _result(self, op: Op, rows: Rows) -> Result:
        if isinstance(op, GetOp):
            return next((self._item(row) for row in rows), None)
        if isinstance(op, SearchOp):
            return self._found(op, rows)
        if isinstance(op, ListNamespacesOp):
            return listed(op, map(read_namespace, rows))
        return None

    def _found(self, op: SearchOp, found: Sequence[_Rated]) -> list[SearchItem]:
        if op.filter:
            fitting = [each for each in found if has(self._opened(each.row).value, op.filter)]
            found = fitting[op.offset : op.offset + op.limit]
        return [
            SearchItem(
                one.namespace, one.key, one.value, one.created_at, one.updated_at, score=rate
            )
            for one, rate in ((self._item(row), rate) for row, rate in found)
        ]

    def _item(self, row: Any) -> Item:
        # A copy: who gets it may change it.
        return Item(
            value=deepcopy(self._opened(row).value),
            key=row.key,
            namespace=read_namespace(row.namespace),
            created_at=datetime.fromisoformat(row.created_at),
            updated_at=datetime.fromisoformat(row.updated_at),
        )

    def _opened(self, row: Any) -> Kept:
        is_small = isinstance(row.value, bytes) and len(row.value) <= _SMALL
        opened = self._opened_again if is_small else self._open
        return opened(row.value, row.namespace, row.key)

    def _open(self, value: bytes, namespace: str, key: str) -> Kept:
        place = places.of_item(namespace, key)
        try:
            opened = self._seal.open(value, *place)
            return Kept(dict(opened["value"]), opened["index"])
        except (TypeError, ValueError, KeyError) as error:
            raise UnreadableRecordError(describe(error), place) from error

    def _words_to_index(self, row: Any) -> str:
        try:
            return self._opened(row).words
        except UnreadableRecordError as error:
            # A reader gets an error; the others can be found, and this one deleted.
            _log.warning("an item cannot be read and is not indexed", extra={"place": error.place})
            return ""


async def _in_thread_if_many(count: int, work: Callable[[], T]) -> T:
    """Do work on this many rows; in a thread, if it would hold up the event loop."""
    return await asyncio.to_thread(work) if count > _FEW else work()


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
