"""Transactions that are whole: done in threads, never cut off, and repeated where that can help.

Work of a transaction is a synchronous function of a `Connection`; it may be run again, so it
changes nothing but the database.
"""

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from tenacity import (
    AsyncRetrying,
    retry_if_exception,
    stop_after_delay,
    wait_exponential_jitter,
)

from replan.base.errors import StorageError
from replan.log.uninterrupted import to_its_end
from replan.models.retries import retried
from replan.ports.ownership import Owner, owner_in
from replan.storage.databases.faults import GONE, Fault, fault_of, storage_error

T = TypeVar("T")
Row = tuple[Any, ...]

_STAYS_GONE = 1.0  # seconds for which a database that was away is not asked again

EPOCH = "SELECT epoch FROM replan_threads WHERE thread_id = ?"
"""The number of the newest take of a thread."""


class Connection(Protocol):
    """What a transaction works with. In its SQL, `?` stands for a value."""

    is_postgres: bool

    def query(self, sql: str, values: Sequence[object] = ()) -> list[Row]:
        """Execute a statement, and return its rows."""
        ...

    def change(self, sql: str, values: Sequence[object] = ()) -> int:
        """Execute a statement, and return how many rows it changed."""
        ...

    def change_many(self, sql: str, rows: Iterable[Sequence[object]]) -> None:
        """Execute a statement for each row of values."""
        ...


Work = Callable[[Connection], T]


def first(rows: Sequence[Row]) -> Any:
    """The only column of the only row; None without a row."""
    return rows[0][0] if rows else None


def marks(count: int) -> str:
    """As many `?` as there are values in a list."""
    return ", ".join("?" * count)


def moment(at: datetime) -> str:
    """A time as text; the order of the texts is the order of the times."""
    return at.astimezone(UTC).isoformat(timespec="microseconds")


@dataclass(eq=False, slots=True)
class Transaction(Generic[T]):
    """A transaction that is to be done, and who waits for it."""

    work: Work[T]
    writes: bool
    lasting: bool  # whether it must outlast a failure of power once it is done
    owner: Owner | None  # for whom it writes: refused if the thread is another's now
    future: "asyncio.Future[T]"

    def run(self, connection: Connection) -> T:
        """Do the work, inside a transaction."""
        if self.owner is not None and self.writes:
            lock = " FOR SHARE" if connection.is_postgres else ""
            self.owner.check(first(connection.query(EPOCH + lock, [self.owner.thread_id])))
        return self.work(connection)


Done = tuple[Transaction[Any], Any, BaseException | None]


def settle(done: Sequence[Done]) -> None:
    """Tell who waits how their jobs ended, from whatever thread."""
    for loop in {transaction.future.get_loop() for transaction, *_ in done}:
        done_in_loop = [each for each in done if each[0].future.get_loop() is loop]
        with suppress(RuntimeError):  # The loop is closed: nobody waits any more.
            loop.call_soon_threadsafe(_settle_here, done_in_loop)


def _settle_here(done: Sequence[Done]) -> None:
    for transaction, value, error in done:
        if transaction.future.done():
            continue
        if error is None:
            transaction.future.set_result(value)
        else:
            transaction.future.set_exception(error)


