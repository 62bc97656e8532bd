"""LangGraph's saver for PostgreSQL, made whole: what is written to a thread, its owner writes."""
# LangGraph leaves the type arguments of savers open.
# pyright: reportUnknownMemberType=false

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import psycopg
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.serde.base import SerializerProtocol

from replan.adapters.storage.checkpoints.savers import WholeSaver, Work
from replan.adapters.storage.database import Database, Patience
from replan.adapters.thread_holds import Holds

_FENCE = """
SELECT 1 / count(*) FROM (
    SELECT epoch FROM replan_threads WHERE thread_id = %s AND epoch = %s FOR SHARE
) AS owned
"""
"""Fails, and all that follows it in the pipeline, where the thread is another's."""

T = TypeVar("T")

_owned: ContextVar[tuple[str, int] | None] = ContextVar("owned", default=None)


class PostgresSaver(WholeSaver, AsyncPostgresSaver):
    """LangGraph's saver, made whole."""

    def __init__(
        self,
        pool: Any,
        serde: SerializerProtocol,
        patience: Patience,
        holds: Holds,
        database: Database,
    ) -> None:
        super().__init__(pool, serde=serde)
        self.patience = patience
        self.holds = holds
        self.database = database

    @asynccontextmanager
    async def _cursor(self, *, pipeline: bool = False) -> AsyncGenerator[Any]:
        """Return a cursor; what is written with it begins with a look whose the thread is."""
        async with super()._cursor(pipeline=pipeline) as cursor:
            owned = _owned.get()
            if pipeline and owned is not None:
                await cursor.execute(_FENCE, owned)
            yield cursor

    async def _owned(self, config: RunnableConfig, work: Work[T]) -> T:
        thread_id = str(config.get("configurable", {}).get("thread_id"))
        epoch = self.holds.epoch_of(thread_id)
        token = _owned.set(None if epoch is None else (thread_id, epoch))
        try:
            return await super()._owned(config, work)
        finally:
            _owned.reset(token)

    def _tells_loss(self, error: Exception) -> bool:
        return isinstance(error, psycopg.errors.DivisionByZero)
