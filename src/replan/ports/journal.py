"""The journal: what must be known of a run even if a node never returns."""

from collections.abc import Mapping
from datetime import datetime
from typing import Protocol

from replan.plan.model import Value
from replan.state.results import SpecialistResult


class Attempt(Value):
    """One try of one step at one specialist.

    Attributes:
        run_id: The run.
        step_id: The step.
        specialist: Who tries.
        number: The try, counted from 1.
        key: The step's idempotency key; a result is given back only for the same key.
        started_at: When it began.
    """

    run_id: str
    step_id: int
    specialist: str
    number: int
    key: str
    started_at: datetime


class Journal(Protocol):
    """Rows that are written before an effect and before a result is shown to anybody.

    LangGraph writes a task's result in the background; a result that other steps build on must
    be on record first. A write that fails raises, and the run stops loudly.
    """

    async def reserve(self, run_id: str, *, limit: int) -> bool:
        """Count one model call before it is made; false, and not counted, at the limit."""
        ...

    async def started(self, attempt: Attempt) -> None:
        """Record that a try begins, before its first effect."""
        ...

    async def finished(self, attempt: Attempt, result: SpecialistResult) -> None:
        """Record the final result of a step at a specialist, before it is published."""
        ...

    async def ended(self, run_id: str) -> None:
        """The run is over and its results stand in the state; rows that nobody keeps may go."""
        ...

    async def results(self, run_id: str) -> Mapping[str, SpecialistResult]:
        """The recorded final results of a run, by idempotency key."""
        ...
