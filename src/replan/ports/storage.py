"""Everything that outlives a process: state, logs, the list of runs, sessions, the store."""

from dataclasses import dataclass
from typing import Any, cast

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore

from replan.log.run_log import RunLog
from replan.ports.ownership import ThreadLocks
from replan.ports.run_book import RunBook, RunRecord
from replan.ports.session_store import SessionStore
from replan.ports.thread_repository import ThreadRepository


@dataclass(frozen=True, kw_only=True)
class Storage:
    """A storage: `open_storage` returns it, and `build_graph` takes it.

    Attributes:
        checkpointer: A LangGraph saver with a strict serializer.
        log: The log of each run: what must be known even if a node never returns, and its events.
        runs: The list of runs.
        sessions: The sessions of clients, turn by turn.
        store: A LangGraph store, for what outlives runs and threads. The graph gets it.
        threads: The threads of pipelines, message by message.
        keep_days: Days for which prompts, replies and long texts of events are kept; None means
            as long as their runs.
    """

    checkpointer: BaseCheckpointSaver[Any]
    log: RunLog
    runs: RunBook
    sessions: SessionStore
    store: BaseStore
    threads: ThreadRepository
    keep_days: float | None = None

    @property
    def holds(self) -> ThreadLocks:
        """Which run works on which thread."""
        return cast("Any", self.checkpointer).holds

    async def works_on(self, record: RunRecord) -> bool:
        """Whether any process works on a run now."""
        return record.outcome == "running" and await self.holds.is_held(record.thread_id)
