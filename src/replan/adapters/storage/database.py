"""Transactions that are whole: not stopped in the middle, tried again where that can help."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, Protocol, TypeVar

from sqlalchemy import (
    ColumnElement,
    Connection,
    DateTime,
    Executable,
    Table,
    Text,
    case,
    cast,
    event,
    extract,
    func,
    text,
    type_coerce,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine
from tenacity import AsyncRetrying, retry_if_exception, stop_after_delay, wait_exponential_jitter

from replan.adapters.storage.faults import GONE, Fault, fault_of, readable, storage_error
from replan.adapters.storage.whole_writes import WholeWrites
from replan.adapters.uninterrupted import uninterrupted
from replan.errors import StorageError
from replan.ports.ownership import Owner, owner_in

T = TypeVar("T")
Work = Callable[[AsyncConnection], Awaitable[T]]

_PASSING = text("set local synchronous_commit to off")
_LOCK = text("select pg_advisory_xact_lock(hashtextextended(:run_id, :what))")

FOR_WRITING = "replan_writes"
"""The execution option of a connection whose transaction locks for writing immediately."""


_NEWS = 1.0  # seconds for which it is believed that a database is away, without asking it


class Begin(Protocol):
    async def __call__(self, driver: Any, *, writes: bool, owner: Owner | None) -> None:
        """Begin; where an owner of a thread writes, see that the thread is still its own."""
        ...


class Patience:
    """Does work completely, and repeats it for a while if that can help; then raises an error."""

    def __init__(self, where: str, seconds: float, check: Callable[[], None] | None = None) -> None:
        self.where = where
        self.seconds = seconds
        self._check = check
        self._given_up: Fault | None = None
        self._failed_at = 0.0
        self._running: set[asyncio.Task[Any]] = set()
        self._is_over = False
        self._at_work: set[asyncio.Future[None]] = set()

    async def insist(self, attempt: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Repeat work until it succeeds, cannot succeed, or takes too long; cut off no attempt."""
        loop = AsyncRetrying(
            retry=retry_if_exception(_can_pass),
            # A database that was waited for in vain is not waited for by each write that is left.
            stop=stop_after_delay(0.0 if self._given_up else self.seconds),
            wait=wait_exponential_jitter(multiplier=0.02, max=1.0, jitter=0.05),
            reraise=True,
        )

        async def once() -> T:
            if self._is_over:
                raise StorageError(self.where, "It is closed.", "Open it again.")
            if self._given_up is GONE and time.monotonic() - self._failed_at < _NEWS:
                raise storage_error(self.where, GONE)
            done = await uninterrupted(attempt(), self._running)
            if self._check is not None:
                self._check()
            return done

        at_work: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._at_work.add(at_work)
        try:
            done: T = await loop(once)
        except Exception as error:
            fault = fault_of(error)
            if fault is None:
                raise
            self._given_up = fault if fault.can_pass else None
            self._failed_at = time.monotonic()
            raise storage_error(self.where, fault) from error
        else:
            self._given_up = None
            return done
        finally:
            self._at_work.discard(at_work)
            at_work.set_result(None)

    async def at_rest(self) -> None:
        """Wait until all that is on its way now has come to its end."""
        # What was handed to the loop a moment ago is on its way only after its first turn.
        await asyncio.sleep(0)
        if self._at_work:
            await asyncio.wait(set(self._at_work))

    async def rest(self) -> None:
        """Wait for what is being done: LangGraph does not, where a run is cancelled or fails."""
        while self._running:
            await asyncio.wait(self._running)

    async def end(self) -> None:
        """Accept no more work, and wait for all work in progress."""
        self._is_over = True
        await self.rest()


class Database:
    """An engine whose transactions are whole."""

    def __init__(
        self,
        engine: AsyncEngine,
        patience: Patience,
        begin: Begin,
        turn: asyncio.Lock | None = None,
        whole: WholeWrites | None = None,
    ) -> None:
        self.engine = engine
        self.turn = turn
        self._in_one_go = whole
        self._writing = engine.execution_options(**{FOR_WRITING: True})
        self._patience = patience
        self._begin = begin
        event.listen(engine.sync_engine, "begin", self._on_begin)

    @property
    def where(self) -> str:
        """The database, without user name and password."""
        return self._patience.where

    @property
    def is_postgres(self) -> bool:
        """Whether there may be parallel writers, so that rows must be locked."""
        return self.engine.dialect.name == "postgresql"

    async def write(self, work: Work[T]) -> T:
        """Run a transaction, perhaps twice, that changes rows; when this returns, they are safe."""
        return await self._run(self._writing, work)

    async def write_whole(self, work: Callable[[Connection], T], *, lasting: bool = True) -> T:
        """Run a transaction as `write` does, of work that is synchronous.

        Args:
            work: What is done with the connection.
            lasting: Whether it must outlast a failure of power. If not, the disk is not waited for:
                the transaction may be lost then, and none that was before it.
        """
        whole, owner = self._in_one_go, owner_in(self.where)

        def done(connection: Connection) -> T:
            if not lasting:
                connection.execute(_PASSING)
            return work(connection)

        async def attempt() -> T:
            if whole is None:
                return await self._transaction(self._writing, lambda each: each.run_sync(done))
            async with self.turn or nullcontext():
                return await whole.write(work, lasting=lasting, owner=owner)

        return await self._patience.insist(attempt)

    async def read(self, work: Work[T]) -> T:
        return await self._run(self.engine, work)

    async def rows(self, query: Executable, read_row: Callable[[Any], T]) -> Sequence[T]:
        async def work(connection: AsyncConnection) -> Sequence[T]:
            rows = await connection.execute(query)
            with readable():
                return [read_row(row) for row in rows]

        return await self.read(work)

    def insert(self, table: Table) -> postgresql.Insert | sqlite.Insert:
        return (postgresql if self.is_postgres else sqlite).insert(table)

    def seconds_between(
        self, first: ColumnElement[Any], last: ColumnElement[Any], goes_on: ColumnElement[bool]
    ) -> ColumnElement[Any]:
        """Seconds between two columns of times; until now where something continues."""
        if self.is_postgres:
            moment = DateTime(timezone=True)
            began, heard = (cast(type_coerce(each, Text), moment) for each in (first, last))
            ended = case((goes_on, func.clock_timestamp()), else_=heard)
            return extract("epoch", ended) - extract("epoch", began)
        ended = case((goes_on, "now"), else_=type_coerce(last, Text))
        return (func.julianday(ended) - func.julianday(first)) * 86_400

    async def take_run(self, connection: AsyncConnection, run_id: str, what: int) -> None:
        """Lock one thing of a run until the transaction ends."""
        if self.is_postgres:
            await connection.execute(_LOCK, {"run_id": run_id, "what": what})

    def _on_begin(self, connection: Connection) -> None:
        writes = bool(connection.get_execution_options().get(FOR_WRITING))
        owner = owner_in(self.where) if writes else None

        def begin(driver: Any) -> Awaitable[None]:
            return self._begin(driver, writes=writes, owner=owner)

        driven: Any = connection.connection
        driven.run_async(begin)

    async def _run(self, engine: AsyncEngine, work: Work[T]) -> T:
        return await self._patience.insist(lambda: self._transaction(engine, work))

    async def _transaction(self, engine: AsyncEngine, work: Work[T]) -> T:
        turn: AbstractAsyncContextManager[Any] = self.turn or nullcontext()
        async with turn, engine.begin() as connection:
            return await work(connection)


def _can_pass(error: BaseException) -> bool:
    fault = fault_of(error)
    return fault is not None and fault.can_pass
