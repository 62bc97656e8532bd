"""Calls and events of a run in a line each, live and of its record."""

from collections.abc import Iterator, Mapping, Sequence

from pydantic import JsonValue

from replan.base.values import json_text
from replan.log.events import types as events
from replan.log.events.types import (
    CallEvent,
    Event,
    FactForgotten,
    FactRemembered,
    KnowledgeRetrieved,
    MemoryApplied,
    MemorySummary,
    ModelCompleted,
    ModelInvoked,
    ToolCompleted,
    ToolInvoked,
)
from replan.state.knowledge import Source
from replan.state.outcomes import CUTS
from replan.state.questions import short_key
from replan.views.cells import answer_text, correction_text, counted, cut, one_line

_LONGEST_VALUE, _LONGEST = 60, 200


def call_begun_text(event: ModelInvoked | ToolInvoked) -> str:
    """What is done from the beginning of a call to its end."""
    if isinstance(event, ModelInvoked):
        return f"asks model {one_line(event.model)}"
    return f"calls {short_call_text(event.tool, event.arguments)}"


def call_text(tool: str, arguments: Mapping[str, JsonValue]) -> str:
    """A call of a tool as it would be written, such as `price(item="x")`."""
    pairs = ", ".join(f"{name}={json_text(value)}" for name, value in arguments.items())
    return one_line(f"{tool}({pairs})")


def short_call_text(tool: str, arguments: Mapping[str, JsonValue]) -> str:
    """A call of a tool with its arguments shortened, each of them and all together."""
    pairs = ", ".join(f"{name}={short_value(value)}" for name, value in arguments.items())
    return one_line(f"{tool}({cut(pairs, _LONGEST)})")


def failure_text(call: ToolCompleted) -> str:
    """Why a call of a tool failed, shortened; nothing of one that did not."""
    error = one_line(call.result.removeprefix("Error: "))
    return cut(error, _LONGEST) if call.status == "failed" else ""


def call_line(event: CallEvent) -> str:
    """The line of a call, for `--verbose`."""
    who = f"step {event.step_id} {event.specialist}" if event.step_id else event.node
    attempt = f" (attempt {event.attempt})" if event.attempt and event.attempt > 1 else ""
    return f"{one_line(who)}{attempt} {_event_text(event)}"


def _event_text(event: CallEvent) -> str:
    match event:
        case ModelInvoked() | ToolInvoked():
            return call_begun_text(event)
        case ModelCompleted(error=error) if error:
            return f"got no answer from {one_line(event.model)}: {one_line(error)}"
        case ModelCompleted():
            tokens = (event.input_tokens or 0) + (event.output_tokens or 0)
            used = f", {counted(tokens, 'token')}" if tokens else ""
            return f"is answered by {one_line(event.model)} ({event.seconds:.1f} s{used})"
        case ToolCompleted():
            result = f": {cut(one_line(event.result), _LONGEST)}" if event.result else ""
            return f"has called {one_line(event.tool)}, {event.status}{result}"
        case _:
            return ""


def short_value(value: object) -> str:
    """A value as JSON, shortened."""
    return cut(json_text(value), _LONGEST_VALUE)


Given = MemoryApplied | KnowledgeRetrieved
"""The events about what a step got of the conversation and of the team's knowledge."""

Context = Given | MemorySummary | FactRemembered | FactForgotten
"""These, and those about what is remembered for later."""

_NAMED = 3
NO_NEWS = "The plan goes on."
"""What a rule says about a round that needs no judgement."""


def who(event: events.WorkEvent | events.StepEvent) -> str:
    """The step and the specialist of an event; of the host, what it was doing."""
    name = one_line(event.specialist or getattr(event, "node", ""))
    return name if event.step_id is None else f"step {event.step_id} {name}"


