"""What is worth its own line, wherever a run is reported."""

from collections.abc import Mapping

from replan.base.secrets.masking import without_secrets
from replan.log.events import types as events
from replan.log.events.types import Event, PhaseEntered, SpecialistToken, StepEvent
from replan.log.events.warnings import warnings_in
from replan.log.report import RunReport
from replan.state.person.answers import problem_in
from replan.views.cells import one_line
from replan.views.event_lines import call_line, event_line, who

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


def notice(event: events.Event, *, verbose: bool = False) -> str:  # noqa: PLR0911 - one for each kind
    """The line about an event; empty for most events."""
    match event:
        case events.FeedbackGenerated() | events.PhaseEntered() if not verbose:
            goes_on = isinstance(event, events.FeedbackGenerated) and event.should_continue
            return event_line(event) if goes_on else ""
        case events.ThinkingCompleted() if verbose:
            reason = f": {one_line(event.reasoning)}" if event.reasoning else ""
            return f"judged {event.complexity}{reason}"
        case events.CallEvent() if verbose:
            return call_line(event)
        case events.PlanUpdated() if event.changes:
            return f"plan revised (version {event.version}, by {event.by})"
        case events.InputRequested():
            return f"{who(event)} asks: {one_line(problem_in(event.text))}"
        case events.PlanParseWarning(parse_warnings=found):
            return "\n".join(f"warning: {one_line(str(warning))}" for warning in found)
        case _:
            return event_line(event)


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
