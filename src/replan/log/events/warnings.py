"""What of an event a person may not expect: it is in the state, and at the end of a run."""

from replan.base.secrets.masking import KNOWN
from replan.log.events.types import (
    BaseEvent,
    KnowledgeRetrieved,
    LimitReached,
    MemorySummary,
    PlanCreated,
    PlanParseWarning,
    PlanUpdated,
    ReplyParseFailed,
    StepsInvalidated,
    StepsRouted,
    WarningReported,
)
from replan.state.outcomes import CUTS, answer_warning


def warnings_in(event: BaseEvent) -> tuple[str, ...]:  # noqa: PLR0911 - one for each kind
    """The warnings of an event, a sentence each."""
    match event:
        case WarningReported(text=text):
            return (text,)
        case StepsRouted(assignments=assignments):
            return tuple(
                f"Step {step} names no specialist; by the cards it goes to @{name}."
                for step, name in assignments.items()
            )
        case PlanParseWarning(parse_warnings=found):
            return tuple(f"In the plan, {warning}." for warning in found)
        case ReplyParseFailed():
            when = f" in round {event.round}" if event.round else ""
            reply = f"The reply of {event.node}{when} could not be used"
            why = event.problem.rstrip(".")
            return (f"{reply}: {why}. Instead: {event.fallback}.",)
        case StepsInvalidated(reruns=reruns) if any(
            rerun.reason == "input_changed" for rerun in reruns
        ):
            steps = ", ".join(map(str, reruns))
            return (f"What settled steps were given has changed, so they are done again: {steps}.",)
        case KnowledgeRetrieved() | MemorySummary():
            return _missing_context(event)
        case LimitReached(limit=limit, reason=reason) if limit in CUTS:
            return (answer_warning(limit, reason),)
        case _:
            return secret_warnings("The plan", _new_plan_in(event))


def _missing_context(event: KnowledgeRetrieved | MemorySummary) -> tuple[str, ...]:
    """Requested context that models do not receive."""
    if isinstance(event, MemorySummary):
        why = f"No new summary of the conversation was written: {event.error}"
        return (why,) if event.error else ()
    of = f" (attempt {event.attempt})" if event.attempt else ""
    who = "The host" if event.step_id is None else f"Step {event.step_id}{of}"
    failed = tuple(
        f"{who} continues with less knowledge: {specialist}" for specialist in event.failed
    )
    return (f"{who} continues without knowledge: {event.error}",) if event.error else failed


def _new_plan_in(event: BaseEvent) -> str:
    match event:
        case PlanCreated(markdown=text):
            return text
        case PlanUpdated(markdown=text) if event.changes:
            return text
        case _:
            return ""


def secret_warnings(what: str, text: str) -> tuple[str, ...]:
    """The warning about a text that is kept unchanged, if it holds a known secret value."""
    if not KNOWN.occur_in(text):
        return ()
    return (f"{what} holds a secret value of this process, and is kept and shown as it is.",)
