"""Runs in a PostgreSQL database: for several machines, or when a server is there anyway."""

import asyncio
import math
import time
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, TypeVar

import psycopg
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.serde.base import SerializerProtocol
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool
from sqlalchemy import Connection as SyncConnection, NullPool, func, inspect, select, text
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from replan.adapters.storage.database import Patience
from replan.adapters.storage.holds.advisory_holds import AdvisoryHolds
from replan.adapters.storage.stored_values.sealing import Facts, Seal
from replan.adapters.storage.tables import formats
from replan.errors import ConfigurationError, StorageError
from replan.langgraph_inside.checkpoints import MIGRATIONS_TABLE, NEWEST_MIGRATION, known_migrations
from replan.ports.ownership import Owner

_LOCK = int.from_bytes(b"Replan", "big")
_CONNECT_TIMEOUT = 10
_SILENCE = 10.0
_POLL = 0.05

_BEGIN = "BEGIN; SELECT epoch FROM replan_threads WHERE thread_id = {} FOR SHARE"

Connection = psycopg.AsyncConnection[Any]
Opened = tuple[SerializerProtocol, Seal]


R = TypeVar("R")


class SilentServerError(psycopg.OperationalError):
    """Nothing came from the server for too long, so the connection was thrown away."""


class HeardConnection(psycopg.AsyncConnection[Any]):
    """A connection that ends if nothing arrives for long while a caller waits."""

    longest = 600.0

    async def wait(self, gen: Generator[Any, Any, R], *given: Any, **options: Any) -> R:
        """Wait for an answer, as long as anything comes or can be sent."""
        return await super().wait(self._watched(gen), *given, **options)

    def _watched(self, gen: Generator[Any, Any, R]) -> Generator[Any, Any, R]:
        try:
            state = next(gen)
            since = time.monotonic()
            while True:
                # Several times a second it is asked even if there is nothing.
                ready = yield state
                if ready:
                    since = time.monotonic()
                elif time.monotonic() - since > self.longest:
                    self.pgconn.finish()
                    raise SilentServerError(f"nothing came from it for {self.longest:g} s")
                state = gen.send(ready)
        except StopIteration as end:
            return end.value


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


def holds_of(address: str, patience: Patience) -> AdvisoryHolds:
    silence = _longest_silence(patience.seconds)
    return AdvisoryHolds(lambda: _connect(address, silence, autocommit=True), patience)


@asynccontextmanager
async def connected(
    address: str, patience: float, connections: int
) -> AsyncGenerator[tuple[Any, AsyncEngine]]:
    """A pool for LangGraph's saver and an engine for our tables, on the same database."""
    of_saver = connections // 2
    silence = _longest_silence(patience)

    async def bound(connection: HeardConnection) -> None:
        connection.longest = silence

    async with AsyncExitStack() as stack:
        pool = AsyncConnectionPool(
            _with_timeouts(address, silence),
            connection_class=HeardConnection,
            configure=bound,
            min_size=1,
            max_size=of_saver,
            open=False,
            # One attempt; what is asked again is asked by us.
            timeout=min(patience, 1.0),
            # A connection that broke while it lay idle is not handed out.
            check=AsyncConnectionPool.check_connection,
            kwargs={
                "autocommit": True,
                "prepare_threshold": 0,
                "row_factory": dict_row,
            },
        )
        stack.push_async_callback(pool.close)
        await pool.open()
        engine = _engine(
            address,
            silence,
            pool_size=connections - of_saver,
            max_overflow=0,
            pool_pre_ping=True,
            autocommit=True,
        )
        stack.push_async_callback(engine.dispose)
        yield pool, engine


async def prepare_database(
    address: str,
    where: str,
    *,
    new_facts: Callable[[], Facts],
    opened: Callable[[Facts], Opened],
) -> Opened:
    """Make or upgrade our tables in one transaction, then LangGraph's; one process at a time."""

    def prepared(connection: SyncConnection) -> Opened:
        facts = formats.read_facts(connection, where)
        _check_langgraphs_tables(connection, where)
        if not facts:
            facts = new_facts()
            formats.make(connection, facts, where)
        found = opened(facts)
        formats.upgrade(connection, where)
        return found

    engine = _engine(address, HeardConnection.longest, poolclass=NullPool)
    async with engine.connect() as connection:
        # Not waited for inside the server: LangGraph's setup builds indexes in a way that waits for
        # every open statement, so a process that waited there would stop the one it waits for.
        while not await connection.scalar(select(func.pg_try_advisory_lock(_LOCK))):
            await connection.rollback()
            await asyncio.sleep(_POLL)
        found = await connection.run_sync(prepared)
        await connection.commit()
        await _set_up_saver(address)
        # The lock falls with the connection.
        return found


async def _set_up_saver(address: str) -> None:
    """Make or upgrade LangGraph's tables, each change in its own transaction."""
    connection = await _connect(
        address, HeardConnection.longest, autocommit=True, prepare_threshold=0, row_factory=dict_row
    )
    async with connection:
        await AsyncPostgresSaver(connection).setup()


async def begin(driver: Connection, *, writes: bool, owner: Owner | None) -> None:
    """Begin a transaction; that of an owner asks in the same message whose the thread is."""
    if owner is not None:
        # Who would take the thread now waits until what is written here is on record.
        query = sql.SQL(_BEGIN).format(owner.thread_id)
        looked = await driver.execute(query, prepare=False)
        looked.nextset()
        row = await looked.fetchone()
        owner.check(row and row[0])
    elif writes:
        await driver.execute("BEGIN")


def _engine(
    address: str, silence: float, *, autocommit: bool = False, **options: Any
) -> AsyncEngine:
    return create_async_engine(
        "postgresql+psycopg://",
        async_creator=lambda: _connect(address, silence, autocommit=autocommit),
        **options,
    )


async def _connect(address: str, silence: float, **options: Any) -> Connection:
    connection = await HeardConnection.connect(_with_timeouts(address, silence), **options)
    connection.longest = silence
    return connection


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


def _check_langgraphs_tables(connection: SyncConnection, where: str) -> None:
    """See to it that the saver knows the newest change that was made to its tables."""
    if not inspect(connection).has_table(MIGRATIONS_TABLE):
        return
    newest = connection.scalar(text(NEWEST_MIGRATION))
    if newest >= known_migrations(AsyncPostgresSaver):
        raise StorageError(
            where,
            "LangGraph's tables in it were written by a newer version of LangGraph's saver.",
            "It is unchanged: upgrade langgraph-checkpoint-postgres, or name another database.",
        )
