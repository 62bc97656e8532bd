"""What goes over the connections to a PostgreSQL: a relay that counts statements and round trips.

It stands between a program and the server, and reads the heads of the messages of PostgreSQL's
protocol 3. A round trip is a change of direction: something is sent after something came back. What
is sent in one piece, as a pipeline does, is one round trip.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from psycopg.conninfo import conninfo_to_dict

_HEAD = 5
_STATEMENTS = b"QE"  # a simple query, or the execution of a prepared one


@dataclass
class Counted:
    """What went over all connections so far."""

    statements: int = 0
    round_trips: int = 0
    bytes_up: int = 0
    bytes_down: int = 0

    def since(self, before: "Counted") -> "Counted":
        """What came since an earlier count."""
        return Counted(*(now - then for now, then in zip(self.all, before.all, strict=True)))

    @property
    def all(self) -> tuple[int, int, int, int]:
        """The figures, in their order."""
        return self.statements, self.round_trips, self.bytes_up, self.bytes_down


@dataclass
class _Connection:
    """Where the messages of a connection begin, and which way the last bytes went."""

    counted: Counted
    left: bytearray = field(default_factory=bytearray)
    skip: int = 0  # bytes of a message that are still to come
    has_begun: bool = False  # the first message has no letter
    went_up: bool = False

    def up(self, piece: bytes) -> None:
        counted = self.counted
        counted.bytes_up += len(piece)
        counted.round_trips += not self.went_up
        self.went_up = True
        self._heads(piece)

    def down(self, piece: bytes) -> None:
        self.counted.bytes_down += len(piece)
        self.went_up = False

    def _heads(self, piece: bytes) -> None:
        self.left += piece
        while True:
            skipped = min(self.skip, len(self.left))
            del self.left[:skipped]
            self.skip -= skipped
            size = _HEAD if self.has_begun else _HEAD - 1
            if self.skip or len(self.left) < size:
                return
            length = int.from_bytes(self.left[size - 4 : size], "big")
            self.counted.statements += self.has_begun and self.left[0] in _STATEMENTS
            self.skip, self.has_begun = length + size - 4, True


@asynccontextmanager
async def relayed(address: str) -> AsyncGenerator[tuple[str, Counted]]:
    """An address that leads to the same database, and what goes over it."""
    parts, counted, joinings = conninfo_to_dict(address), Counted(), set[asyncio.Task[object]]()
    host, port = str(parts.get("host") or "127.0.0.1"), int(parts.get("port") or 5432)

    async def joined(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if host.startswith("/"):
            there, back = await asyncio.open_unix_connection(f"{host}/.s.PGSQL.{port}")
        else:
            there, back = await asyncio.open_connection(host, port)
        one, own_task = _Connection(counted), asyncio.current_task()
        if own_task is not None:
            joinings.add(own_task)
        ways = (_carried(reader, back, one.up), _carried(there, writer, one.down))
        await asyncio.gather(*ways, return_exceptions=True)

    server = await asyncio.start_server(joined, "127.0.0.1", 0)
    own = server.sockets[0].getsockname()[1]
    user, name = parts.get("user", ""), parts.get("dbname", "")
    word = f":{parts['password']}" if parts.get("password") else ""
    options = "sslmode=disable&gssencmode=disable"
    yield f"postgresql://{user}{word}@127.0.0.1:{own}/{name}?{options}", counted
    server.close()
    if joinings:
        # Whoever used the address has closed its connections.
        await asyncio.wait(joinings, timeout=5)


async def _carried(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, tell: Callable[[bytes], None]
) -> None:
    while piece := await reader.read(65_536):
        tell(piece)
        writer.write(piece)
        await writer.drain()
    writer.close()
