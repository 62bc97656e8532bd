"""What lives as long as one call, for a graph that serves many at once: log, accounts, values.

A graph is bound to one log. This one hands everything to the log of the call that is under
way, which a context variable holds: two calls with the same run never meet.
"""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.base import SerializerProtocol

from replan.base.langgraph_inside.tasks import of_whole_tasks
from replan.log.run_log import RunLog
from replan.models.spending.account import Account, Accounts
from replan.storage.databases.serializer import strict_serializer
from replan.storage.memory_log import memory_log
from replan.storage.memory_threads import MemoryThreads


@dataclass(frozen=True)
class _Kept:
    log: RunLog = field(default_factory=memory_log)
    accounts: Accounts = field(default_factory=Accounts)

    @cached_property
    def threads(self) -> MemoryThreads:
        """Those of pipelines; few calls have any."""
        return MemoryThreads()


_kept: ContextVar[_Kept] = ContextVar("replan_call")


class CallLog:
    """The log of the call that is under way."""

    def __getattr__(self, name: str) -> Any:
        return getattr(_kept.get().log, name)


class CallThreads:
    """The threads of the call that is under way."""

    @property
    def own(self) -> MemoryThreads:
        """Those of this call: two calls with the same run never meet."""
        return _kept.get().threads

    async def closed(self, _: str) -> None:
        """Forget nothing: they go with their call."""

    def __getattr__(self, name: str) -> Any:
        return getattr(_kept.get().threads, name)


class CallAccounts(Accounts):
    """What the runs of the call that is under way may still spend."""

    def of(self, log: RunLog, run_id: str) -> Account:
        # An account is also used on other loops and in threads, where the call is unknown.
        kept = _kept.get()
        return kept.accounts.of(kept.log, run_id)

    def close(self, run_id: str) -> None:
        _kept.get().accounts.close(run_id)


@contextmanager
def own_log() -> Generator[RunLog]:
    """Keep a log for what is done inside."""
    token = _kept.set(kept := _Kept())
    try:
        yield kept.log
    finally:
        _kept.reset(token)


_LIVE = "live"


class CallValues(SerializerProtocol):
    """Gives a saver in memory the values themselves: most of them are frozen.

    To write and read them back took half of the time of a turn whose run waits. Lists and mappings
    are copied, so that who adds to one changes no checkpoint.
    """

    def __init__(self) -> None:
        self._written = strict_serializer()

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        if isinstance(obj, dict) and "channel_versions" in obj:
            # LangGraph keeps changing what is inside a checkpoint.
            return self._written.dumps_typed(obj)
        return _LIVE, cast("bytes", _copy(obj))

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        kind, value = data
        return _copy(value) if kind == _LIVE else self._written.loads_typed(data)


def _copy(value: Any) -> Any:
    return cast("Any", value).copy() if isinstance(value, list | dict) else value


class CallSaver(InMemorySaver):
    """The checkpoints of the call that is under way."""

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        super().put_writes(config, of_whole_tasks(writes), task_id, task_path)
