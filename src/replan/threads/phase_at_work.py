"""The phase of a pipeline that is at work here."""

from contextvars import ContextVar
from dataclasses import dataclass, field

from replan.errors import ThreadError
from replan.threads.audience import Audience


@dataclass(frozen=True, kw_only=True)
class PhaseAtWork:
    """A phase that is at work, and who receives its texts.

    Attributes:
        audience: Who receives the texts of phases.
        phase: The phase that is at work.
        path: The path of the sub-thread that is at work; empty in the main thread.
    """

    audience: Audience = field(default_factory=Audience)
    phase: str = ""
    path: str = ""


at_work_here: ContextVar[PhaseAtWork | None] = ContextVar("replan_phase", default=None)
"""The phase that is at work here; None outside a pipeline."""


def phase_at_work() -> PhaseAtWork:
    """Return the phase that is at work here.

    Raises:
        ThreadError: No pipeline is at work here.
    """
    found = at_work_here.get()
    if found is None:
        fix = "Use it in a handler or a unit that a pipeline runs."
        raise ThreadError("", "no pipeline is at work here, so there are no host utilities", fix)
    return found
