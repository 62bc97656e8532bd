"""Foresee a run of a plan: what runs, in which order, and how many model calls it can take."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from replan.base.errors import Refusal
from replan.base.values import Value
from replan.plan.conflicts import WriteConflict, write_conflicts
from replan.plan.dependencies import blocked_steps, skippable_steps
from replan.plan.model import PlanStep, StepStatus, TaskPlan
from replan.plan.order import critical_length, critical_path, width
from replan.state.limits import MOST_RETRIES, TRIES, Limits
from replan.state.questions import Approving
from replan.state.team import SpecialistCard, refusals_of

USUAL_RETRIES = 2
"""Further calls of a reply whose server is busy, where nothing else is configured."""


def calls_of_reply(retries: int) -> int:
    """The most calls of one reply: its retries, and one if the server cannot stream."""
    return 2 + retries


def calls_of_question(retries: int) -> int:
    """The most calls of one question of the host: all attempts, also in other attempts."""
    return max(calls_of_reply(retries), TRIES + 1)


CALLS_PER_REPLY = calls_of_reply(USUAL_RETRIES)
"""Calls of one reply, where nothing else is configured."""

CALLS_PER_QUESTION = calls_of_question(USUAL_RETRIES)
"""Calls of one question of the host, where nothing else is configured."""


def calls_of_try(per_reply: int) -> int:
    """The most calls of one attempt of a chat model: a reply, and a shorter one if that is cut."""
    return 2 * per_reply - 1


CALLS_PER_TRY = calls_of_try(CALLS_PER_REPLY)
"""Calls of one attempt of a chat model."""


@dataclass(frozen=True, kw_only=True)
class KnownTeam:
    """What an outlook needs to know of a team."""

    limits: Limits  # the bounds of its runs
    # Model calls of one attempt by the specialist's name; None if unknown.
    per_try: Mapping[str, int | None] | None = None
    # Further model calls of one attempt of a step, at all of its specialists.
    per_step: Callable[[PlanStep], int] | None = None
    per_question: int = CALLS_PER_QUESTION  # model calls of one question of the host
    # Whether one call of its host does the work of two; none where only some do.
    merged: bool | None = None
    typed: bool = False  # whether its answers are of a type
    per_summary: int = 0  # model calls of a summary of the conversation, if it writes any
    knowledge: object = None  # where knowledge is found, or None
    cards: tuple[SpecialistCard, ...] | None = None
    revisable: bool = True  # whether its runs may revise a plan
    approval: Approving = "never"  # which plans a person must approve
    # The tools that a person must approve, by the specialist's name.
    asking: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    # What one token costs at most; none where a model has no price.
    dearest_token: float | None = None
    currency: str = ""  # that of its prices

    def refusals(self, plan: TaskPlan) -> tuple[Refusal, ...]:
        """Why the team does not do pending steps; a run would refuse the plan."""
        return () if self.cards is None else tuple(refusals_of(plan.steps, self.cards))


class Preview(Value):
    """What is known about a plan before it runs."""

    title: str  # the plan's title
    steps: int
    open_steps: int  # those that are neither completed, skipped nor failed
    width: int  # how many open steps can run at once at most
    critical_path: tuple[int, ...]  # the longest chain of open steps that wait for each other
    critical_length: float  # how long it is, in estimated seconds, or in steps without estimates
    beyond: tuple[int, ...]  # the open steps that `max_steps` keeps from starting
    blocked: tuple[int, ...]  # the open steps that can never start without a revision
    # What several steps write that may run at the same time.
    conflicts: tuple[WriteConflict, ...] = ()


def preview(plan: TaskPlan, limits: Limits) -> Preview:
    ahead = plan.replace(steps=tuple(plan.open_steps()))
    still_open = {step.id for step in ahead.steps}
    return Preview(
        title=plan.title,
        steps=plan.total_steps,
        open_steps=ahead.total_steps,
        width=width(plan),
        critical_path=critical_path(ahead),
        critical_length=critical_length(ahead),
        beyond=tuple(step.id for step in plan.steps[limits.max_steps :] if step.id in still_open),
        blocked=tuple(step.id for step in blocked_steps(plan)),
        conflicts=write_conflicts(plan),
    )


def usual_calls(plan: TaskPlan, team: KnownTeam, *, merged: bool = True) -> int:
    """Count the model calls of a handed-in plan if everything succeeds at the first attempt."""
    # Steps that wait for a failure do not run where all goes well.
    going = [step for step in _startable(plan, team.limits) if not _handles_failure(step, plan)]
    seats = [seat for step in going for seat in _seats(step)]
    asking = sum(1 for seat in seats if _calls_of_try(seat, team) != 0)
    return min(team.limits.max_model_calls, asking + (1 if merged else 3))


def worst_case_calls(plan: TaskPlan, team: KnownTeam, *, merged: bool = True) -> int:
    """Return a number of model calls that no run of a handed-in plan can exceed.

    A plan that may be revised can get new steps with any number of retries, so nothing but
    `max_model_calls` bounds it. Of a plan that stays as it is, it is the smaller one of
    `max_model_calls` and

        seats + rounds * J + Q    and in separate calls J more, to think

    - seats: (1 + retries) * T for each specialist of each open step within `max_steps` that a
      failed step does not block and no condition leaves out, but no more for a step than its
      budget; retries are at most `MOST_RETRIES`, T is what `per_try` says about the specialist, and
      what `per_step` says about the step is added for each of its attempts. A step ends in one way
      only, so of the steps that run if it failed and those that run if it completed the dearer
      ones count;
    - rounds: the smaller one of `max_rounds` and (number of seats) + `max_stalls`: a round that
      can start anything settles a seat, and those that cannot end the run after `max_stalls`;
    - a question of the host takes Q calls, `per_question`;
    - each round is judged once, J = 2 * Q - 1: a question, and again where the reply could
      not be read; the call that brought it was not the last that its question had;
    - the answer is asked for once, Q; one of a type again where it is not of it, J;
    - where summaries of the conversation are written, one is asked for after the answer, in one
      try, `per_summary`.

    Args:
        plan: The plan as it is handed in.
        team: Who does it. A specialist that `per_try` does not name is a chat model; a step without
            a specialist counts as the dearest one.
        merged: Whether one call of the host does the work of two.
    """
    limits = team.limits
    if team.revisable:
        return limits.max_model_calls
    judgement = 2 * team.per_question - 1
    total = (judgement if team.typed else team.per_question) + (0 if merged else judgement)
    total += team.per_summary
    startable = _startable(plan, limits)
    calls = {step.id: _calls_of_step(step, team) for step in startable}
    known_calls = {step_id: number for step_id, number in calls.items() if number is not None}
    if len(known_calls) < len(calls):
        return limits.max_model_calls
    total += _add_dearer_ways(startable, known_calls)
    count = _add_dearer_ways(startable, {step.id: len(_seats(step)) for step in startable})
    total += min(limits.max_rounds, count + limits.max_stalls) * judgement
    return min(limits.max_model_calls, total)


def _startable(plan: TaskPlan, limits: Limits) -> tuple[PlanStep, ...]:
    never = {step.id for step in (*blocked_steps(plan), *skippable_steps(plan))}
    allowed = plan.replace(steps=plan.steps[: limits.max_steps])
    return tuple(step for step in allowed.open_steps() if step.id not in never)


def _handles_failure(step: PlanStep, plan: TaskPlan) -> bool:
    condition = step.condition
    if condition is None or condition.outcome != "failed":
        return False
    return any(other.id == condition.step for other in plan.open_steps())


def _add_dearer_ways(steps: Sequence[PlanStep], costs: Mapping[int, int]) -> int:
    """Add up costs, counting only one of two opposite conditions."""
    total = 0
    ways: dict[int, dict[str, int]] = {}
    for step in steps:
        if step.condition is None:
            total += costs[step.id]
        else:
            way = ways.setdefault(step.condition.step, {"completed": 0, "failed": 0})
            way[step.condition.outcome] += costs[step.id]
    return total + sum(max(way.values()) for way in ways.values())


def _calls_of_step(step: PlanStep, team: KnownTeam) -> int | None:
    """Return the most calls of all attempts of a step; None if nothing bounds them."""
    calls = [_calls_of_try(seat, team) for seat in _seats(step)]
    if team.per_step is not None:
        calls.append(team.per_step(step))
    known_calls = [number for number in calls if number is not None]
    total = (
        _attempts(step, team.limits) * sum(known_calls) if len(known_calls) == len(calls) else None
    )
    bounds = [total, team.limits.per_step.max_model_calls]
    return min((number for number in bounds if number is not None), default=None)


def _attempts(step: PlanStep, limits: Limits) -> int:
    retries = limits.step_retries if step.max_retries is None else step.max_retries
    return 1 + min(retries, MOST_RETRIES)


def _seats(step: PlanStep) -> tuple[str, ...]:
    return step.specialists or ("",)


def _calls_of_try(specialist: str, team: KnownTeam) -> int | None:
    calls_by_name = {name.casefold(): calls for name, calls in (team.per_try or {}).items()}
    if specialist:
        return calls_by_name.get(specialist.casefold(), CALLS_PER_TRY)
    dearest = list(calls_by_name.values()) or [CALLS_PER_TRY]
    return None if None in dearest else max(calls for calls in dearest if calls is not None)


def worst_case_seconds(plan: TaskPlan, limits: Limits, max_seconds: float | None = None) -> float:
    """Bound the time that the open steps take if each uses up all its attempts.

    That is the longest chain of steps that wait for each other; where there are fewer places than
    steps that could run at once, by Graham's bound also what has to wait for a place. The host's
    calls, the pauses between attempts and revisions come on top, but nothing goes beyond
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
        is_known = tokens == 0 or dearest_token == 0
        return 0.0 if is_known else max_cost
    cost = tokens * dearest_token
    return cost if max_cost is None else min(cost, max_cost)


def _seconds(step: PlanStep, limits: Limits) -> float:
    if step.status is StepStatus.FAILED:
        return 0.0
    return _attempts(step, limits) * (limits.step_timeout if step.timeout is None else step.timeout)
