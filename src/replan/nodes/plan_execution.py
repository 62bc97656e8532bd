"""`plan_execution`: decide what this round sends, without a model."""

from collections.abc import Iterable

from replan.errors import InputError
from replan.nodes.contexts import context_of
from replan.nodes.rules import runnable_steps, within_limit
from replan.plan.dependencies import blocked_steps
from replan.plan.model import PlanStep, TaskPlan
from replan.ports.services import Services
from replan.state.enhanced import EnhancedState, rounds_of, settings_of
from replan.state.results import Assignment
from replan.state.team import SpecialistCard, find_specialist, select_specialists_by_task
from replan.state.waiting import waiting_steps


async def plan_execution(state: EnhancedState, *, services: Services) -> EnhancedState:
    """Choose the steps of the round and their specialists.

    Raises:
        InputError: There is no plan.
    """
    plan = state.get("current_plan")
    if plan is None:
        raise InputError("There is no plan in the state. Put one into `current_plan`.")
    waiting = waiting_steps(state)
    ready = tuple(step for step in runnable_steps(state) if step.id not in waiting)
    if state.get("current_round", 1) > rounds_of(state):
        # Only the answers to open questions are left to wait for.
        ready = ()
    leading = ready[0] if ready else None
    dispatched = [
        Assignment(step_id=step.id, specialist=name)
        for step in _steps_of_round(state, plan, ready)
        for name in specialists_of(step, services.team)
    ]
    if leading is None:
        return {"dispatched": dispatched, "current_execution": None}
    name = specialists_of(leading, services.team)[0]
    context = context_of(leading, name, {}, state, services)
    # The conversation stands in the state already.
    return {"dispatched": dispatched, "current_execution": context.replace(messages=())}


def specialists_of(step: PlanStep, team: tuple[SpecialistCard, ...]) -> tuple[str, ...]:
    """The specialists of a step: those it names and the team knows, else the best card."""
    named = (find_specialist(name, team) for name in step.specialists)
    known = tuple(dict.fromkeys(name for name in named if name is not None))
    return known or select_specialists_by_task(f"{step.description}\n{step.brief}", team)


def _steps_of_round(
    state: EnhancedState, plan: TaskPlan, ready: tuple[PlanStep, ...]
) -> Iterable[PlanStep]:
    match settings_of(state).round_scope:
        case "step":
            return ready[:1]
        case "ready":
            return ready
        case "plan":
            # Nothing to send if nothing can start, though some steps may still wait.
            allowed = within_limit(plan, settings_of(state).limits.max_steps)
            blocked = {step.id for step in blocked_steps(plan)}
            held = blocked | waiting_steps(state)
            unblocked = (step for step in allowed.open_steps() if step.id not in held)
            by_urgency = sorted(unblocked, key=lambda step: (-step.priority, step.id))
            return by_urgency if ready else []
