"""What a whole plan document from a model means for the plan that it revises."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from itertools import count

from replan.plan.changes import renumbered, title_key, unstarted
from replan.plan.dependencies import unmet_steps
from replan.plan.markdown.document import refresh_content
from replan.plan.markdown.seal import unsealed
from replan.plan.markdown.writing import shows
from replan.plan.model import PlanStep, StepStatus, TaskPlan
from replan.plan.option_table import STRUCTURAL, removed_options


def as_new_plan(plan: TaskPlan, at: datetime) -> TaskPlan:
    """Reset a model's first plan: marks, results and fingerprints that it wrote do not count.

    Args:
        plan: The plan as its document shows it.
        at: The time of its making.
    """
    steps = tuple(unstarted(step, created_at=at, updated_at=at) for step in plan.steps)
    content = unsealed(plan.content)
    new = plan.replace(steps=steps, content=content, created_at=at, updated_at=at)
    return new if shows(new) else refresh_content(new)


def merge_revision(old: TaskPlan, new: TaskPlan) -> tuple[TaskPlan, tuple[PlanStep, ...]]:
    """Read a model's whole revised plan as a revision of the old one.

    Steps are matched as `matched` does. A kept step keeps how it went; the marks and results in
    the revised document do not count. It also keeps its brief and its parameters if its line comes
    back under the same title with nothing below it. A finished step that the document leaves out
    stays in its place; one that it repeats under its title stays as it is. An unfinished one that
    is marked as skipped is dropped; one that is left out stays, if a required one is. No title
    means the old title.

    Args:
        old: The plan as it is.
        new: The plan in the revised document.

    Returns:
        The steps and the title as the model wants them, with everything but the structure from
        the old plan, and with the old plan's document; and the steps that it leaves out without a
        word. It may still ask for what cannot be: `compare` and `apply` tell.
    """
    new, before = matched(old, new), old.by_id
    mentioned = new.by_id
    finished = {step.id for step in old.steps if step.is_finished}
    dropped = {s.id for s in new.steps if s.status is StepStatus.SKIPPED and s.id not in finished}
    unsaid = left_out(old, new)
    kept = finished | {step.id for step in unsaid}
    steps = [_merged(before.get(step.id), step) for step in new.steps]
    for at, step in enumerate(old.steps):
        if step.id in kept and step.id not in mentioned:
            steps.insert(_place_after(old.steps[:at], steps), step)
    merged = old.replace(steps=tuple(steps), title=new.title or old.title)
    return without_steps(merged, dropped), unsaid


def matched(old: TaskPlan, new: TaskPlan) -> TaskPlan:
    """Return a model's revised plan with the ids that its steps have in the old one.

    Models renumber. So a title that both plans have once says more than a number: its step is the
    old one, whatever its number. Any other step is the one with its number, unless a title has
    taken that; then it is a new step with its own number.
    """
    places = _unique_titles(old.steps)
    ids = {
        step_id: places[title]
        for title, step_id in _unique_titles(new.steps).items()
        if title in places
    }
    taken = set(ids.values())
    free = count(max((*old.by_id, *new.by_id), default=0) + 1)
    for step in new.steps:
        if step.id not in ids:
            ids[step.id] = next(free) if step.id in taken else step.id
            taken.add(ids[step.id])
    renamed = {given: known for given, known in ids.items() if given != known}
    return renumbered(new, renamed)


def left_out(old: TaskPlan, new: TaskPlan) -> tuple[PlanStep, ...]:
    """Return the unfinished steps that a revision neither mentions nor replaces."""
    mentioned = new.by_id
    unsaid = [step for step in old.steps if not (step.is_finished or step.id in mentioned)]
    required = {step.id for step in unmet_steps(old)}
    is_partial = any(step.id in required and not _is_replaced(step, old, new) for step in unsaid)
    return tuple(unsaid) if is_partial else ()


def without_steps(plan: TaskPlan, gone: Collection[int]) -> TaskPlan:
    """Return a plan without some steps; their dependents inherit their dependencies."""
    if not gone:
        return plan
    steps = plan.by_id
    kept = [
        step
        if step.is_finished or not set(step.dependencies) & set(gone)
        else step.replace(dependencies=tuple(_inherited(step, steps, gone)))
        for step in plan.steps
        if step.id not in gone
    ]
    return plan.replace(steps=tuple(kept))


def _inherited(
    step: PlanStep, steps: Mapping[int, PlanStep], gone: Collection[int]
) -> Iterable[int]:
    """Return what a step waits for once the steps that it waited for are gone."""
    found: dict[int, None] = {}
    seen = {step.id}
    ahead = list(reversed(step.dependencies))
    while ahead:
        other = ahead.pop()
        if other in gone and other in steps and other not in seen:
            ahead += reversed(steps[other].awaits)
        elif other not in seen:
            found[other] = None
        seen.add(other)
    return found


def _is_replaced(step: PlanStep, old: TaskPlan, new: TaskPlan) -> bool:
    """Whether new steps replace a failed one: all its dependents wait for new steps now."""
    if step.status is not StepStatus.FAILED:
        return False
    before, after = old.by_id, new.by_id
    waiters = [other_step.id for other_step in old.steps if step.id in other_step.awaits]
    return bool(waiters) and all(
        waiter in after
        and step.id not in after[waiter].awaits
        and any(other not in before for other in after[waiter].awaits)
        for waiter in waiters
    )


def _unique_titles(steps: Iterable[PlanStep]) -> dict[str, int]:
    titles = [(title_key(step), step.id) for step in steps]
    times = Counter(title for title, _ in titles)
    return {title: step_id for title, step_id in titles if times[title] == 1}


def _merged(old: PlanStep | None, new: PlanStep) -> PlanStep:
    if old is None:
        return unstarted(new)
    if old.is_finished and _repeats(old, new):
        return old
    fields = {name: getattr(new, name) for name in STRUCTURAL}
    if title_key(old) == title_key(new) and not new.brief:
        # A line that comes back without the text below it says nothing about that text.
        fields["brief"] = old.brief
        fields["parameters"] = new.parameters or old.parameters
    return old.replace(**{**fields, **removed_options(old, new)})


def _repeats(old: PlanStep, new: PlanStep) -> bool:
    """Whether a line repeats a finished step; one that it marks as finished may say more."""
    before, after = title_key(old), title_key(new)
    return before == after or (new.is_finished and (before in after or after in before))


def _place_after(before: tuple[PlanStep, ...], steps: list[PlanStep]) -> int:
    places = {step.id: at for at, step in enumerate(steps)}
    return next((places[step.id] + 1 for step in reversed(before) if step.id in places), 0)
