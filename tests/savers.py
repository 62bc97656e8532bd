"""Savers on databases of each kind, plain and encrypted."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from databases import opened_database
from replan.log.run_log import RunLog
from replan.storage.checkpoints.saver import Saver
from replan.storage.databases.cipher import Cipher
from replan.storage.databases.encryption import SealedSerializer
from replan.storage.databases.serializer import strict_serializer
from replan.storage.holds import FileHolds, ThreadLocks
from replan.storage.log_rows import SqlLogs

KEY = b"0123456789abcdef0123456789abcdef"


@asynccontextmanager
async def opened_saver(
    kind: str, path: Path, address: str = "", *, key: bytes | None = None
) -> AsyncGenerator[Saver]:
    """A saver on a new database, or on one that another saver has open."""
    async with opened_database(kind, path, address) as database:
        holds = _holds(kind, path, database)
        serde: Any = strict_serializer()
        if key is not None:
            serde = SealedSerializer.with_key(key, serde)
        try:
            logs = SqlLogs(database, Cipher(key))
            yield Saver(database, serde, holds, logs, RunLog(logs))
        finally:
            await holds.close()


def _holds(kind: str, path: Path, database: Any) -> ThreadLocks:
    if kind == "memory":
        return ThreadLocks(database)
    if kind == "sqlite":
        return FileHolds(path, database)
    from replan.storage.advisory_holds import AdvisoryHolds  # noqa: PLC0415 - an extra

    return AdvisoryHolds(database)