class Retrier:
    """Repeats what can pass for a while; then raises an error that says what is safe."""

    def __init__(self, where: str, seconds: float, *, is_opening: bool = False) -> None:
        self.where = where
        self.seconds = seconds
        self._is_opening = is_opening  # whether nothing was begun that could be continued
        self._given_up: Fault | None = None
        self._failed_at = 0.0
        self._is_over = False
        self._in_flight: set[asyncio.Future[Any]] = set()

    async def run(self, attempt: Callable[[], "asyncio.Future[T]"]) -> T:
        """Make attempts until one succeeds, cannot succeed, or it takes too long; cut off none."""
        try:
            done = await self._attempt(attempt)
        except Exception as error:  # noqa: BLE001 - what it is, is told from a fault
            done = await self._again(attempt, error)
        self._given_up = None
        return done

    async def _again(self, attempt: Callable[[], "asyncio.Future[T]"], first: Exception) -> T:
        """Make more attempts after a first one, if its fault can pass."""
        # A database that was waited for in vain is not waited for by each write that is left.
        seconds = self.seconds if self._given_up is None else 0.0
        retrying = AsyncRetrying(
            retry=retry_if_exception(_can_pass),
            stop=stop_after_delay(seconds),
            wait=wait_exponential_jitter(multiplier=0.02, max=1.0, jitter=0.05),
            reraise=True,
        )
        try:
            return await retried(partial(self._attempt, attempt), retrying, first)
        except Exception as error:
            fault = fault_of(error)
            if fault is None:
                raise
            self._given_up = fault if fault.is_transient else None
            self._failed_at = time.monotonic()
            raise storage_error(self.where, fault, is_opening=self._is_opening) from error

    async def _attempt(self, attempt: Callable[[], "asyncio.Future[T]"]) -> T:
        self._check()
        future = attempt()
        if future.done():
            return future.result()
        self._in_flight.add(future)
        future.add_done_callback(self._in_flight.discard)
        return await to_its_end(future)

    def _check(self) -> None:
        """Raise a `StorageError` if no work is accepted now."""
        if self._is_over:
            raise self.closed
        if self._given_up is GONE and time.monotonic() - self._failed_at < _STAYS_GONE:
            raise storage_error(self.where, GONE)

    @property
    def closed(self) -> StorageError:
        """The error for work that comes when the database is closed."""
        return StorageError(self.where, "It is closed.", "Open it again.")

    async def at_rest(self) -> None:
        """Wait until all that is in flight now has come to its end."""
        # What was handed to the loop a moment ago is in flight only after its first turn.
        await asyncio.sleep(0)
        if in_flight := self._of_this_loop():
            await asyncio.wait(in_flight)

    async def end(self) -> None:
        """Accept no more work, and wait for all work in flight."""
        self._is_over = True
        while in_flight := self._of_this_loop():
            await asyncio.wait(in_flight)

    def _of_this_loop(self) -> "set[asyncio.Future[Any]]":
        # Those of another loop are waited for there.
        loop = asyncio.get_running_loop()
        return {future for future in self._in_flight.copy() if future.get_loop() is loop}


class Database(ABC):
    """A database with transactions that are whole; used from any loop and any thread."""

    is_postgres = False

    def __init__(self, where: str, patience: float) -> None:
        self.retrier = Retrier(where, patience)

    @property
    def where(self) -> str:
        """The database, without user name and password."""
        return self.retrier.where

    async def write(self, work: Work[T], *, lasting: bool = True, owner: Owner | None = None) -> T:
        """Run a transaction that changes rows; when this returns, they are safe.

        Args:
            work: What is done, perhaps twice.
            lasting: Whether it must outlast a failure of power. If not, the disk is not waited for:
                the transaction may be lost then, and none that was before it.
            owner: For whom it writes; by default, the innermost owner of a thread here.

        Raises:
            ThreadLostError: The owner's thread is another's by now; nothing was written.
        """
        owner = owner or owner_in(self.where)
        return await self._run(work, writes=True, lasting=lasting, owner=owner)

    async def read(self, work: Work[T]) -> T:
        """Run a transaction that changes nothing."""
        return await self._run(work, writes=False, lasting=False, owner=None)

    def here(self, work: Coroutine[Any, Any, T], otherwise: str) -> T:
        """Do work on this database in a thread that may wait for it.

        Raises:
            asyncio.InvalidStateError: An event loop would wait; says what to do `otherwise`.
        """
        if not is_in_loop():
            # `asyncio.run` would take away the loop that is set in this thread.
            with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
                return runner.run(work)
        work.close()
        raise asyncio.InvalidStateError(otherwise)

    async def _run(self, work: Work[T], *, writes: bool, lasting: bool, owner: Owner | None) -> T:
        loop = asyncio.get_running_loop()

        def attempt() -> "asyncio.Future[T]":
            future: asyncio.Future[T] = loop.create_future()
            self._submit(Transaction(work, writes, lasting, owner, future))
            return future

        return await self.retrier.run(attempt)

    @abstractmethod
    def _submit(self, transaction: Transaction[Any]) -> None:
        """Begin a transaction, here or in a thread; `settle` tells how it ended."""

    async def close(self) -> None:
        """Wait for what is in flight, and close the database."""
        await self.retrier.end()


def is_in_loop() -> bool:
    """Whether this thread runs an event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _can_pass(error: BaseException) -> bool:
    fault = fault_of(error)
    return fault is not None and fault.is_transient
