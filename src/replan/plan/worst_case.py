"""What a run can spend at worst, of time and of money."""

from typing import Protocol

from replan.plan.model import PlanStep, StepStatus, TaskPlan
from replan.plan.order import critical_length
from replan.plan.preview import MOST_RETRIES
from replan.plan.width import width


class Timing(Protocol):
    """What of a run's limits bounds the time of its steps; `Limits` has it."""

    @property
    def step_timeout(self) -> float: ...

    @property
    def step_retries(self) -> int: ...

    @property
    def max_parallel_steps(self) -> int: ...


def worst_case_seconds(plan: TaskPlan, limits: Timing, max_seconds: float | None = None) -> float:
    """Bound the time that the open steps take if each uses up all its tries.

    That is the longest chain of steps that wait for each other; where there are fewer places than
    steps that could run at once, by Graham's bound also what has to wait for a place. The host's
    calls, the pauses between tries and revisions come on top, but nothing goes beyond
    `max_seconds`.
    """
    seconds = {step.id: _seconds(step, limits) for step in plan.steps}
    ahead = plan.replace(steps=tuple(plan.open_steps()))
    longest = critical_length(ahead, seconds)
    places = limits.max_parallel_steps
    # A step with several specialists takes a place for each.
    seats = sum(seconds[step.id] * max(1, len(step.specialists)) for step in ahead.steps)
    widest = width(plan) * max((len(step.specialists) for step in ahead.steps), default=1)
    total = longest if widest <= places else longest + max(0.0, seats - longest) / places
    return total if max_seconds is None else min(total, max_seconds)


def worst_case_cost(
    tokens: int | None, *, dearest_token: float | None = None, max_cost: float | None = None
) -> float | None:
    """Bound the money that a run spends."""
    if not tokens or not dearest_token:
        known = tokens == 0 or dearest_token == 0
        return 0.0 if known else max_cost
    cost = tokens * dearest_token
    return cost if max_cost is None else min(cost, max_cost)


def _seconds(step: PlanStep, limits: Timing) -> float:
    if step.status is StepStatus.FAILED:
        return 0.0
    retries = limits.step_retries if step.max_retries is None else step.max_retries
    return (1 + min(retries, MOST_RETRIES)) * (
        limits.step_timeout if step.timeout is None else step.timeout
    )
