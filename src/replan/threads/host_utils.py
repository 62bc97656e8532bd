"""What the components of a pipeline get from outside, while it works."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from replan.events.types import BaseEvent
from replan.ports.run_context import using
from replan.ports.thread_repository import ThreadRepository
from replan.state.pipeline.thread_paths import SubThreadPath
from replan.state.results import ExecutionContext
from replan.threads.ai_adapter import AIAdapter
from replan.threads.phase_at_work import PhaseAtWork, phase_at_work

Tell = Callable[..., None]
"""Reports an event: its class, and its fields by name."""


def _tell_nobody(kind: type[BaseEvent], /, **fields: Any) -> None:
    pass


@dataclass(frozen=True, kw_only=True)
class HostUtils(PhaseAtWork):
    """The parts that come from the configuration of a run; a task holds only data.

    `audience`, `phase` and `path` are those of `PhaseAtWork`.

    Attributes:
        thread_repository: Where threads are kept.
        ai_adapter: How models are asked.
        tell: Tells of an event.
        clock: Returns the time, with a time zone.
        new_id: Returns a new unique id.
        context: What the step of a plan was given; None outside a plan.
        is_stopping: Says whether work is to stop after the phase.
    """

    thread_repository: ThreadRepository
    ai_adapter: AIAdapter
    tell: Tell = _tell_nobody
    clock: Callable[[], datetime]
    new_id: Callable[[], str]
    context: ExecutionContext | None = None
    is_stopping: Callable[[], bool] = bool


def host_utils() -> HostUtils:
    """Return the host utilities of the pipeline that is at work.

    Raises:
        ThreadError: No pipeline is at work here.
    """
    found = phase_at_work()
    if not isinstance(found, HostUtils):
        raise TypeError("a phase is at work without host utilities")
    return found


def using_host_utils(utils: HostUtils) -> AbstractContextManager[None]:
    """Let code that runs inside find the host utilities."""
    return using(phase=utils)


def in_phase(phase: str, path: SubThreadPath | None, number: int) -> AbstractContextManager[None]:
    """Set which phase of which sub-thread works in this block, and the number of its round."""
    utils = replace(host_utils(), phase=phase, path=str(path or ""))
    return using(phase=utils, place=f"{path or ''}#{number}")
