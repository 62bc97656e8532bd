"""The thread that belongs to the step that is being done, for a pipeline that does it."""

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime

from replan.ports.thread_repository import ThreadRepository


@dataclass(frozen=True, kw_only=True)
class ThreadOfStep:
    """The thread in which a pipeline stores its work for a step.

    Attributes:
        repository: Where threads are kept.
        thread_id: The thread of the step at its specialist, in its generation.
        run_id: The run, with which the thread goes.
        clock: Returns the time, with a time zone.
        new_id: Returns a new unique id.
    """

    repository: ThreadRepository
    thread_id: str
    run_id: str
    clock: Callable[[], datetime]
    new_id: Callable[[], str]


thread_of_step: ContextVar[ThreadOfStep] = ContextVar("replan_thread_of_step")
