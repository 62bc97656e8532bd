"""What a run leaves behind in SQLite: rows and bytes, as LangGraph's own saver writes them."""

import sqlite3
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

_CHECKPOINTS = "select count(*), sum(length(checkpoint) + length(metadata)) from checkpoints"
_WRITES = "select channel, count(*), sum(length(value)) from writes group by channel"


@dataclass(frozen=True)
class Stored:
    """The content of a saver's two tables.

    Attributes:
        checkpoints: Rows with a checkpoint, one for each super-step.
        checkpoint_bytes: Their length, metadata included.
        writes: Rows with a write, one for each channel that a task wrote.
        bytes_by_channel: The length of the writes of each channel.
    """

    checkpoints: int
    checkpoint_bytes: int
    writes: int
    bytes_by_channel: dict[str, int]

    @property
    def bytes(self) -> int:
        """All that was written."""
        return self.checkpoint_bytes + sum(self.bytes_by_channel.values())


@asynccontextmanager
async def fresh_saver() -> AsyncGenerator[tuple[Any, Path]]:
    """A saver on a new SQLite file, with its tables made."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "checkpoints.sqlite"
        async with AsyncSqliteSaver.from_conn_string(str(path)) as saver:
            await saver.setup()
            yield saver, path


def stored(path: Path) -> Stored:
    """Read what stands in the file."""
    with closing(sqlite3.connect(path)) as database:
        checkpoints, checkpoint_bytes = database.execute(_CHECKPOINTS).fetchone()
        writes = database.execute(_WRITES).fetchall()
    return Stored(
        checkpoints=checkpoints,
        checkpoint_bytes=checkpoint_bytes,
        writes=sum(rows for _, rows, _ in writes),
        bytes_by_channel={channel: length for channel, _, length in writes},
    )
