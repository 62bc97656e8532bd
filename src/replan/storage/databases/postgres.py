"""A PostgreSQL database: for several machines, or when a server is there anyway."""

import asyncio
import math
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg_pool import ConnectionPool

from replan.base.errors import ConfigurationError
from replan.storage.databases import schema
from replan.storage.databases.database import Database, Retrier, Row, Transaction, settle
from replan.storage.databases.encryption import Facts

T = TypeVar("T")
R = TypeVar("R")

_LOCK = int.from_bytes(b"Replan", "big")
_CONNECT_TIMEOUT = 10
_SILENCE = 10.0
_POLL = 0.05


class SilentServerError(psycopg.OperationalError):
    """Nothing came from the server for too long, so the connection was thrown away."""


class WatchedConnection(psycopg.Connection[Any]):
    """A connection that ends if nothing arrives for long while a caller waits."""

    longest = 600.0

    def wait(self, gen: Generator[Any, Any, R], *args: Any, **options: Any) -> R:
        """Wait for an answer, as long as anything comes or can be sent."""
        return super().wait(_watched(gen, self), *args, **options)


def _watched(gen: Generator[Any, Any, R], connection: Any) -> Generator[Any, Any, R]:
    try:
        state = next(gen)
        since = time.monotonic()
        while True:
            # Several times a second it is asked even if there is nothing.
            ready = yield state
            if ready:
                since = time.monotonic()
            elif time.monotonic() - since > connection.longest:
                connection.pgconn.finish()
                raise SilentServerError(f"nothing came from it for {connection.longest:g} s")
            state = gen.send(ready)
    except StopIteration as end:
        return end.value


class PostgresConnection:
    """A connection for one transaction, which whoever has it begins and ends."""

    is_postgres = True

    def __init__(self, driver: psycopg.Connection[Any]) -> None:
        self._driver = driver

    def query(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        return self._driver.execute(_in_dialect(sql), values).fetchall()

    def change(self, sql: str, values: Sequence[Any] = ()) -> int:
        return self._driver.execute(_in_dialect(sql), values).rowcount

    def change_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        self._driver.cursor().executemany(_in_dialect(sql), rows)


@lru_cache(maxsize=500)
def _in_dialect(sql: str) -> Any:
    return sql.replace("%", "%%").replace("?", "%s")


class PostgresDatabase(Database):
    """A pool of connections, each with a thread that works with it."""

    is_postgres = True

    def __init__(self, address: str, patience: float, connections: int) -> None:
        """Prepare; connections are made when they are needed."""
        super().__init__(shown(address), patience)
        self.address = address
        self.silence = _longest_silence(patience)
        self._pool = ConnectionPool(
            _with_timeouts(address, self.silence),
            connection_class=WatchedConnection,
            configure=self._configure,
            min_size=0,
            max_size=connections,
            open=False,
            # One attempt; what is asked again is asked by us.
            timeout=min(patience, 1.0),
            # A connection that broke while it lay idle is not handed out.
            check=ConnectionPool.check_connection,
            kwargs={"autocommit": True, "prepare_threshold": 0},
        )
        self._pool.open()
        self._threads = ThreadPoolExecutor(connections, "replan-postgres")

    def _configure(self, connection: WatchedConnection) -> None:
        connection.longest = self.silence

    def _submit(self, transaction: Transaction[Any]) -> None:
        self._threads.submit(self._run_transaction, transaction)

    def _run_transaction(self, transaction: Transaction[Any]) -> None:
        try:
            with self._pool.connection() as driver, driver.transaction():
                if transaction.writes and not transaction.lasting:
                    driver.execute("SET LOCAL synchronous_commit TO off")
                value = transaction.run(PostgresConnection(driver))
        except BaseException as error:  # noqa: BLE001 - told to who waits
            settle([(transaction, None, error)])
        else:
            settle([(transaction, value, None)])

    async def close(self) -> None:
        await super().close()
        self._threads.shutdown()
        await asyncio.to_thread(self._pool.close)

    async def prepare(
        self, new_facts: Callable[[], Facts], opened: Callable[[Facts], T], patience: float
    ) -> T:
        """Make or upgrade the tables in one transaction; one process at a time.

        Args:
            new_facts: What a new database keeps about itself.
            opened: Reads these facts; its error leaves the database as it was.
            patience: Seconds for which a server that is away is asked again.
        """

        def attempt() -> "asyncio.Future[T]":
            return asyncio.ensure_future(asyncio.to_thread(self._prepare, new_facts, opened))

        return await Retrier(self.where, patience, is_opening=True).run(attempt)

    def _prepare(self, new_facts: Callable[[], Facts], opened: Callable[[Facts], T]) -> T:
        with self.connect() as driver:
            connection = PostgresConnection(driver)
            while not connection.query("SELECT pg_try_advisory_lock(?)", [_LOCK])[0][0]:
                time.sleep(_POLL)
            # The lock falls with the connection.
            with driver.transaction():
                facts = schema.read_facts(connection, self.where)
                if not facts:
                    facts = new_facts()
                    schema.make(connection, facts, self.where)
                cipher = opened(facts)
                schema.upgrade(connection, self.where)
        return cipher

    def connect(self) -> psycopg.Connection[Any]:
        """A connection of its own, without transactions; the caller closes it."""
        address = _with_timeouts(self.address, self.silence)
        connection = WatchedConnection.connect(address, autocommit=True)
        connection.longest = self.silence
        return connection


def shown(address: str) -> str:
    """An address without user name and password."""
    try:
        parts = conninfo_to_dict(address)
    except psycopg.ProgrammingError:
        raise ConfigurationError(
            "storage",
            "postgresql://...",
            "This is not an address of PostgreSQL.",
            "Write `postgresql://user@host/database`; encode what is special in a password "
            "(`@` is `%40`).",
        ) from None
    port = f":{parts['port']}" if parts.get("port") else ""
    return f"postgresql://{parts.get('host') or ''}{port}/{parts.get('dbname') or ''}"


def _longest_silence(patience: float) -> float:
    """Seconds after which a connection on which nothing moves is taken for dead."""
    return max(1.0, min(patience, _SILENCE))


def _with_timeouts(address: str, silence: float) -> str:
    """An address that says how long to wait for a server, where it does not say so itself."""
    usual: dict[str, Any] = {
        "connect_timeout": min(_CONNECT_TIMEOUT, max(2, math.ceil(silence))),
        # A connection that lies idle, such as the one that holds threads, is looked at, too.
        "keepalives_idle": 30,
        "keepalives_interval": 10,
        "keepalives_count": 3,
        "tcp_user_timeout": int(1000 * silence),
    }
    return make_conninfo("", **{**usual, **conninfo_to_dict(address)})
