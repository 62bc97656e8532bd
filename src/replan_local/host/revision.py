"""Revise a failed step, once: write the name that its error proposes for the one it refuses."""

import re

from pydantic import JsonValue

from replan.plan.markdown.document import PlanDocument
from replan.plan.model import PlanStep, StepStatus, Value
from replan_local.host.progress import Progress

_REVISED = "Revised: "
_LONGEST_ERROR = 1_000
# Names of columns come from files, so that only the end of an error is surely its own proposal.
_DID_YOU_MEAN = re.compile(
    r"[`'\"](?P<wrong>[^`'\"\n]{1,80})[`'\"][^\n]*"
    r"\bdid you mean:? [`'\"](?P<right>[^`'\"\n]{1,80})[`'\"]\?\Z",
    re.IGNORECASE,
)


class Revision(Value):
    document: str  # the whole revised document
    changes: tuple[str, ...]  # what was changed, a sentence for each step


def revise(progress: Progress) -> Revision | None:
    """Change every failed step once whose error proposes a name; None if there is no such step."""
    changed = {
        step.id: new
        for step in progress.failed()
        if _REVISED not in step.brief and (new := _renamed(progress, step))
    }
    if not changed:
        return None
    document = PlanDocument.recover(progress.plan.content)
    steps = [
        step.replace(status=StepStatus.PENDING, result="", feedback="")
        for step, _ in changed.values()
    ]
    return Revision(
        document=str(document.write(progress.plan.with_steps(*steps))),
        changes=tuple(f"Step {number}: {note}." for number, (_, note) in changed.items()),
    )


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
                return {str(put(key)): put(each) for key, each in value.items()}
            case _:
                return value

    parameters = {str(put(key)): put(value) for key, value in step.parameters.items()}
    new = step.replace(description=str(put(step.description)), parameters=parameters)
    if new == step:
        return None
    note = f"{found['right']} for {found['wrong']}"
    return new.replace(brief=f"{step.brief}\n\n{_REVISED}{note}.".strip()), note
