"""Read what a run has come to, join its results by rule, and revise a step that failed.

It is revised once: the name that its error proposes is written for the one that it refuses.
"""

import re
from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from replan.plan.dependencies import unmet_steps
from replan.plan.markdown.document import PlanDocument
from replan.plan.model import PlanStep, StepStatus, TaskPlan, Value
from replan.prompts.sections import Section, sections_of

_REVISED = "Revised: "
_LONGEST_ERROR = 1_000
# Names of columns come from files, so that only the end of an error is surely its own proposal.
_DID_YOU_MEAN = re.compile(
    r"[`'\"](?P<wrong>[^`'\"\n]{1,80})[`'\"][^\n]*"
    r"\bdid you mean:? [`'\"](?P<right>[^`'\"\n]{1,80})[`'\"]\?\Z",
    re.IGNORECASE,
)


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
            found = self._useful(step)
            for section in found:
                named = f" ({_doer(section, step)})" if len(found) > 1 else ""
                parts.append(f"## {step.id}. {step.description}{named}\n\n{section.text.strip()}")
        return "\n\n".join(parts)

    def _opening(self) -> str:
        done = [step for step in self.plan.steps if step.status is StepStatus.COMPLETED]
        total = len(self.plan.steps)
        if not done:
            return "No step of the plan returned a result."
        count = f"{len(done)} of {total} steps are" if total > 1 else "The one step is"
        names = dict.fromkeys(
            _doer(section, step) for step in done for section in self._useful(step)
        )
        return f"{count} done" + (f", by {', '.join(names)}." if names else ".")

    def _useful(self, step: PlanStep) -> Sequence[Section]:
        if step.status is not StepStatus.COMPLETED:
            return ()
        found = self.results.get(str(step.id), ())
        return [
            section
            for section in found
            if section.attributes.get("status") != "failed" and section.text
        ]


def progress_in(human: str) -> Progress:
    sections = sections_of(human)
    results: dict[str, tuple[Section, ...]] = {}
    for section in sections:
        if section.tag == "result":
            step = section.attributes.get("step", "")
            results[step] = (*results.get(step, ()), section)
    return Progress(
        plan=PlanDocument.recover(first_of(sections, "plan")).plan,
        results=results,
        missing=first_of(sections, "missing"),
    )


def first_of(sections: Sequence[Section], tag: str) -> str:
    """The text of the first section of a kind; empty without one."""
    return next((section.text for section in sections if section.tag == tag), "")


def _doer(result: Section, step: PlanStep) -> str:
    """The specialist of a result: the one that its step names, if its mark names no other."""
    return result.attributes.get("specialist", step.assigned_to)


def revise(progress: Progress) -> tuple[str, tuple[str, ...]]:
    """Change every failed step once whose error proposes a name.

    Returns:
        The whole revised document, and a sentence for each step; nothing if there is no such step.
    """
    failed = [step for step in progress.failed() if _REVISED not in step.brief]
    changed = [new for step in failed if (new := _renamed(progress, step))]
    if not changed:
        return "", ()
    document = PlanDocument.recover(progress.plan.content)
    plan = progress.plan.with_steps(*(step for step, _ in changed))
    return str(document.write(plan)), tuple(note for _, note in changed)


def _renamed(progress: Progress, step: PlanStep) -> tuple[PlanStep, str] | None:
    found = _DID_YOU_MEAN.search(progress.error_of(step).strip()[-_LONGEST_ERROR:])
    if found is None:
        return None
    pattern = re.compile(rf"(?<!\w){re.escape(found['wrong'])}(?!\w)", re.IGNORECASE)

    def put(value: JsonValue) -> JsonValue:
        match value:
            case str():
                return pattern.sub(lambda _: found["right"], value)
            case list():
                return [put(each) for each in value]
            case dict():
                return {str(put(key)): put(part) for key, part in value.items()}
            case _:
                return value

    parameters = {str(put(key)): put(value) for key, value in step.parameters.items()}
    new = step.replace(description=str(put(step.description)), parameters=parameters)
    if new == step:
        return None
    note = f"{found['right']} for {found['wrong']}."
    brief = f"{step.brief}\n\n{_REVISED}{note}".strip()
    open_again = new.replace(brief=brief, status=StepStatus.PENDING, result="", feedback="")
    return open_again, f"Step {step.id}: {note}"
