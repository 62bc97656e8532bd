"""A journal and accounts that live as long as one call, for a graph that serves many at once.

A graph is bound to one journal. This one hands everything to the journal of the call that is under
way, which a context variable holds: two calls with the same run never meet.
"""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from replan.adapters.memory_journal import MemoryJournal
from replan.adapters.threads.in_memory import MemoryThreads
from replan.ports.journal import Journal
from replan.spending.account import Account, Accounts


@dataclass(frozen=True)
class _Kept:
    """What one call keeps."""

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
