"""What becomes of work that must not be done twice unasked: it was cut off, or done before."""

from langchain_core.messages import AIMessage
from pydantic import JsonValue

from replan.errors import InDoubtError, QuestionError
from replan.failures import describe
from replan.ports.ask_user import Asker
from replan.ports.journal import LedgerEntry
from replan.state.results import ExecutionContext, ExecutionStatus, SpecialistResult
from replan.state.team import SpecialistCard
from replan.state.verdicts import Verdict, ask_what_became_of, ask_whether_again


def verdict_on(
    tried: LedgerEntry, context: ExecutionContext, card: SpecialistCard, asker: Asker | None
) -> Verdict:
    """What is to become of work that a try may have done, or has done.

    Args:
        tried: The try.
        context: The work as it would be done now.
        card: Who does it.
        asker: Asks a person; None where nobody is asked, and the work fails.

    Raises:
        Waiting: There is no answer yet.
    """
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
        # Asked once for each work that is to be done once more.
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


def result_by(verdict: Verdict, before: str) -> SpecialistResult:
    """The result that a verdict makes of work that is not done again.

    Args:
        verdict: What became of the work.
        before: What came of it when it was done; empty if it was cut off.
    """
    if verdict.action == "done":
        return SpecialistResult(result=AIMessage(verdict.text or before or "Done."))
    return SpecialistResult(
        status=ExecutionStatus.FAILED, error=verdict.text, confidence=0.0, retry=False
    )
