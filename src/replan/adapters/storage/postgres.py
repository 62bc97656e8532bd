"""Runs in a PostgreSQL database: for several machines, or when a server is there anyway."""
# LangGraph leaves the type arguments of savers open.
# pyright: reportUnknownMemberType=false

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import psycopg
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.serde.base import SerializerProtocol
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool
from sqlalchemy.dialects import postgresql
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.schema import CreateIndex, CreateTable

from replan.adapters.storage import schema
from replan.adapters.storage.advisory_holds import AdvisoryHolds
from replan.adapters.storage.database import Patience
from replan.adapters.storage.holding import Holds
from replan.adapters.storage.savers import WholeSaver
from replan.adapters.storage.sealing import Hidden, SealedSerializer
from replan.adapters.storage.secrecy import Facts
from replan.errors import ConfigurationError, StorageError

CONNECTIONS = 8
"""Connections that state and journal may use at a time, each."""

_LOCK = int.from_bytes(b"Replan", "big")
_CONNECT_TIMEOUT = 10
_POLL = 0.05

Connection = psycopg.AsyncConnection[Any]


class PostgresSaver(WholeSaver, AsyncPostgresSaver):
    """LangGraph's saver, made whole; with a key, it writes no text in the clear."""

    def __init__(
        self, pool: Any, serde: SerializerProtocol, patience: Patience, holds: Holds
    ) -> None:
        super().__init__(pool, serde=serde)
        self.patience = patience
        self.holds = holds

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Write a checkpoint; the parent would write texts past the serializer."""
        if isinstance(self.serde, SealedSerializer):
            values = {
                name: Hidden(value) if isinstance(value, str) else value
                for name, value in checkpoint["channel_values"].items()
            }
            checkpoint = {**checkpoint, "channel_values": values}
        return await super().aput(config, checkpoint, metadata, new_versions)


def shown(address: str) -> str:
    """An address without user name and password.

    Raises:
        ConfigurationError: It is none; what it says instead may hold a password, and is not told.
    """
    try:
        parts = conninfo_to_dict(address)
    except psycopg.ProgrammingError:
        raise ConfigurationError(
            "storage",
            "postgresql://...",
            "This is no address of PostgreSQL.",
            "Write `postgresql://user@host/database`; encode what is special in a password "
            "(`@` is `%40`).",
        ) from None
    port = f":{parts['port']}" if parts.get("port") else ""
    return f"postgresql://{parts.get('host') or ''}{port}/{parts.get('dbname') or ''}"


def holds_of(address: str, patience: Patience) -> AdvisoryHolds:
    """The threads that are worked on in a database."""
    return AdvisoryHolds(lambda: _connect(address, autocommit=True), patience)


@asynccontextmanager
async def connected(address: str, patience: float) -> AsyncGenerator[tuple[Any, AsyncEngine]]:
    """A pool for LangGraph's saver and an engine for our tables, on the same database."""
    async with AsyncExitStack() as stack:
        pool = AsyncConnectionPool(
            address,
            min_size=1,
            max_size=CONNECTIONS,
            open=False,
            timeout=min(patience, 5.0),
            # A connection that broke while it lay idle is not handed out.
            check=AsyncConnectionPool.check_connection,
            kwargs={
                "autocommit": True,
                "prepare_threshold": 0,
                "row_factory": dict_row,
                "connect_timeout": _CONNECT_TIMEOUT,
            },
        )
        stack.push_async_callback(pool.close)
        await pool.open()
        engine = create_async_engine(
            "postgresql+psycopg://",
            async_creator=lambda: _connect(address),
            pool_size=CONNECTIONS,
            max_overflow=0,
            pool_pre_ping=True,
        )
        stack.push_async_callback(engine.dispose)
        yield pool, engine


async def prepare_database(
    address: str, new_facts: Callable[[], Facts], saver_setup: Callable[[], Any], where: str
) -> Facts:
    """Make the tables that are missing, one process at a time.

    Returns:
        What the database keeps about itself.

    Raises:
        StorageError: It was written by a newer version, of ours or of LangGraph's saver.
    """
    async with await _connect(address, autocommit=True) as connection:
        # Not waited for inside the server: LangGraph's setup builds indexes in a way that waits for
        # every open statement, so a process that waited there would stop the one it waits for.
        locked = f"SELECT pg_try_advisory_lock({_LOCK})"
        while not await _scalar(connection, locked):  # noqa: ASYNC110 - another process holds it
            await asyncio.sleep(_POLL)
        facts = await _facts_of(connection)
        if not facts:
            for statement in _definitions():
                await connection.execute(statement)
            made = {**new_facts(), "version": str(schema.SCHEMA_VERSION).encode()}
            async with connection.cursor() as cursor, connection.transaction():
                await cursor.executemany(
                    "INSERT INTO replan_facts (name, value) VALUES (%s, %s)", list(made.items())
                )
            facts = made
        version = int(facts["version"])
        if version > schema.SCHEMA_VERSION:
            raise StorageError(
                where,
                f"It was written by a newer version of Replan (its format is {version}, this "
                f"version knows {schema.SCHEMA_VERSION}).",
                "It was left as it was: upgrade Replan, or name another database.",
            )
        if await _langgraphs_version(connection) >= len(AsyncPostgresSaver.MIGRATIONS):
            raise StorageError(
                where,
                "LangGraph's tables in it are of a newer version of its saver.",
                "It was left as it was: upgrade langgraph-checkpoint-postgres, or name another "
                "database.",
            )
        await saver_setup()
        # The lock falls with the connection.
        return facts


async def _connect(address: str, **options: Any) -> Connection:
    return await psycopg.AsyncConnection.connect(
        address, connect_timeout=_CONNECT_TIMEOUT, **options
    )


async def _facts_of(connection: Connection) -> Facts:
    if await _scalar(connection, "SELECT to_regclass('replan_facts')") is None:
        return {}
    rows = await (await connection.execute("SELECT name, value FROM replan_facts")).fetchall()
    return {str(name): bytes(value) for name, value in rows}


async def _langgraphs_version(connection: Connection) -> int:
    """The newest change that was made to LangGraph's tables; -1 before they are there."""
    if await _scalar(connection, "SELECT to_regclass('checkpoint_migrations')") is None:
        return -1
    return int(await _scalar(connection, "SELECT coalesce(max(v), -1) FROM checkpoint_migrations"))


async def _scalar(connection: Connection, query: Any) -> Any:
    row = await (await connection.execute(query)).fetchone()
    return None if row is None else row[0]


def _definitions() -> list[Any]:
    """The tables, one command each: PostgreSQL prepares no string with two."""
    dialect = postgresql.dialect()
    found: list[str] = []
    for table in schema.metadata.sorted_tables:
        found.append(str(CreateTable(table, if_not_exists=True).compile(dialect=dialect)))
        found.extend(
            str(CreateIndex(index, if_not_exists=True).compile(dialect=dialect))
            for index in sorted(table.indexes, key=lambda index: str(index.name))
        )
    return found
