"""Route around a failed step, once: mend the name that was wrong, or ask somebody else."""

import re

from pydantic import JsonValue

from replan_local.host.progress import Progress
from replan_local.host.team import best_for, workers_of
from replan.plan.document import PlanDocument
from replan.plan.model import PlanStep, StepStatus, Value
from replan.state.placing import NOBODY

_REVISED = "[revised: "
_LONGEST_ERROR = 1_000
# Names of columns come from files, so that only the end of an error is surely its own proposal.
_DID_YOU_MEAN = re.compile(
    r"[`'\"](?P<wrong>[^`'\"\n]{1,80})[`'\"][^\n]*"
    r"\bdid you mean:? [`'\"](?P<right>[^`'\"\n]{1,80})[`'\"]\?\Z",
    re.IGNORECASE,
)


class Revision(Value):
    """A changed plan.

    Attributes:
        document: The whole revised document.
        changes: What was changed, a sentence for each step.
    """

    document: str
    changes: tuple[str, ...]


def revise(progress: Progress) -> Revision | None:
    """Change every failed step that can be routed around; none if there is no such step.

    A failure that the plan itself has provided for is left alone. A changed step says so in its
    line, so that it is never changed a second time.
    """
    changed: list[PlanStep] = []
    changes: list[str] = []
    unmet = {step.id for step in progress.unmet()}
    for step in progress.failed():
        if step.id not in unmet:
            continue
        new = None if _REVISED in step.description else _routed(progress, step)
        if new is not None:
            changed.append(new.replace(status=StepStatus.PENDING, result="", feedback=""))
            changes.append(f"Step {step.id}: {_note_of(new)}.")
    if not changed:
        return None
    document = PlanDocument.recover(progress.plan.content)
    revised = document.write(progress.plan.with_steps(*changed))
    return Revision(document=str(revised), changes=tuple(changes))


def _routed(progress: Progress, step: PlanStep) -> PlanStep | None:
    return _with_mended_name(progress, step) or _with_another(progress, step)


def _with_mended_name(progress: Progress, step: PlanStep) -> PlanStep | None:
    """Write the name that the error proposes for the one that it refuses."""
    found = _DID_YOU_MEAN.search(progress.error_of(step).strip()[-_LONGEST_ERROR:])
    if found is None:
        return None
    wrong, right = found["wrong"], found["right"]
    pattern = re.compile(rf"(?<!\w){re.escape(wrong)}(?!\w)", re.IGNORECASE)

    def mend(value: JsonValue) -> JsonValue:
        match value:
            case str():
                return pattern.sub(lambda _: right, value)
            case list():
                return [mend(each) for each in value]
            case dict():
                return {str(mend(key)): mend(each) for key, each in value.items()}
            case _:
                return value

    parameters = {str(mend(key)): mend(value) for key, value in step.parameters.items()}
    mended = step.replace(
        description=str(mend(step.description)), brief=str(mend(step.brief)), parameters=parameters
    )
    return None if mended == step else _noted(mended, f"{right} for {wrong}")


def _with_another(progress: Progress, step: PlanStep) -> PlanStep | None:
    """Give the step to another member of the team whose card fits it too."""
    tried = tuple(dict.fromkeys(each.specialist for each in progress.findings_of(step)))
    before = [name for name in step.specialists or tried if name != NOBODY]
    others = [card for card in progress.team if card.name not in before]
    card = best_for(step.description, others if step.dependencies else workers_of(others))
    if card is None:
        return None
    new = step.replace(assigned_to=card.name, joined_by=())
    note = f"{card.name} for {' and '.join(before)}" if before else f"given to {card.name}"
    return _noted(new, note)


def _noted(step: PlanStep, note: str) -> PlanStep:
    return step.replace(description=f"{step.description} {_REVISED}{note}]")


def _note_of(step: PlanStep) -> str:
    return step.description.rpartition(_REVISED)[2].removesuffix("]")
