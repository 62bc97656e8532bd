"""Turns of a pipeline on a thread, one at a time."""

from collections.abc import Generator
from contextlib import contextmanager
from weakref import WeakKeyDictionary

from replan.errors import StaleThreadError
from replan.ports.thread_repository import ThreadRepository
from replan.state.pipeline.threads import Thread
from replan.threads.host_utils import HostUtils
from replan.threads.phases.agent_and_handler import BaseAgent
from replan.threads.turns.main_turn import Turn

_at_work: WeakKeyDictionary[ThreadRepository, set[str]] = WeakKeyDictionary()


async def turn_on(
    agent: type[BaseAgent], thread_id: str, utils: HostUtils, *, run_id: str = ""
) -> Turn:
    """Return a turn on a thread, which is read, or created if it does not exist."""
    thread = await utils.thread_repository.get_thread(thread_id)
    thread = thread or Thread(thread_id, run_id=run_id)
    return Turn(await agent.create(settings=thread.settings), thread, utils)


@contextmanager
def alone(repository: ThreadRepository, thread_id: str) -> Generator[None]:
    """Be the only one of this process on a thread; other processes are refused when they store.

    Raises:
        StaleThreadError: Somebody works on it.
    """
    # One that serves many calls at once has another one for each.
    own: ThreadRepository = getattr(repository, "own", repository)
    taken = _at_work.setdefault(own, set())
    if thread_id in taken:
        raise StaleThreadError(thread_id)
    taken.add(thread_id)
    try:
        yield
    finally:
        taken.discard(thread_id)
