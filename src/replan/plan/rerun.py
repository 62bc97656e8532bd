"""Which settled steps of an edited document must run again, and why."""

from collections.abc import Iterable, Mapping
from typing import Literal

from replan.base.values import Value
from replan.plan.changes import unstarted
from replan.plan.markdown.document import refresh_content
from replan.plan.markdown.seal import fingerprint, read_fingerprints, unsealed
from replan.plan.model import TaskPlan
from replan.plan.order import run_order

Reason = Literal["edited", "reopened", "dependency", "input_changed"]


class Rerun(Value):
    """A step that was settled and runs again.

    Attributes:
        step: The step.
        reason: `edited`: its work has changed; `reopened`: somebody removed its mark; `dependency`:
            steps that it depends on run again; `input_changed`: results that it was given have
            changed since.
        causes: The steps that it depends on and that run again, or whose results have changed.
    """

    step: int
    reason: Reason
    causes: tuple[int, ...] = ()

    def __str__(self) -> str:
        steps = ", ".join(map(str, self.causes))
        texts = {
            "dependency": f"after {steps}",
            "input_changed": f"given another result of {steps}",
        }
        return f"{self.step} ({texts.get(self.reason, self.reason)})"


def rerun_reasons(plan: TaskPlan) -> tuple[Rerun, ...]:
    """Return which steps of a plan have to run again, by the fingerprints in its document.

    These are the steps that were settled when the document was written and are now edited or
    marked as open, and all settled steps that wait for them, directly or not, also by their
    conditions. A mark without a fingerprint in the document was set by hand, and counts.

    Args:
        plan: The plan as its document shows it.

    Returns:
        One reason for each of the steps, in the order of the plan.
    """
    seal = read_fingerprints(plan.content)
    first: dict[int, Reason] = {}
    for step in (step for step in plan.steps if step.id in seal):
        if seal[step.id] != fingerprint(step):
            first[step.id] = "edited"
        elif step.status.is_open:
            first[step.id] = "reopened"
    return _with_dependents(plan, first)


def rerun_from(plan: TaskPlan, step_id: int) -> tuple[Rerun, ...]:
    """Return the settled steps that run again if one is reopened: it, and what waits for it.

    Args:
        plan: The plan.
        step_id: The step.

    Raises:
        UnknownStepError: No step has this id.
    """
    is_open = plan.step(step_id).status.is_open
    return _with_dependents(plan, {} if is_open else {step_id: "reopened"})


def _with_dependents(plan: TaskPlan, first: Mapping[int, Reason]) -> tuple[Rerun, ...]:
    """Steps that run again, and the settled ones that wait for them, directly or not."""
    found: dict[int, Rerun] = {}
    cone: set[int] = set()
    for step in run_order(plan):
        causes = tuple(other for other in step.awaits if other in cone)
        behind: Reason | None = "dependency" if causes and not step.status.is_open else None
        reason = first.get(step.id) or behind
        if reason is not None:
            found[step.id] = Rerun(step=step.id, reason=reason, causes=causes)
        if causes or step.id in found:
            cone.add(step.id)
    return tuple(found[step.id] for step in plan.steps if step.id in found)


def reopened(plan: TaskPlan, reruns: Iterable[Rerun]) -> TaskPlan:
    """Return a plan in which these steps never ran, in a document without fingerprints.

    Args:
        plan: The plan as its document shows it.
        reruns: What `rerun_reasons` says about it.
    """
    again = {rerun.step for rerun in reruns}
    steps = tuple(unstarted(step) if step.id in again else step for step in plan.steps)
    return refresh_content(plan.replace(steps=steps, content=unsealed(plan.content)))
