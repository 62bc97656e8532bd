"""Finds settled steps whose inputs have changed since."""

from collections.abc import Iterator, Mapping, Sequence

from replan.plan.model import PlanStep, StepStatus, TaskPlan
from replan.plan.order import run_order
from replan.plan.rerun import Rerun
from replan.specialists.steps.on_record import digest_of_text
from replan.state.enhanced import EnhancedState
from replan.state.results import (
    MadeOf,
    SpecialistResult,
    inputs_of,
    own_results,
    results_by_step,
    status_of,
)


def stale_steps(state: EnhancedState) -> tuple[Rerun, ...]:
    """Return the settled steps of a running run that are to be done again, and why."""
    # This happens if somebody edited a result in the state. It is unknown what results of persons
    # were made of: they stay.
    plan = state.get("current_plan")
    if plan is None or state.get("is_completed"):
        return ()
    return tuple(_find_stale(plan, results_by_step(state)))


def _find_stale(
    plan: TaskPlan, results: Mapping[int, Sequence[SpecialistResult]]
) -> Iterator[Rerun]:
    steps, again = plan.by_id, set[int]()
    may_be_stale = results and any(step.awaits for step in plan.steps)
    for step in run_order(plan) if may_be_stale else ():
        if step.status.is_open or not step.awaits:
            continue
        inputs = _known_inputs(step, results.get(step.id, ()))
        after = tuple(other for other in step.awaits if other in again)
        whole = tuple(step_id for step_id in step.awaits if _is_whole(steps[step_id], results))
        changed = (
            tuple(_changed_inputs(step, inputs, inputs_of(step, steps, results), whole))
            if inputs
            else ()
        )
        if changed or (
            after and (inputs or (step.status is StepStatus.SKIPPED and step.condition))
        ):
            is_after = after or any(steps[other].status.is_open for other in changed)
            reason = "dependency" if is_after else "input_changed"
            yield Rerun(step=step.id, reason=reason, causes=after or changed)
            again.add(step.id)


def _known_inputs(step: PlanStep, results: Sequence[SpecialistResult]) -> list[MadeOf]:
    """The inputs that a step was made of; None if unknown, or if a person settled it."""
    step_results = own_results(step, results)
    if status_of(step_results) is not step.status:
        return []
    return [
        result.made_of
        for result in step_results
        if result.made_of is not None
        # An excerpt that somebody edits is none from then on.
        and (result.excerpt or result.made_of.text == digest_of_text(result.text))
    ]


def _is_whole(step: PlanStep, results: Mapping[int, Sequence[SpecialistResult]]) -> bool:
    """Whether the results of a step are here; a branch has the beginning of a long one only."""
    return not any(result.excerpt for result in own_results(step, results.get(step.id, ())))


def _changed_inputs(
    step: PlanStep,
    made_of_before: Sequence[MadeOf],
    inputs: Mapping[int, str],
    whole: Sequence[int],
) -> Iterator[int]:
    """The steps whose whole results differ from those that a completed step was made of."""
    if step.status is not StepStatus.COMPLETED:
        return
    now = {other: digest_of_text(text) for other, text in inputs.items()}
    for other in whole:
        if any(made_of.inputs.get(other) != now.get(other) for made_of in made_of_before):
            yield other
