"""Read what a run has come to, and join its results by rule."""

from collections.abc import Mapping, Sequence

from replan.plan.dependencies import unmet_steps
from replan.plan.markdown.document import PlanDocument
from replan.plan.model import PlanStep, StepStatus, TaskPlan, Value
from replan.prompts.sections import Section, sections_of


class Progress(Value):
    """What the prompts of feedback, revision and final answer say about a run."""

    plan: TaskPlan  # the plan, with the document as its content
    results: Mapping[str, tuple[Section, ...]]  # what specialists gave, by the number of the step
    missing: str  # why the run has to end now; empty if it may continue

    def failed(self) -> tuple[PlanStep, ...]:
        """The steps that failed and that the plan cannot do without."""
        unmet = unmet_steps(self.plan)
        return tuple(step for step in unmet if step.status is StepStatus.FAILED)

    def error_of(self, step: PlanStep) -> str:
        """The last thing said about a failed step."""
        results = self.results.get(str(step.id), ())
        return results[-1].text.strip() if results else step.feedback

    def joined(self) -> str:
        """The answer of the run in Markdown: what was done, and what was found.

        The last node of the graph adds what was not done.
        """
        parts = [self._opening()]
        for step in self.plan.steps:
            if useful := self._useful(step):
                texts = [
                    f"**{_doer(each)}**\n\n{_shown(each)}" if len(useful) > 1 else _shown(each)
                    for each in useful
                ]
                parts.append("\n\n".join([f"## {step.id}. {step.description}", *texts]))
        return "\n\n".join(parts)

    def _opening(self) -> str:
        done = [step for step in self.plan.steps if step.status is StepStatus.COMPLETED]
        total = len(self.plan.steps)
        if not done:
            return f"None of the {total} steps of the plan returned a result."
        count = f"{len(done)} of {total} steps are" if total > 1 else "The one step is"
        names = dict.fromkeys(_doer(each) for step in done for each in self._useful(step))
        return f"{count} done" + (f", by {', '.join(names)}." if names else ".")

    def _useful(self, step: PlanStep) -> Sequence[Section]:
        if step.status is not StepStatus.COMPLETED:
            return ()
        found = self.results.get(str(step.id), ())
        return [each for each in found if each.attributes.get("status") != "failed" and each.text]


def progress_in(human: str) -> Progress:
    sections = sections_of(human)
    results: dict[str, tuple[Section, ...]] = {}
    for each in sections:
        if each.tag == "result":
            step = each.attributes.get("step", "")
            results[step] = (*results.get(step, ()), each)
    return Progress(
        plan=PlanDocument.recover(first_of(sections, "plan")).plan,
        results=results,
        missing=first_of(sections, "missing"),
    )


def first_of(sections: Sequence[Section], tag: str) -> str:
    """The text of the first section of a kind; empty without one."""
    return next((section.text for section in sections if section.tag == tag), "")


def _doer(result: Section) -> str:
    return result.attributes.get("specialist", "")


def _shown(result: Section) -> str:
    """The text of a result; a list of files behind it is left out if the text names them all."""
    text, _, names = result.text.strip().rpartition("\n\nFiles: ")
    is_repeated = text and "\n" not in names and all(name in text for name in names.split(", "))
    return text if is_repeated else result.text.strip()
