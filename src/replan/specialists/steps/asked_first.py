"""What is asked before an attempt: whether the step may be done, or done once more."""

from langchain_core.messages import AIMessage
from pydantic import JsonValue

from replan.base.errors import InDoubtError, InputError, QuestionError
from replan.base.failures import describe
from replan.log.rows import LedgerEntry
from replan.log.run_log import ACTED, DOUBTED
from replan.log.transcript import plain
from replan.prompts.sections import within_budget
from replan.specialists.steps.on_record import done_before, left_in_doubt
from replan.specialists.steps.step_record import Asker, StepRecord
from replan.state.person.answers import (
    Verdict,
    ask_what_became_of,
    ask_whether_again,
    read_decision,
)
from replan.state.questions import Decision
from replan.state.results import ExecutionContext, ExecutionStatus, SpecialistResult
from replan.state.team import SpecialistCard


async def unresolved_attempts(record: StepRecord, card: SpecialistCard) -> list[LedgerEntry]:
    """The attempts that forbid a repetition without asking: cut off, or done before."""
    cut_off = await _cut_off_before(record) if card.effects == "unsafe" else None
    done = done_before(record.tried)
    is_asked = done is not None and await _is_once_only(record, card)
    return [entry for entry in (cut_off, done if is_asked else None) if entry is not None]


async def _cut_off_before(record: StepRecord) -> LedgerEntry | None:
    """The newest attempt, if its end is unknown and nobody has settled it since."""
    newest = record.tried[-1] if record.tried else None
    if newest is None or newest.outcome != "failed":
        return left_in_doubt(record.tried)
    return newest if await record.is_noted(_doubt_of(newest, record)) else None


async def _is_once_only(record: StepRecord, card: SpecialistCard) -> bool:
    is_unsafe = card.effects == "unsafe"
    if is_unsafe and card.is_declared:
        return True
    # Who did a part of it, and never said that it is unsafe, is asked for the rest.
    is_part = record.before is not None and record.before.status is ExecutionStatus.PARTIAL
    return not is_part and (is_unsafe or await record.is_noted(ACTED + record.key))


async def note_doubt(record: StepRecord, attempt: LedgerEntry) -> None:
    """Note that the step fails while an attempt is in doubt."""
    note = _doubt_of(attempt, record)
    await record.services.log.note(record.context.run_id, note, value=True)


def _doubt_of(attempt: LedgerEntry, record: StepRecord) -> str:
    return f"{DOUBTED}{record.key}/{attempt.number}"


def verdict_on(
    tried: LedgerEntry, context: ExecutionContext, card: SpecialistCard, asker: Asker | None
) -> Verdict:
    """Decide what happens to work that an attempt did, or may have done."""
    what, was_done = f"Step {tried.step_id} at @{tried.specialist}", tried.outcome == "done"
    error = InDoubtError(
        what,
        tried.number,
        was_done=was_done,
        why=tried.error,
        undeclared="" if card.is_declared else card.name,
    )
    if asker is None:
        return Verdict(action="fail", text=describe(error))
    details: dict[str, JsonValue] = {"attempt": tried.number, "task": context.task_description}
    if was_done:
        # Asked once for each work that is to be done again.
        details["idempotency_key"] = context.idempotency_key
    try:
        if was_done:
            verdict = ask_whether_again(what, tried.number, details, asker.ask)
        else:
            verdict = ask_what_became_of(what, tried.number, details, asker.ask, why=tried.error)
    except QuestionError as refused:
        return Verdict(action="fail", text=f"{error} {refused}")
    if verdict.action == "fail" and not verdict.text:
        return verdict.replace(text=describe(error))
    return verdict


def result_of_verdict(verdict: Verdict, earlier_text: str) -> SpecialistResult:
    """The result that a verdict gives work that is not done again."""
    if verdict.action == "done":
        return SpecialistResult(result=AIMessage(verdict.text or earlier_text or "Done."))
    return SpecialistResult(
        status=ExecutionStatus.FAILED, error=verdict.text, confidence=0.0, retry=False
    )


LONGEST_INPUT = 2_000
"""Characters of a result of another step that the question shows."""


def permission_to_begin(record: StepRecord, card: SpecialistCard, asker: Asker) -> Decision:
    """Ask a person whether the step may begin, again while the answer cannot be read.

    An approval is of the work that was shown: after a change of it, or once the step is reopened,
    it is asked for anew.

    Raises:
        Waiting: There is no answer yet.
        QuestionError: The run asks no more questions.
    """
    step = record.context.plan_step
    inputs = record.context.inputs.items()
    shown: dict[str, JsonValue] = {
        "task": step.description,
        "brief": step.brief,
        "parameters": plain(step.parameters),
        "inputs": {str(step_id): within_budget(text, LONGEST_INPUT) for step_id, text in inputs},
        "does": card.intended_use,
        "effects": card.effects,
    }
    details: JsonValue = {
        "tool": f"step {step.id}",
        "arguments": {name: value for name, value in shown.items() if value},
        "call": record.keys.attempt,
    }
    question = f"May step {step.id} begin at @{record.specialist}?"
    text = question
    while True:
        try:
            decision = read_decision(asker.ask(text, "approval", details))
        except InputError as error:
            text = f"{question} {error}"
            continue
        if decision.action != "edit":
            return decision
        text = f"{question} Approve or reject it; to change it, change the plan."
