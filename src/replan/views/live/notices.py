"""What is worth its own line, wherever a run is reported."""

from collections.abc import Mapping

from replan.events import types as events
from replan.events.types import Event, PhaseEntered, SpecialistToken, StepEvent
from replan.events.warnings import warnings_in
from replan.log.report import RunReport
from replan.secrets.masking import without_secrets
from replan.state.cuts import CUTS
from replan.views.cells import answer_text, correction_text, one_line
from replan.views.live.call_lines import call_line
from replan.views.run.given import places

# In the order in which LangSmith asks them; the first one that says something decides.
_TRACING = (
    "LANGSMITH_TRACING_V2",
    "LANGCHAIN_TRACING_V2",
    "LANGSMITH_TRACING",
    "LANGCHAIN_TRACING",
)
_ON = "true"
_ENDPOINTS = ("LANGSMITH_ENDPOINT", "LANGCHAIN_ENDPOINT")
_REPLICAS = ("LANGSMITH_RUNS_ENDPOINTS", "LANGCHAIN_RUNS_ENDPOINTS")
_LANGSMITH = "https://api.smith.langchain.com"


def notice(event: events.Event) -> str:  # noqa: PLR0911 - one for each kind
    """The line about an event that is always shown; empty for most events."""
    match event:
        case events.FeedbackGenerated(text=text) if event.should_continue and text:
            return f"feedback: {one_line(text)}"
        case events.PlanUpdated() if event.changes:
            return f"plan revised (version {event.version}, by {event.by})"
        case events.StepsInvalidated(reruns=reruns):
            return f"runs again: {', '.join(map(str, reruns))}"
        case events.RunCorrected():
            return correction_text(event.action, event.step_id, event.by, event.origin)
        case events.AnswerReceived():
            return answer_text(event.key, event.action, event.by, event.text)
        case events.InputRequested():
            return f"step {event.step_id} {event.specialist} asks: {one_line(event.text)}"
        case _:
            return _other_notice(event)


def _limit_notice(event: events.LimitReached) -> str:
    if event.limit in CUTS:
        return CUTS[event.limit]
    whose = "" if event.scope == "run" else f" of {one_line(event.scope.replace('/', ' '))}"
    value = f"={event.value:g}" if event.value else ""
    return f"limit reached: {event.limit}{value}{whose}"


def _knowledge_notice(event: events.KnowledgeRetrieved) -> str:
    """The line about the knowledge that was found; failures are reported as warnings."""
    whom = "the host" if event.step_id is None else f"step {event.step_id}"
    if event.error:
        return f"no knowledge for {whom}: {one_line(event.error)}"
    text = places(event.sources) or "nothing found"
    unused = f"; {len(event.unused)} not used" if event.unused else ""
    left = f"; {one_line(' '.join(event.skipped))}" if event.skipped else ""
    return f"knowledge for {whom}: {text}{unused}{left}"


def tracing_notice(environment: Mapping[str, str]) -> str:
    """The line about another service that receives all texts of a run, or an empty text."""
    name = next((name for name in _TRACING if environment.get(name, "").strip()), "")
    if environment.get(name, "").strip().casefold() != _ON:
        return ""
    where = next(filter(None, map(environment.get, _ENDPOINTS)), _LANGSMITH)
    replicas = [f"all of {name}" for name in _REPLICAS if environment.get(name)]
    return (
        f"tracing is on ({name}): prompts, results and answers go to "
        f"{next(iter(replicas), one_line(without_secrets(where)))}; {name}=false turns it off"
    )


def traces_notice(where: str, *, content: bool) -> str:
    """The line with the receiver of a run's OpenTelemetry traces."""
    said = "with" if content else "without"
    return (
        f"traces go to {one_line(where)}, {said} prompts, results and answers; "
        "OTEL_SDK_DISABLED=true turns them off"
    )


def _other_notice(event: events.Event) -> str:  # noqa: PLR0911 - one for each kind
    match event:
        case events.KnowledgeRetrieved():
            return _knowledge_notice(event)
        case events.FactRemembered():
            return f"remembered: {one_line(event.text)}"
        case events.FactForgotten():
            return f"forgotten: {one_line(event.text)}"
        case events.StepsRouted(assignments=assignments):
            given = ", ".join(f"step {step} to {name}" for step, name in assignments.items())
            return f"names no specialist, given by the cards: {one_line(given)}"
        case events.PlanParseWarning(parse_warnings=found):
            return "\n".join(f"warning: {one_line(str(each))}" for each in found)
        case events.LimitReached():
            return _limit_notice(event)
        case events.ReplyParseFailed():
            instead = f"Instead: {one_line(event.fallback)}"
            return f"unreadable reply of {event.node}: {one_line(event.problem)} {instead}"
        case _:
            return ""


def verbose_notice(event: events.Event) -> str:
    """The line of an event for `--verbose`, or an empty text."""
    match event:
        case events.ThinkingCompleted():
            reason = f": {one_line(event.reasoning)}" if event.reasoning else ""
            return f"judged {event.complexity}{reason}"
        case events.FeedbackGenerated(text=text) if text:
            return f"feedback: {one_line(text)}"
        case events.PhaseEntered():
            below = f" ({one_line(event.path)})" if event.path else ""
            return f"phase {one_line(event.phase)}{below}"
        case events.CallEvent():
            return call_line(event)
        case _:
            return ""


def warnings_shown_by(event: events.Event) -> set[str]:
    """The warnings that the line of an event already shows, verbatim."""
    return {*warnings_in(event)} if isinstance(event, events.PlanParseWarning) else set()


def said_lines(before: RunReport, event: Event) -> list[str]:
    """The lines of a specialist that an event ends: whatever else a step does ends its last one."""
    if not isinstance(event, StepEvent | PhaseEntered):
        return []
    step, name = event.step_id or 0, event.specialist
    begun = before.drafts.get((step, name), "").rpartition("\n")[2]
    lines = [begun] if begun.strip() else []
    if isinstance(event, SpecialistToken):
        *lines, _ = (begun + event.text).split("\n")
    # Outside a plan there is one pipeline, and no step.
    whose = f"step {step} {name} | " if step else ""
    return [f"{whose}{one_line(line)}" for line in lines]


def who(event: StepEvent) -> str:
    """The step and the specialist of an event."""
    return f"step {event.step_id} {event.specialist}"
