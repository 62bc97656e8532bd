"""A SQLite database: one thread writes and commits in groups, others read beside it.

In memory it is the same database on one connection, whose work is done where it is asked for.
"""

import asyncio
from collections.abc import Callable, Coroutine, Generator, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from queue import SimpleQueue
from threading import RLock, Thread
from typing import Any, TypeVar
from weakref import finalize

from replan.storage.databases.database import (
    Connection,
    Database,
    Done,
    Row,
    Transaction,
    is_in_loop,
    settle,
)

T = TypeVar("T")

BUSY = 10.0  # seconds that SQLite waits by itself for another process to end its write
_GROUP = 100  # transactions at most that are committed together
_READERS = 2
_numbers = count(1)  # tell databases in memory apart


class SqliteConnection:
    """A connection for transactions, which whoever has it begins and ends."""

    is_postgres = False

    def __init__(self, address: str) -> None:
        """Open a file by its `file:` address, or `:memory:`."""
        import sqlite3  # noqa: PLC0415 - who stores nothing does without

        # Without an isolation level, the driver begins no transaction by itself.
        self._driver = sqlite3.connect(
            address, timeout=BUSY, isolation_level=None, check_same_thread=False, uri=True
        )
        self._is_lasting = False

    def query(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        return self._driver.execute(sql, values).fetchall()

    def change(self, sql: str, values: Sequence[Any] = ()) -> int:
        return self._driver.execute(sql, values).rowcount

    def change_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        self._driver.executemany(sql, rows)

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open; an error of the disk ends one by itself."""
        return self._driver.in_transaction

    def make_lasting(self, *, lasting: bool) -> None:
        """Say whether commits from now on wait for the disk."""
        if lasting is not self._is_lasting:
            self.change(f"PRAGMA synchronous = {'FULL' if lasting else 'NORMAL'}")
            self._is_lasting = lasting

    @contextmanager
    def transaction(self, begin: str = "BEGIN") -> Generator[None]:
        """Run the block in a transaction, which an error rolls back."""
        self.change(begin)
        try:
            yield
            self.change("COMMIT")
        except BaseException:
            self.roll_back()
            raise

    def roll_back(self) -> None:
        """End the transaction, if it is still open."""
        if self.in_transaction:
            self.change("ROLLBACK")

    def close(self) -> None:
        self._driver.close()


class SqliteDatabase(Database):
    """A file; whoever waits for a write waits for the commit of its group."""

    def __init__(self, path: Path, patience: float, check: Callable[[], None]) -> None:
        """Open the file.

        Args:
            path: The file, which is there.
            patience: Seconds for which work on a locked file or a full disk is repeated.
            check: Raises an error if the file was replaced.
        """
        super().__init__(str(path), patience)
        self._check = check
        self._writes: SimpleQueue[Transaction[Any] | None] = SimpleQueue()
        address = f"{path.resolve().as_uri()}?mode=rw"
        self._writing = SqliteConnection(address)
        self._readers = [SqliteConnection(address) for _ in range(_READERS)]
        self._idle: SimpleQueue[SqliteConnection] = SimpleQueue()
        for reader in self._readers:
            self._idle.put(reader)
        self._reading = ThreadPoolExecutor(_READERS, "replan-reads")
        self._thread = Thread(target=self._write_groups, name="replan-writes", daemon=True)
        self._thread.start()

    def _submit(self, transaction: Transaction[Any]) -> None:
        if transaction.writes:
            self._writes.put(transaction)
        else:
            self._reading.submit(self._read, transaction)

    def _read(self, transaction: Transaction[Any]) -> None:
        connection = self._idle.get()
        try:
            with connection.transaction():
                value = transaction.run(connection)
            self._check()
        except BaseException as error:  # noqa: BLE001 - told to who waits
            settle([(transaction, None, error)])
        else:
            settle([(transaction, value, None)])
        finally:
            self._idle.put(connection)

    def _write_groups(self) -> None:
        while (transaction := self._writes.get()) is not None:
            group, is_last = [transaction], False
            while len(group) < _GROUP and not self._writes.empty():
                following = self._writes.get()
                if following is None:
                    is_last = True
                    break
                group.append(following)
            settle(self._written(group))
            if is_last:
                return

    def _written(self, group: Sequence[Transaction[Any]]) -> list[Done]:
        """Write a group in one transaction; what is refused fails alone."""
        try:
            self._writing.make_lasting(lasting=any(transaction.lasting for transaction in group))
            with self._writing.transaction("BEGIN IMMEDIATE"):
                done = [self._one_of_group(transaction) for transaction in group]
            self._check()
        except BaseException as error:  # noqa: BLE001 - told to who waits
            # Nothing of the group is written.
            return [(transaction, None, error) for transaction in group]
        return done

    def _one_of_group(self, transaction: Transaction[Any]) -> Done:
        self._writing.change("SAVEPOINT one")
        try:
            value = transaction.run(self._writing)
            self._writing.change("RELEASE one")
        except BaseException as error:
            if not self._writing.in_transaction:
                raise
            self._writing.change("ROLLBACK TO one")
            self._writing.change("RELEASE one")
            return transaction, None, error
        return transaction, value, None

    async def close(self) -> None:
        await super().close()
        self._writes.put(None)
        await asyncio.to_thread(self._thread.join)
        # What another thread put behind the end is told so.
        while not self._writes.empty():
            if (transaction := self._writes.get()) is not None:
                settle([(transaction, None, self.retrier.closed)])
        self._reading.shutdown()
        for connection in (self._writing, *self._readers):
            connection.close()


class MemoryDatabase(Database):
    """A database in the memory of this process, opened when it is first used."""

    def __init__(self, prepare: Callable[[Connection], None]) -> None:
        """Prepare.

        Args:
            prepare: Makes the tables.
        """
        super().__init__(f":memory:{next(_numbers)}", 0.0)
        self._prepare = prepare
        self._connection: SqliteConnection | None = None
        self._turn = RLock()

    def _submit(self, transaction: Transaction[Any]) -> None:
        try:
            with self._turn:
                connection = self._connected()
                with connection.transaction():
                    value = transaction.run(connection)
        except BaseException as error:  # noqa: BLE001 - told to who waits
            transaction.future.set_exception(error)
        else:
            transaction.future.set_result(value)

    def here(self, work: Coroutine[Any, Any, T], otherwise: str) -> T:
        """Do work on this database, also in an event loop: it waits for nothing."""
        if not is_in_loop():
            return super().here(work, otherwise)
        try:
            work.send(None)
        except StopIteration as end:
            return end.value
        return super().here(work, otherwise)

    def _connected(self) -> SqliteConnection:
        if self._connection is None:
            connection = SqliteConnection(":memory:")
            # Python 3.13 and later warn of one that is left open.
            finalize(self, connection.close)
            self._prepare(connection)
            self._connection = connection
        return self._connection

    async def close(self) -> None:
        await super().close()
        if self._connection is not None:
            self._connection.close()