def event_line(event: Event) -> str:  # noqa: C901, PLR0911 - one for each kind
    """What is said about an event; empty if nothing is."""
    match event:
        case events.FeedbackGenerated(text=text) if text and text != NO_NEWS:
            return f"judged: {one_line(text)}"
        case events.AnswerReceived():
            return answer_text(short_key(event.key), event.action, event.by, event.text)
        case events.RunCorrected():
            return correction_text(event.action, event.step_id, event.by, event.origin)
        case events.RunSteered():
            return steering_text(event)
        case events.StepsInvalidated():
            return f"runs again: {one_line(', '.join(map(str, event.reruns)))}"
        case events.EarlyStepDropped():
            return f"{who(event)} began before the plan, which does not have it: cancelled"
        case events.StepsRouted():
            chosen = (f"step {step} to {name}" for step, name in event.assignments.items())
            return f"given by the cards: {one_line(', '.join(chosen))}"
        case KnowledgeRetrieved() | FactRemembered() | FactForgotten():
            return context_text(event)
        case events.PhaseEntered():
            below = f" ({one_line(event.path)})" if event.path else ""
            return f"{who(event)} phase {one_line(event.phase)}{below}".strip()
        case events.LimitReached():
            return CUTS.get(event.limit) or _limit_text(event)
        case events.ReplyParseFailed():
            instead = f"Instead: {one_line(event.fallback)}"
            return f"unreadable reply of {event.node}: {one_line(event.problem)} {instead}"
        case _:
            return ""


def steering_text(event: events.RunSteered) -> str:
    """What somebody asks of a run at work, or what became of it."""
    by = one_line(event.by) or "a person"
    version = f"version {event.based_on} by " if event.based_on else ""
    what = f"the edit of {version}{by}" if event.kind == "edit" else f"the message of {by}"
    match event.status:
        case "waits" if event.waiting_for:
            steps = ", ".join(map(str, event.waiting_for))
            return f"{what} waits for {'step' if len(event.waiting_for) == 1 else 'steps'} {steps}"
        case "waits":
            return f"{what} is noticed"
        case "taken" if event.kind == "edit":
            return f"{what} makes version {event.version} of the plan"
        case "taken":
            return f"the host has heard {what}: {one_line(event.text)}"
        case _:
            at = f" at version {event.version} of the plan" if event.version else ""
            return f"{what} is refused{at}: {one_line(event.reason)}"


def _limit_text(event: events.LimitReached) -> str:
    whose = "" if event.scope == "run" else f" of {one_line(event.scope.replace('/', ' '))}"
    value = f"={event.value:g}" if event.value else ""
    return f"limit reached: {event.limit}{value}{whose}"


def context_text(event: Context) -> str:
    """What a model got of the conversation and of knowledge, or what is remembered for later."""
    match event:
        case MemorySummary(error=error):
            what = f"no summary was written: {one_line(error)}" if error else ""
            return what or f"a summary covers {counted(event.covered, 'message')}"
        case FactRemembered():
            return f"remembered: {one_line(event.text)}"
        case FactForgotten():
            return f"forgotten: {one_line(event.text)}"
        case MemoryApplied():
            text = _memory_text(event)
        case KnowledgeRetrieved():
            text = _knowledge_text(event)
    return f"{'host' if event.step_id is None else who(event)} {text}"


def lacking_lines(event: Event) -> Iterator[str]:
    """A sentence for each part of the knowledge that is not given."""
    if isinstance(event, KnowledgeRetrieved):
        yield from map(one_line, (*event.skipped, *event.unused, *event.failed))


def _memory_text(event: MemoryApplied) -> str:
    lacking = {"summarised": event.summarised, "left out": event.omitted, "cut": event.truncated}
    numbers = ", ".join(f"{number} {word}" for word, number in lacking.items())
    return f"sees {counted(event.visible, 'message')} of the conversation: {numbers}"


def _knowledge_text(event: KnowledgeRetrieved) -> str:
    if event.error:
        return f"is given no knowledge: {one_line(event.error)}"
    found = _places(event.sources) or "nothing found"
    parts = {"left out": event.skipped, "not used": event.unused, "failed": event.failed}
    lacking = [f"{len(value)} {word}" for word, value in parts.items() if value]
    return f"is given knowledge: {found}{'; ' if lacking else ''}{', '.join(lacking)}"


def _places(sources: Sequence[Source]) -> str:
    """The first sources of some, in one line."""
    names = [source.place for source in sources]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return one_line(", ".join(names[:_NAMED])) + more
