"""LangGraph's store in SQL: one implementation for SQLite and PostgreSQL, plain and encrypted."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from concurrent.futures import Future
from copy import deepcopy
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from typing import Any, TypeVar, cast

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
    get_text_at_path,
    tokenize_path,
)
from pydantic import JsonValue
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from replan.adapters.storage.database import Database
from replan.adapters.storage.faults import UnreadableRecordError, fault_of, storage_error
from replan.adapters.storage.store.operations import checked, has, listed
from replan.adapters.storage.store.rows import (
    DELETED,
    SAME,
    below,
    items,
    place_of,
    read_namespace,
    written,
)
from replan.adapters.storage.stored_values import places
from replan.adapters.storage.stored_values.sealing import Seal
from replan.adapters.storage.tables import schema
from replan.errors import StorageError
from replan.failures import describe
from replan.texts.ranking import rank
from replan.texts.storable import LARGEST

T = TypeVar("T")
Rows = Sequence[Any]

_KEPT, _SMALL = 20_000, 2_000
"""How many items stay decrypted and read, and how large these are at most, in bytes."""

_FEW = 50  # rows up to which the event loop closes or opens them itself; more would hold it up


@dataclass(frozen=True)
class _Content:
    """An item's value, and LangGraph's `index` of it."""

    value: dict[str, Any]
    index: list[str] | bool | None  # which fields are searched; False: none, None: all

    @cached_property
    def text(self) -> str:
        """What a query searches."""
        if self.index is False:
            return ""
        if isinstance(self.index, list):
            paths = (tokenize_path(path) for path in self.index)
            return "\n".join(text for path in paths for text in get_text_at_path(self.value, path))
        return "\n".join(_texts_in(self.value))


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
        rows.sort(key=lambda each: (each["namespace"], each["key"]))
        gone = [place_of(puts[place]) for place in sorted(puts) if puts[place].value is None]

        async def work(connection: AsyncConnection) -> list[Rows]:
            found = [await self._read(connection, op) for op in ops]
            await self._write(connection, gone, rows)
            return found

        found = await (self._database.write if puts else self._database.read)(work)
        return await _in_thread_if_many(sum(map(len, found)), lambda: self._results(ops, found))

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
        is_judged = bool(op.filter or op.query)
        limit, offset = (min(each, LARGEST) for each in (op.limit, op.offset))
        newest_first = (items.c.updated_at.desc(), items.c.id.desc())
        query = below(written(op.namespace_prefix)).order_by(*newest_first)
        bounded = query if is_judged else query.limit(limit).offset(offset)
        return (await connection.execute(bounded)).all()

    async def _write(
        self,
        connection: AsyncConnection,
        gone: Sequence[dict[str, Any]],
        rows: Sequence[dict[str, Any]],
    ) -> None:
        if gone:
            places_gone = [{"of": each["namespace"], "named": each["key"]} for each in gone]
            await connection.execute(DELETED, places_gone)
        if rows:
            insert = self._database.insert(schema.items)
            new = {name: insert.excluded[name] for name in ("id", "value", "updated_at")}
            change = insert.on_conflict_do_update(index_elements=["namespace", "key"], set_=new)
            await connection.execute(change, rows)

    def _row(self, op: PutOp) -> dict[str, Any]:
        place, now = place_of(op), datetime.fromtimestamp(time.time(), UTC)
        value = cast("JsonValue", {"value": dict(op.value or {}), "index": op.index})
        sealed = self._seal.close(value, *places.of_item(**place))
        return {**place, "value": sealed, "created_at": now, "updated_at": now}

    def _results(self, ops: Sequence[Op], found: Sequence[Rows]) -> list[Result]:
        try:
            return [self._result(op, rows) for op, rows in zip(ops, found, strict=True)]
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

    def _found(self, op: SearchOp, rows: Rows) -> list[SearchItem]:
        if not (op.filter or op.query):
            return [_search_item(self._item(row), None) for row in rows]
        fitting = [row for row in rows if has(self._opened(row).value, op.filter)]
        scores: Iterable[tuple[int, float | None]] = ((at, None) for at in range(len(fitting)))
        if op.query:
            # Of equally good texts the last counts more, and rows begin with the newest.
            fitting.reverse()
            scores = rank(op.query, [self._opened(row).text for row in fitting])
        page = [*scores][op.offset : op.offset + op.limit]
        return [_search_item(self._item(fitting[at]), score) for at, score in page]

    def _item(self, row: Any) -> Item:
        # A copy: who gets it may change it.
        return Item(
            value=deepcopy(self._opened(row).value),
            key=row.key,
            namespace=read_namespace(row.namespace),
            created_at=datetime.fromisoformat(row.created_at),
            updated_at=datetime.fromisoformat(row.updated_at),
        )

    def _opened(self, row: Any) -> _Content:
        is_small = isinstance(row.value, bytes) and len(row.value) <= _SMALL
        opened = self._opened_again if is_small else self._open
        return opened(row.value, row.namespace, row.key)

    def _open(self, value: bytes, namespace: str, key: str) -> _Content:
        place = places.of_item(namespace, key)
        try:
            opened = self._seal.open(value, *place)
            return _Content(dict(opened["value"]), opened["index"])
        except (TypeError, ValueError, KeyError) as error:
            raise UnreadableRecordError(describe(error), place) from error


def _search_item(item: Item, score: float | None) -> SearchItem:
    return SearchItem(
        item.namespace, item.key, item.value, item.created_at, item.updated_at, score=score
    )


def _texts_in(value: object) -> Iterable[str]:
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        yield str(value)
    elif isinstance(value, dict | list):
        parts = cast("Any", value)
        for each in parts.values() if isinstance(value, dict) else parts:
            yield from _texts_in(each)


async def _in_thread_if_many(count: int, work: Callable[[], T]) -> T:
    """Do work on this many rows; in a thread, if it would hold up the event loop."""
    return await asyncio.to_thread(work) if count > _FEW else work()


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
