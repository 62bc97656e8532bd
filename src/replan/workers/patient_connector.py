"""Procrastinate's connections, which outlast a server that restarts."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from typing import Any, LiteralString, TypeVar

import psycopg
from procrastinate import exceptions
from procrastinate.connector import Notify
from procrastinate.psycopg_connector import PsycopgConnector
from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception,
    stop_before_delay,
    wait_exponential,
)

from replan.log.uninterrupted import uninterrupted

SCHEMA = "replan_queue"  # the schema of the queue, in the database of the storage

_PAUSE = 0.2
_LONGEST_PAUSE = 2.0

logger = logging.getLogger(__name__)
T = TypeVar("T")


class PatientConnector(PsycopgConnector):
    """Asks again for some time where the server is away.

    A statement whose answer was lost is sent twice. Each of ours may be: what it did the first time
    is found by the look after orphans (`fenced_jobs`).
    """

    def __init__(self, address: str, patience: float, connections: int) -> None:
        super().__init__(  # pyright: ignore[reportUnknownMemberType] - of its base
            conninfo=address,
            configure=_to_our_schema,
            min_size=1,
            max_size=connections,
            timeout=min(patience, 5.0),
        )
        self._patience = patience

    async def execute_query_async(self, query: LiteralString, **arguments: Any) -> None:
        await self._retry(partial(super().execute_query_async, query, **arguments))

    async def execute_query_one_async(
        self, query: LiteralString, **arguments: Any
    ) -> dict[str, Any]:
        return await self._retry(partial(super().execute_query_one_async, query, **arguments))

    async def execute_query_all_async(
        self, query: LiteralString, **arguments: Any
    ) -> list[dict[str, Any]]:
        return await self._retry(partial(super().execute_query_all_async, query, **arguments))

    async def listen_notify(self, on_notification: Notify, channels: Iterable[str]) -> None:
        """Hear of new jobs; without end, whatever happens to a connection."""
        base = super()
        names = tuple(channels)
        while True:
            try:
                await base.listen_notify(on_notification, names)
            except exceptions.ConnectorException as error:
                if not is_away(error):
                    raise
                # Jobs are found by looking, too.
                await asyncio.sleep(_LONGEST_PAUSE)

    async def _retry(self, attempt: Callable[[], Coroutine[Any, Any, T]]) -> T:
        retrying = AsyncRetrying(
            retry=retry_if_exception(is_away),
            stop=stop_before_delay(self._patience),
            wait=wait_exponential(_PAUSE, max=_LONGEST_PAUSE),
            before_sleep=_report,
            reraise=True,
        )

        async def whole_attempt() -> T:
            # A pool that hands a connection over loses a cancellation (`asyncio.wait_for` of
            # Python 3.11).
            return await uninterrupted(attempt())

        return await retrying(whole_attempt)


def is_away(error: BaseException) -> bool:
    """Whether the server could not be reached, or ended the connection."""
    is_of_queue = isinstance(error, exceptions.ConnectorException)
    return is_of_queue and isinstance(
        error.__cause__, psycopg.OperationalError | psycopg.InterfaceError
    )


def _report(state: RetryCallState) -> None:
    error = state.outcome and state.outcome.exception()
    logger.info("queue is away", extra={"error": type(error and error.__cause__).__name__})


async def _to_our_schema(connection: psycopg.AsyncConnection[Any]) -> None:
    await connection.execute(f"SET search_path = {SCHEMA}")
    # A rollback would undo the setting.
    if not connection.autocommit:
        await connection.commit()
