"""Read what a run has come to, join its results by rule, and revise a step that failed.

It is revised once: the name that its error proposes is written for the one that it refuses.
"""

import re
from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from replan.base.values import Value
from replan.plan.dependencies import unmet_steps
from replan.plan.markdown.document import PlanDocument
from replan.plan.model import PlanStep, StepStatus, TaskPlan
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
    results: Mapping[int, tuple[Section, ...]]  # what specialists gave, by the number of the step
    missing: str  # why the run has to end now; empty if it may continue

    def failed(self) -> tuple[PlanStep, ...]:
        """The steps that failed and that the plan cannot do without."""
        unmet = unmet_steps(self.plan)
        return tuple(step for step in unmet if step.status is StepStatus.FAILED)

    def error_of(self, step: PlanStep) -> str:
        """The last thing said about a failed step."""
        return self.results[step.id][-1].text if self.results[step.id] else step.feedback

    def joined(self) -> str:
        """The answer of the run in Markdown: what was done, and what was found.

        The last node of the graph adds what was not done.
        """
        done = [step for step in self.plan.steps if step.status is StepStatus.COMPLETED]
        if not done:
            return "No step of the plan returned a result."
        parts, names = list[str](), list[str]()
        for step in done:
            results = [each for each in self.results[step.id] if _is_useful(each)]
            for result in results:
                # The step says who did it, where the mark of the result does not.
                name = result.attributes.get("specialist", step.assigned_to)
                by = f" ({name})" if len(results) > 1 else ""
                parts.append(f"## {step.id}. {step.description}{by}\n\n{result.text.strip()}")
                names.append(name)
        total = len(self.plan.steps)
        count = f"{len(done)} of {total} steps are" if total > 1 else "The one step is"
        by = f", by {', '.join(dict.fromkeys(names))}" if names else ""
        return "\n\n".join([f"{count} done{by}.", *parts])


def progress_in(human: str) -> Progress:
    sections = sections_of(human)
    plan = PlanDocument.recover(first_of(sections, "plan")).plan
    results = [section for section in sections if section.tag == "result"]
    return Progress(
        plan=plan,
        results={
            step.id: tuple(each for each in results if each.attributes.get("step") == str(step.id))
            for step in plan.steps
        },
        missing=first_of(sections, "missing"),
    )


def first_of(sections: Sequence[Section], tag: str) -> str:
    """The text of the first section of a kind; empty without one."""
    return next((section.text for section in sections if section.tag == tag), "")


def revise(progress: Progress) -> tuple[str, tuple[str, ...]]:
    """Change every failed step once whose error proposes a name.

    Returns:
        The whole revised document, and a sentence for each step; nothing if there is no such step.
    """
    failed = [step for step in progress.failed() if _REVISED not in step.brief]
    changed = [new for step in failed if (new := _renamed(step, progress.error_of(step)))]
    if not changed:
        return "", ()
    document = PlanDocument.recover(progress.plan.content)
    plan = progress.plan.with_steps(*(step for step, _ in changed))
    return str(document.write(plan)), tuple(note for _, note in changed)


def _is_useful(result: Section) -> bool:
    return result.attributes.get("status") != "failed" and bool(result.text)


def _renamed(step: PlanStep, error: str) -> tuple[PlanStep, str] | None:
    found = _DID_YOU_MEAN.search(error.strip()[-_LONGEST_ERROR:])
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

    new = step.replace(description=put(step.description), parameters=put(dict(step.parameters)))
    if new == step:
        return None
    note = f"{found['right']} for {found['wrong']}."
    brief = f"{step.brief}\n\n{_REVISED}{note}".strip()
    open_again = new.replace(brief=brief, status=StepStatus.PENDING, result="", feedback="")
    return open_again, f"Step {step.id}: {note}"
