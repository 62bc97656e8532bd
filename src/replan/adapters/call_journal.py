"""What lives as long as one call, for a graph that serves many at once: journal, accounts, values.

A graph is bound to one journal. This one hands everything to the journal of the call that is under
way, which a context variable holds: two calls with the same run never meet.
"""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, cast

from langgraph.checkpoint.serde.base import SerializerProtocol

from replan.adapters.memory_journal import MemoryJournal
from replan.adapters.storage.stored_values.serializer import strict_serializer
from replan.adapters.thread_repositories import MemoryThreads
from replan.ports.journal import Journal
from replan.spending.account import Account, Accounts


@dataclass(frozen=True)
class _Kept:
    journal: MemoryJournal = field(default_factory=MemoryJournal)
    accounts: Accounts = field(default_factory=Accounts)
    threads: MemoryThreads = field(default_factory=MemoryThreads)


_kept: ContextVar[_Kept] = ContextVar("replan_call")


class CallJournal:
    """The journal of the call that is under way."""

    def __getattr__(self, name: str) -> Any:
        return getattr(_kept.get().journal, name)


class CallThreads:
    """The threads of the call that is under way."""

    @property
    def own(self) -> MemoryThreads:
        """Those of this call: two calls with the same run never meet."""
        return _kept.get().threads

    def __getattr__(self, name: str) -> Any:
        return getattr(_kept.get().threads, name)


class CallAccounts(Accounts):
    """What the runs of the call that is under way may still spend."""

    def of(self, journal: Journal, run_id: str) -> Account:
        # An account is also used on other loops and in threads, where the call is unknown.
        kept = _kept.get()
        return kept.accounts.of(kept.journal, run_id)

    def close(self, run_id: str) -> None:
        _kept.get().accounts.close(run_id)


@contextmanager
def own_journal() -> Generator[Journal]:
    """Keep a journal for what is done inside."""
    token = _kept.set(kept := _Kept())
    try:
        yield kept.journal
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
