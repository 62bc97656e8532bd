"""A PostgreSQL behind a network that swallows everything: nothing waits for it forever."""

import asyncio
import time
from contextlib import asynccontextmanager

from psycopg.conninfo import conninfo_to_dict
from tenacity import AsyncRetrying, wait_fixed

from replan import (
    StorageError,
    open_storage,
)

PATIENCE = 1.0
# What is left over: connecting anew, the writes that LangGraph makes beside, closing.
SOON = 15 * PATIENCE


class Network:
    """A way to a server that can swallow what is sent, without a word to either side."""

    def __init__(self, port):
        self._port = port
        self._passes = asyncio.Event()
        self._passes.set()
        self._ends = set()

    def swallow(self):
        self._passes.clear()

    def end(self):
        """Drop all connections: whoever closes a server waits for them, from Python 3.12 on."""
        self._passes.set()
        for each in self._ends:
            each.transport.abort()

    async def carry(self, reader, writer):
        there, back = await asyncio.open_connection("127.0.0.1", self._port)
        self._ends |= {writer, back}
        try:
            await asyncio.gather(self._one_way(reader, back), self._one_way(there, writer))
        except OSError:
            pass
        finally:
            writer.close()
            back.close()

    async def _one_way(self, reader, writer):
        while data := await reader.read(65_536):
            await self._passes.wait()
            writer.write(data)
        writer.close()


@asynccontextmanager
async def network_before(database):
    parts = conninfo_to_dict(database)
    network = Network(int(parts["port"]))
    server = await asyncio.start_server(network.carry, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        yield network, f"postgresql://{parts['user']}@127.0.0.1:{port}/{parts['dbname']}"
        network.end()


THREAD = {"configurable": {"thread_id": "t"}}


async def test_no_connection_waits_for_a_server_that_fell_silent(postgres_database):
    async with (
        asyncio.timeout(60),
        network_before(postgres_database) as (network, address),
        open_storage(address, patience=PATIENCE) as storage,
    ):

        async def held():
            async with storage.checkpointer.lock("t"):
                pass

        async def used():
            """Use each kind of connection, all at once; tells what went wrong."""
            kept = storage.log.notes("r"), storage.checkpointer.aget_tuple(THREAD)
            return await asyncio.gather(held(), *kept, return_exceptions=True)

        assert not [each for each in await used() if isinstance(each, Exception)]
        network.swallow()
        began = time.monotonic()
        errors = await used()
        assert all(isinstance(each, StorageError) for each in errors)
        assert all("cannot be reached" in str(each) for each in errors)
        assert time.monotonic() - began < SOON
        network.end()
        # For a moment it is believed that the database is away.
        async for attempt in AsyncRetrying(wait=wait_fixed(0.05)):
            with attempt:
                assert not [each for each in await used() if isinstance(each, Exception)]


async def test_an_address_may_say_itself_how_long_to_wait(postgres_database):
    address = postgres_database + "?connect_timeout=7"
    async with open_storage(address, patience=PATIENCE) as storage:
        with await asyncio.to_thread(storage.checkpointer.database.connect) as connection:
            said = connection.info.get_parameters()
    assert said["connect_timeout"] == "7"
    assert said["tcp_user_timeout"] == "1000"
