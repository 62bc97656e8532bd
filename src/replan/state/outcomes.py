"""How runs and steps end, and how hard a request is."""

from enum import StrEnum, nonmember
from typing import Literal

Outcome = Literal["answered", "completed", "partial", "failed", "rejected"]
"""How a run ended: a simple answer, a finished plan, a part of it, nothing of it, or a plan that a
person did not want to run."""

INCOMPLETE: tuple[Outcome, ...] = ("partial", "failed")
"""The outcomes of a run that is over and did not do all."""

RunOutcome = Literal["running", "waiting", "interrupted", Outcome]
"""The status of a run: running, waiting for a person, stopped in the middle, or how it ended."""

NOT_OVER: tuple[RunOutcome, ...] = ("running", "waiting", "interrupted")
"""The outcomes with which a run can still continue."""

AttemptOutcome = Literal["done", "failed", "cancelled", "waiting", "unknown_outcome"]
"""How an attempt of a step ended; one without a recorded end is in doubt."""


class TaskComplexity(StrEnum):
    """How hard a request is."""

    SIMPLE = "simple"
    MODERATE = "moderate"
    COMPLEX = "complex"

    unknown = nonmember("complex")


class ExecutionStatus(StrEnum):
    """How a specialist's work ended."""

    SUCCESS = "success"
    FAILED = "failed"
    PARTIAL = "partial"

    # Nothing counts as done that may not be.
    unknown = nonmember("failed")
