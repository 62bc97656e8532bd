"""Read what a run has come to: the steps of its plan and their results."""

from collections.abc import Sequence
from typing import Literal

from replan_local.host.plan import draft_plan
from replan.plan.dependencies import unmet_steps
from replan.plan.document import PlanDocument
from replan.plan.model import PlanStep, StepStatus, TaskPlan, Value
from replan.prompts.sections import Section, sections_of
from replan.state.team import SpecialistCard

State = Literal["done", "failed", "skipped", "open"]

_BY_STATUS: dict[StepStatus, State] = {
    StepStatus.COMPLETED: "done",
    StepStatus.FAILED: "failed",
    StepStatus.SKIPPED: "skipped",
}


class Finding(Value):
    """What one specialist gave for one step."""

    step: int
    specialist: str
    status: str
    text: str

    @property
    def is_of_use(self) -> bool:
        """Whether there is something to show."""
        return self.status != "failed" and bool(self.text.strip())


class Progress(Value):
    """What the prompts of feedback, revision and final answer say of a run.

    Attributes:
        plan: The plan, with the document as its content.
        missing: Why the run has to end now; empty if it may go on.
    """

    request: str
    plan: TaskPlan
    findings: tuple[Finding, ...]
    missing: str
    team: tuple[SpecialistCard, ...]

    def state_of(self, step: PlanStep) -> State:
        """Where a step stands: by its mark, and where the box is empty, by its results."""
        if step.status in _BY_STATUS:
            return _BY_STATUS[step.status]
        own = self.findings_of(step)
        if not own:
            return "open"
        return "failed" if all(finding.status == "failed" for finding in own) else "done"

    def findings_of(self, step: PlanStep) -> tuple[Finding, ...]:
        """The results of a step."""
        return tuple(finding for finding in self.findings if finding.step == step.id)

    def failed(self) -> tuple[PlanStep, ...]:
        """The failed steps without which the plan is not done."""
        return tuple(
            step
            for step in self.plan.steps
            if self.state_of(step) == "failed" and not step.optional
        )

    def unmet(self) -> tuple[PlanStep, ...]:
        """The required steps that are not done, as the rules of the graph count them."""
        statuses = {"done": StepStatus.COMPLETED, "failed": StepStatus.FAILED}
        seen = (
            step.replace(status=statuses.get(self.state_of(step), step.status))
            for step in self.plan.steps
        )
        return unmet_steps(self.plan.with_steps(*seen))

    def can_go_on(self) -> bool:
        """Whether an open step waits for nothing that failed."""
        blocked = {step.id for step in self.failed()}
        waiting = [step for step in self.plan.steps if self.state_of(step) == "open"]
        while held := [step for step in waiting if blocked.intersection(step.awaits)]:
            blocked.update(step.id for step in held)
            waiting = [step for step in waiting if step not in held]
        return bool(waiting)

    def error_of(self, step: PlanStep) -> str:
        """The last thing said of a failed step."""
        texts = [finding.text.strip() for finding in self.findings_of(step)]
        return texts[-1] if texts else step.feedback

    def not_planned(self) -> tuple[str, ...]:
        """What the request asks beside this plan, if the plan is one of our own."""
        draft = draft_plan(self.request, self.team)
        is_ours = bool(draft.steps) and draft.title == self.plan.title
        return draft.not_planned if is_ours else ()


def progress_in(human: str, team: Sequence[SpecialistCard]) -> Progress:
    """Read the sections of a prompt."""
    sections = sections_of(human)
    return Progress(
        request=_first(sections, "request"),
        plan=PlanDocument.recover(_first(sections, "plan")).plan,
        findings=tuple(_finding(section) for section in sections if section.tag == "result"),
        missing=_first(sections, "missing"),
        team=tuple(team),
    )


def _first(sections: Sequence[Section], tag: str) -> str:
    return next((section.text for section in sections if section.tag == tag), "")


def _finding(section: Section) -> Finding:
    step = section.attributes.get("step", "")
    return Finding(
        step=int(step) if step.isascii() and step.isdigit() else 0,
        specialist=section.attributes.get("specialist", ""),
        status=section.attributes.get("status", "success"),
        text=section.text,
    )
