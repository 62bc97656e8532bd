"""What a new run would do a second time that must not happen twice unasked."""

from collections.abc import AsyncGenerator, Sequence
from typing import Any

from replan.errors import InputError
from replan.plan.model import PlanStep, StepStatus, TaskPlan
from replan.ports.journal import ACTED, DOUBTED, Journal, LedgerEntry
from replan.runs.continued.correcting import Correction, is_over
from replan.runs.looking import RunView
from replan.state.team import SpecialistCard
from replan.steps.on_record import attempts_of, left_in_doubt

_MAY_HAVE_ACTED = "failed, and may have taken effect"


async def repeated_by(
    correction: Correction, view: RunView, team: Sequence[SpecialistCard], journal: Journal
) -> list[str]:
    """Describe what would be done a second time that must not happen twice unasked."""
    return [told async for told in _repeated(correction, view, team, journal)]


def refuse_repeats(told: Sequence[str]) -> None:
    """Refuse a new run that would repeat work with effects.

    Raises:
        InputError: There is such work.
    """
    if told:
        raise InputError(
            f"This run is over, and a new one would repeat work that must not be repeated without "
            f"asking: {'; '.join(told)}. Allow it with repeat_effects=True."
        )


async def _repeated(
    correction: Correction, view: RunView, team: Sequence[SpecialistCard], journal: Journal
) -> AsyncGenerator[str]:
    plan, cards = view.plan or TaskPlan(), {card.name: card for card in team}
    is_new = is_over(view.state)
    ledger = await journal.ledger(view.run_id)
    noted = {**await journal.notes(view.run_id, ACTED), **await journal.notes(view.run_id, DOUBTED)}
    for rerun in correction.reruns(plan):
        step = plan.step(rerun.step)
        tried = {entry.specialist for entry in ledger if entry.step_id == step.id}
        for name in sorted(tried) or step.specialists:
            attempts = attempts_of(ledger, step.id, name)
            effects = cards[name].effects if name in cards else "unsafe"
            if not is_new:
                # It has the keys and the record of what its tools did, and asks of what was done or
                # cut off; of what failed it asks nothing.
                has_failed = step.status is not StepStatus.COMPLETED and _has_failed(attempts)
                if effects == "unsafe" and has_failed:
                    yield f"step {step.id} at @{name} ({effects}) {_MAY_HAVE_ACTED}"
                continue
            effects = "unsafe" if f"{ACTED}{step.id}/{name}" in noted else effects
            if effects != "pure" and (how := _effect(step, effects, attempts, noted)):
                yield f"step {step.id} at @{name} ({effects}) {how}"


def _effect(
    step: PlanStep, effects: str, attempts: Sequence[LedgerEntry], noted: dict[str, Any]
) -> str:
    """How work may have had its effect already; empty if it has not."""
    if step.status is StepStatus.COMPLETED:
        return "was done"
    if not attempts:
        return ""
    newest = attempts[-1]
    if (
        left_in_doubt(attempts)
        or f"{DOUBTED}{step.id}/{newest.specialist}/{newest.number}" in noted
    ):
        return "was cut off"
    # A new run has other keys, by which no service knows what it did.
    if effects == "keyed":
        return "was begun"
    return _MAY_HAVE_ACTED if _has_failed(attempts) else ""


def _has_failed(attempts: Sequence[LedgerEntry]) -> bool:
    return any(each.outcome == "failed" for each in attempts)
