"""Read what a run has come to, and join its results by rule."""

from collections.abc import Sequence
from typing import Literal

from replan.plan.dependencies import unmet_steps
from replan.plan.markdown.document import PlanDocument
from replan.plan.model import PlanStep, StepStatus, TaskPlan, Value
from replan.prompts.sections import Section, sections_of

State = Literal["done", "failed", "skipped", "open"]

_BY_STATUS: dict[StepStatus, State] = {
    StepStatus.COMPLETED: "done",
    StepStatus.FAILED: "failed",
    StepStatus.SKIPPED: "skipped",
}
_GAPS = {"open": "not done.", "skipped": "skipped."}


class Finding(Value):
    """What one specialist gave for one step."""

    step: int
    specialist: str
    status: str
    text: str

    @property
    def is_of_use(self) -> bool:
        return self.status != "failed" and bool(self.text)


class Progress(Value):
    """What the prompts of feedback, revision and final answer say about a run."""

    plan: TaskPlan  # the plan, with the document as its content
    findings: tuple[Finding, ...]
    missing: str  # why the run has to end now; empty if it may continue

    def state_of(self, step: PlanStep) -> State:
        """Where a step is: by its mark, and where the box is empty, by its results."""
        if step.status in _BY_STATUS:
            return _BY_STATUS[step.status]
        own = self.findings_of(step)
        if not own:
            return "open"
        return "failed" if all(finding.status == "failed" for finding in own) else "done"

    def findings_of(self, step: PlanStep) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.step == step.id)

    def failed(self) -> tuple[PlanStep, ...]:
        steps = (step for step in self.plan.steps if not step.optional)
        return tuple(step for step in steps if self.state_of(step) == "failed")

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
        """The last thing said about a failed step."""
        texts = [finding.text for finding in self.findings_of(step)]
        return texts[-1] if texts else step.feedback

    def joined(self) -> str:
        """The answer of the run in Markdown: what was done, what was found, what is missing."""
        known = {step.id for step in self.plan.steps}
        parts = [self._opening()]
        for step in self.plan.steps:
            useful = [each for each in self.findings_of(step) if each.is_of_use]
            texts = [
                f"**{each.specialist}**\n\n{_shown(each)}" if len(useful) > 1 else _shown(each)
                for each in useful
            ]
            if texts and self.state_of(step) == "done":
                parts.append("\n\n".join([f"## {_heading(step)}", *texts]))
        stray = [each for each in self.findings if each.step not in known and each.is_of_use]
        parts += [f"## {each.specialist or 'Result'}\n\n{_shown(each)}" for each in stray]
        if gaps := self._gaps():
            parts.append("\n".join(["## What is missing\n", *gaps]))
        return "\n\n".join(parts)

    def _opening(self) -> str:
        done = [step for step in self.plan.steps if self.state_of(step) == "done"]
        total = len(self.plan.steps)
        if not total:
            return "These are the results." if self.findings else "There are no results."
        if not done and total == 1:
            return "The one step of the plan returned no result."
        if not done:
            return f"None of the {total} steps of the plan returned a result."
        count = f"{len(done)} of {total} steps are" if total > 1 else "The one step is"
        found = (each for step in done for each in self.findings_of(step) if each.is_of_use)
        names = dict.fromkeys(each.specialist for each in found if each.specialist)
        return f"{count} done" + (f", by {', '.join(names)}." if names else ".")

    def _gaps(self) -> list[str]:
        """What the answer lacks, without what the graph's last node adds by rule."""
        told = {step.id for step in self.unmet()}
        rest = [step for step in self.plan.steps if step.id not in told]
        states = ((step, self.state_of(step)) for step in rest)
        return [
            f"- {_heading(step)}: {_GAPS.get(state) or f'failed. {self.error_of(step)}'}".rstrip()
            for step, state in states
            if state != "done"
        ]


def progress_in(human: str) -> Progress:
    sections = sections_of(human)
    return Progress(
        plan=PlanDocument.recover(first_of(sections, "plan")).plan,
        findings=tuple(_finding(each) for each in sections if each.tag == "result"),
        missing=first_of(sections, "missing"),
    )


def first_of(sections: Sequence[Section], tag: str) -> str:
    """The text of the first section of a kind; empty without one."""
    return next((section.text for section in sections if section.tag == tag), "")


def _finding(section: Section) -> Finding:
    step = section.attributes.get("step", "")
    return Finding(
        step=int(step) if step.isascii() and step.isdigit() else 0,
        specialist=section.attributes.get("specialist", ""),
        status=section.attributes.get("status", "success"),
        text=section.text.strip(),
    )


def _shown(finding: Finding) -> str:
    """The text of a result; a list of files behind it is left out if the text names them all."""
    text, files, names = finding.text.rpartition("\n\nFiles: ")
    if files and "\n" not in names and all(name in text for name in names.split(", ")):
        return text
    return finding.text


def _heading(step: PlanStep) -> str:
    return f"{step.id}. {step.description}" if step.description else f"Step {step.id}"
