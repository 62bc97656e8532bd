"""Whose a thread is: each take of it has a number, and only the newest take may write.

A run may lose its thread without noticing: the connection that holds it falls, or its process
hangs, and another run takes the thread. So all that a run writes is checked against the
number of its take, in the transaction that writes it.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    aclosing,
    asynccontextmanager,
    contextmanager,
)
from contextvars import Context, ContextVar, copy_context
from typing import Any, Protocol, TypeVar

from replan.base.errors import ThreadBusyError, ThreadLostError

T = TypeVar("T")

MOMENT = 1.0
"""Seconds to wait for a thread: longer than a process that was just killed takes to release it."""

POLL = 0.05
"""Seconds from one attempt to take a thread to the next."""


class Owner:
    """One take of a thread."""

    def __init__(self, where: str, thread_id: str) -> None:
        self.where = where  # the storage that keeps the thread
        self.thread_id = thread_id
        self.epoch = 0  # the number of the take; each one of the thread has a larger number
        self.is_lost = False  # whether the thread is known to be another's now
        self._at_work: dict[asyncio.Task[Any], int] = {}

    @property
    def loss(self) -> ThreadLostError:
        """The error for what an owner does after it lost its thread."""
        return ThreadLostError(self.where, self.thread_id)

    def check(self, newest: int | None) -> None:
        """Compare with the number of the thread's newest take."""
        if newest != self.epoch:
            raise self.loss

    def lose(self) -> None:
        """Stop the owner's work: another run has the thread."""
        if self.is_lost:
            return
        self.is_lost = True
        for task in self._at_work:
            task.cancel()

    @contextmanager
    def at_work(self) -> Generator[None]:
        """Work as the owner: what it writes is checked, and it ends when the thread is lost."""
        if self.is_lost:
            raise self.loss
        token = _owners.set((*_owners.get(), self))
        try:
            with self._stoppable():
                yield
        finally:
            _owners.reset(token)

    @contextmanager
    def _stoppable(self) -> Generator[None]:
        task = asyncio.current_task()
        if task is None or task in self._at_work:
            yield
            return
        before = self._at_work[task] = task.cancelling()
        try:
            yield
        except asyncio.CancelledError as error:
            # As in `asyncio.timeout`: a cancellation from elsewhere passes through.
            if self.is_lost and task.uncancel() <= before:
                raise self.loss from error
            raise
        finally:
            del self._at_work[task]


class ThreadLocks(Protocol):
    """The threads of a storage that are worked on, by whatever process has it open."""

    def lock(self, thread_id: str) -> AbstractAsyncContextManager[Owner]:
        """Hold a thread while this lasts; a process that is killed lets go.

        Raises:
            ThreadBusyError: Another run holds it.
        """
        ...

    async def is_held(self, thread_id: str) -> bool:
        """Whether any process works on a thread now."""
        ...


class LocalThreads:
    """The threads of a saver that knows no owners, on which runs of this process work.

    Those runs may be on several event loops, in several Python threads.
    """

    def __init__(self) -> None:
        self._at_work: dict[str, object] = {}

    @asynccontextmanager
    async def lock(self, thread_id: str) -> AsyncGenerator[None]:
        """Hold a thread while this lasts.

        Raises:
            ThreadBusyError: Another run holds it, and goes on holding it for a moment.
        """
        latest, me = time.monotonic() + MOMENT, object()
        # Python sets a default in one step, whichever threads do so.
        while self._at_work.setdefault(thread_id, me) is not me:
            if time.monotonic() > latest:
                raise ThreadBusyError(thread_id)
            await asyncio.sleep(POLL)
        try:
            yield
        finally:
            del self._at_work[thread_id]


def local_threads(saver: object) -> LocalThreads:
    """The threads of a saver; its copies have the same ones."""
    # LangGraph and `build_graph` copy a saver, with its attributes, for each graph.
    return vars(saver).setdefault("_replan_threads", LocalThreads())


_owners: ContextVar[tuple[Owner, ...]] = ContextVar("owners", default=())


def owner_in(where: str, thread_id: str | None = None) -> Owner | None:
    """The writer here: the innermost owner of a thread of a storage; None without an owner.

    Args:
        where: The storage.
        thread_id: The thread; None: any.
    """
    for owner in reversed(_owners.get()):
        if owner.where == where and thread_id in (None, owner.thread_id):
            return owner
    return None


def unowned() -> Context:
    """Return a context without an owner of a thread, for work that outlives its caller."""
    context = copy_context()
    context.run(_owners.set, ())
    return context


def as_owner(owner: Owner | None, parts: AsyncGenerator[T]) -> AsyncGenerator[T]:
    """Yield the parts of a stream; its work owns the thread, its reader does not."""
    return parts if owner is None else in_each(owner.at_work, parts)


async def in_each(
    enter: Callable[[], AbstractContextManager[object]], parts: AsyncGenerator[T]
) -> AsyncGenerator[T]:
    """Give the parts of a stream; each is worked out in a block, and read outside it."""
    async with aclosing(parts):
        while True:
            with enter():
                try:
                    part = await anext(parts)
                except StopAsyncIteration:
                    return
            yield part
