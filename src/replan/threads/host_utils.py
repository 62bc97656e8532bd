"""What the components of a pipeline get from outside, while it works."""

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, cast

from replan.events.types import BaseEvent
from replan.ports.ask_user import place_at_work
from replan.ports.thread_repository import ThreadRepository
from replan.state.pipeline.thread_paths import SubThreadPath
from replan.state.results import ExecutionContext
from replan.threads.ai_adapter import AIAdapter
from replan.threads.phase_at_work import PhaseAtWork, at_work_here, phase_at_work

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
        stop: Is set when work is to stop after the phase; None if it cannot be stopped this way.
    """

    thread_repository: ThreadRepository
    ai_adapter: AIAdapter
    tell: Tell = _tell_nobody
    clock: Callable[[], datetime]
    new_id: Callable[[], str]
    context: ExecutionContext | None = None
    stop: asyncio.Event | None = None


def host_utils() -> HostUtils:
    """Return the host utilities of the pipeline that is at work.

    Raises:
        ThreadError: No pipeline is at work here.
    """
    # `using_host_utils` sets nothing else.
    return cast("HostUtils", phase_at_work())


@contextmanager
def using_host_utils(utils: HostUtils) -> Generator[None]:
    """Let code that runs inside find the host utilities."""
    token = at_work_here.set(utils)
    try:
        yield
    finally:
        at_work_here.reset(token)


@contextmanager
def in_phase(phase: str, path: SubThreadPath | None, number: int) -> Generator[None]:
    """Set which phase of which sub-thread works in this block, and the number of its round."""
    token = place_at_work.set(f"{path or ''}#{number}")
    try:
        with using_host_utils(replace(host_utils(), phase=phase, path=str(path or ""))):
            yield
    finally:
        place_at_work.reset(token)
