"""The revisions of a plan, each as a difference of lines."""

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from replan.log.fold import Revision
from replan.log.report import RunReport
from replan.plan.model import PlanStep, TaskPlan
from replan.views.step_texts import waits_in_words

_IN_LINE = {"id", "description", "assigned_to", "joined_by", "dependencies", "condition"}
_SAID_ELSEWHERE = {"created_at"}  # the revision says when


def lines_of(revision: Revision) -> list[str]:
    """What a revision changed, as a difference of lines."""
    before = [] if revision.is_first else _lines(revision.before)
    return [*difference(before, _lines(revision.after))]


def changed_steps(report: RunReport) -> dict[int, str]:
    """What revisions did last to steps that are in the plan, such as `added in version 2`."""
    changed, planned = dict[int, str](), {step.step.id for step in report.planned}
    for revision in report.revisions:
        where = f"in version {revision.version} by {revision.by}"
        modified = map(int, revision.changes.get("modified") or ())
        changed |= dict.fromkeys(modified, f"changed {where}")
        added = (int(one["step"]["id"]) for one in revision.changes.get("added") or ())
        changed |= dict.fromkeys(added, f"added {where}")
    return {step: text for step, text in changed.items() if step in planned}


def difference(before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    """Compare two texts, each line with its sign: what was removed is above what was added."""
    compared = SequenceMatcher(None, before, after, autojunk=False)
    for kind, start, end, first, last in compared.get_opcodes():
        same = kind == "equal"
        yield from (f"{'  ' if same else '- '}{line}" for line in before[start:end])
        yield from (f"+ {line}" for line in after[first:last] if not same)


def _lines(plan: TaskPlan) -> list[str]:
    title = [f"# {plan.title}"] if plan.title else []
    return [*title, *(line for step in plan.steps for line in step_lines(step))]


def step_lines(step: PlanStep) -> Iterator[str]:
    """A step as in a document, and below it its other fields."""
    waits = [f"({wait})" for wait in waits_in_words(step)]
    who = [f"@{name}" for name in step.specialists]
    yield " ".join([f"{step.id}.", *step.description.splitlines(), *who, *waits])
    rest = _IN_LINE | _SAID_ELSEWHERE
    for name, value in step.model_dump(mode="json", exclude=rest, exclude_defaults=True).items():
        yield from (f"   {line}" for line in f"{name}: {value}".splitlines())
