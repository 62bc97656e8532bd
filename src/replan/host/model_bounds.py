"""Parts of a model's plan that do not count: retries of unsafe work, and too much time."""

from collections.abc import Iterator

from replan.host.plan_texts import with_fitting_document
from replan.plan.markdown.document import PlanDocument
from replan.plan.markdown.overlooked import Kind, ParseWarning, prose_between
from replan.plan.model import PlanStep, TaskPlan
from replan.services import Services

_WORK = ("description", "brief", "parameters", "assigned_to", "joined_by")


def bounded_plan(
    plan: TaskPlan,
    services: Services,
    step_timeout: float,
    before: TaskPlan | None = None,
    text: str | None = None,
) -> tuple[TaskPlan, tuple[ParseWarning, ...]]:
    """Remove from a model's plan what only a person may set, and return what does not count.

    That is what was removed, and what of the text the plan before it does not have and nobody is
    given.
    """
    before = before or TaskPlan()
    known = before.by_id
    prose = prose_between(plan.content if text is None else text)
    lost = tuple(each for each in prose if each.text not in before.content)
    unsafe = unsafe_members(services)
    steps = tuple(
        _bounded_step(each, known.get(each.id), unsafe, step_timeout) for each in plan.steps
    )
    if steps == plan.steps:
        return plan, lost
    document = PlanDocument.recover(plan.content)
    taken = tuple(
        ParseWarning(line=document.line_of(step.id) or 1, kind=kind, step=step.id, text=text)
        for step, within in zip(plan.steps, steps, strict=True)
        for kind, text in _removed(step, within)
    )
    return with_fitting_document(plan.replace(steps=steps)), (*lost, *taken)


def unsafe_members(services: Services) -> set[str]:
    """The specialists whose work is declared unsafe."""
    cards = [each.card for each in services.specialists.values()]
    return {card.name for card in cards if card.is_declared and card.effects == "unsafe"}


def _bounded_step(
    step: PlanStep, before: PlanStep | None, unsafe: set[str], step_timeout: float
) -> PlanStep:
    retries, timeout = step.max_retries, step.timeout
    if retries is not None and not unsafe.isdisjoint(step.specialists):
        retries = retries if retries <= given_retries(step, before) else None
    if timeout is not None:
        given = before.timeout if before is not None else None
        timeout = min(timeout, max(step_timeout, given or 0))
    if (retries, timeout) == (step.max_retries, step.timeout):
        return step
    return step.replace(max_retries=retries, timeout=timeout)


def given_retries(step: PlanStep, before: PlanStep | None) -> int:
    """The retries that a person set for exactly this work; -1 without any."""
    if before is None or before.max_retries is None:
        return -1
    is_same = all(getattr(step, name) == getattr(before, name) for name in _WORK)
    return before.max_retries if is_same else -1


def _removed(step: PlanStep, within: PlanStep) -> Iterator[tuple[Kind, str]]:
    if within.max_retries != step.max_retries:
        yield "retries", f"retries {step.max_retries}"
    if within.timeout != step.timeout:
        yield "timeout", f"timeout {step.timeout:g}s"
