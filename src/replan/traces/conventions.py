"""How spans are named and what they say: OpenTelemetry's GenAI conventions, and `replan.*` else.

Unless content is asked for, nothing here is taken from prompts, replies, arguments, results, errors
or warnings.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from replan.base.texts.storable import LARGEST, storable_text
from replan.base.values import json_text
from replan.log.events import types as events

Attributes = dict[str, Any]

OPERATION = "gen_ai.operation.name"
AGENT = "gen_ai.agent.name"
MODEL = "gen_ai.request.model"
ERROR = "error.type"
RUN = "replan.run.id"
OUTCOME = "replan.outcome"
COST = "replan.cost"
STEP = "replan.step.id"
TOOL = "gen_ai.tool.name"

LONGEST_NAME = 120
LONGEST_TEXT = 20_000
"""Characters of a text that is content."""

# What LangChain calls some providers otherwise.
_PROVIDERS = {
    "amazon_bedrock": "aws.bedrock",
    "azure": "azure.ai.openai",
    "google_genai": "gcp.gemini",
    "google_vertexai": "gcp.vertex_ai",
    "mistral": "mistral_ai",
    "xai": "x_ai",
}
_ROLES = {"ai": "assistant", "human": "user"}
_ERROR = re.compile(r"(?:\w+\.)*\w{0,80}(?:Error|Exception|Timeout)(?=:|$|\s\()", re.ASCII)
_UNSEEN = re.compile(r"[\x00-\x20\x7f-\xa0\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff]+")


def one_line(text: str) -> str:
    """Return a name as a short text of one line; models and their tools are named by others."""
    line = _UNSEEN.sub(" ", storable_text(text)).strip()
    return line if len(line) <= LONGEST_NAME else f"{line[: LONGEST_NAME - 1]}…"


def number(value: int | None) -> int | None:
    """Return a number that an exporter can write."""
    return None if value is None else max(-LARGEST, min(value, LARGEST))


def without_empty(**values: Any) -> Attributes:
    """Return the attributes that have a value; their names are written with `__` for a dot."""
    pairs = values.items()
    return {name.replace("__", "."): value for name, value in pairs if value not in (None, "")}


def of_call(team: str, thread_id: str) -> Attributes:
    """What the span of a graph's call says from its beginning."""
    return {OPERATION: "invoke_workflow", AGENT: team} | without_empty(
        gen_ai__conversation__id=thread_id
    )


def of_step(event: events.StepEvent) -> Attributes:
    """What the span of a step says."""
    return {STEP: number(event.step_id), AGENT: one_line(event.specialist)}


def of_attempt(event: events.StepEvent) -> Attributes:
    """What the span of an attempt says."""
    attempt = number(event.attempt)
    return {OPERATION: "invoke_agent", **of_step(event), "replan.attempt": attempt}


def of_model(event: events.ModelInvoked) -> Attributes:
    """What the span and the metrics of a model's call say about the model."""
    provider = _PROVIDERS.get(event.provider, event.provider)
    return {
        OPERATION: "chat",
        MODEL: one_line(event.model),
        **without_empty(gen_ai__provider__name=one_line(provider)),
    }


def of_caller(event: events.CallEvent) -> Attributes:
    """Who makes a call."""
    return without_empty(replan__node=event.node, gen_ai__agent__name=one_line(event.specialist))


def of_reply(event: events.ModelCompleted) -> Attributes:
    """What the span of a model's call says once it is over."""
    return without_empty(
        gen_ai__usage__input_tokens=number(event.input_tokens),
        gen_ai__usage__output_tokens=number(event.output_tokens),
        replan__cost=event.cost,
    )


def of_tool(event: events.ToolEvent) -> Attributes:
    """What the span and the metrics of a tool's call say about the tool."""
    return {OPERATION: "execute_tool", TOOL: one_line(event.tool)}


def of_tool_call(event: events.ToolEvent) -> Attributes:
    """What the span of a tool's call says in addition to that."""
    return {
        "gen_ai.tool.type": "function",
        "replan.call": one_line(event.call),
        **without_empty(gen_ai__tool__call__id=one_line(event.tool_call_id)),
        "replan.tool.effects": event.effects,
        **without_empty(replan__tool__approval=event.approval),
    }


def input_messages(messages: Sequence[events.MessageText]) -> Attributes:
    """The messages to a model, as content."""
    return {"gen_ai.input.messages": _messages(messages)} if messages else {}


def output_messages(reply: events.MessageText | None) -> Attributes:
    """What a model says, as content."""
    return {"gen_ai.output.messages": _messages([reply])} if reply else {}


def arguments_of(event: events.ToolEvent) -> Attributes:
    """What a tool is called with, as content."""
    return {"gen_ai.tool.call.arguments": _cut(json_text(event.arguments))}


def result_of(event: events.ToolCompleted) -> Attributes:
    """What a tool gave, as content."""
    return without_empty(gen_ai__tool__call__result=_cut(event.result))


def error_type(text: str) -> str:
    """The class of a described error; texts of other kinds tell none."""
    found = _ERROR.match(text.removeprefix("Error: "))
    return found[0] if found else "_OTHER"


def error_text(text: str) -> str:
    """The text of an error, as content."""
    return _cut(text)


def span_event(event: events.BaseEvent, *, content: bool) -> Attributes | None:  # noqa: C901, PLR0911 - one each
    """The span event of an event that neither opens nor closes a span; None for others."""
    match event:
        case events.PlanUpdated(changes=changes) if not changes:
            return None
        case events.PlanEvent():
            return {"replan.plan.version": event.version, "replan.plan.steps": event.steps}
        case events.LimitReached():
            about = {"replan.limit": one_line(event.limit), "replan.limit.value": event.value}
            return {**about, "replan.limit.scope": one_line(event.scope)}
        case events.StepDeferred(waiting_for=steps):
            waiting = [number(step) for step in steps]
            return {STEP: number(event.step_id), "replan.waiting_for": waiting}
        case events.EarlyStepDropped() | events.InputRequested():
            return {STEP: number(event.step_id)}
        case events.ReplyParseFailed(node=node):
            return {"replan.node": node}
        case events.WarningReported(text=text):
            return {"replan.warning": error_text(text)} if content else {}
        case events.AnswerReceived():
            about = {"replan.action": event.action, "replan.kind": event.kind}
            return {**about, **without_empty(replan__by=one_line(event.by))}
        case events.ApprovalRequested() | events.StepsInvalidated() | events.StepsRouted():
            return {}
        case _:
            return None


def of_memory(event: events.MemoryApplied | events.MemorySummary) -> Attributes:
    """What is seen of a conversation, or what its summary covers now."""
    if isinstance(event, events.MemorySummary):
        return {"replan.memory.summarised": event.covered}
    names = ("mode", "visible", "summarised", "omitted", "truncated")
    return {f"replan.memory.{name}": getattr(event, name) for name in names}


def of_search(event: events.KnowledgeRetrieved) -> Attributes:
    """What the span of a search in the team's knowledge says."""
    names = ("sources", "skipped", "unused", "failed")
    return {
        OPERATION: "retrieval",
        **without_empty(replan__node=event.node, gen_ai__agent__name=one_line(event.specialist)),
        **without_empty(replan__step__id=number(event.step_id)),
        "replan.knowledge.mode": event.mode,
        **{f"replan.knowledge.{name}": len(getattr(event, name)) for name in names},
    }


def found_documents(event: events.KnowledgeRetrieved) -> Attributes:
    """What a search found, as content."""
    found = [{"id": _cut(source.place), "score": source.score} for source in event.sources]
    return {"gen_ai.retrieval.documents": json_text(found)} if found else {}


def of_fact(event: events.FactRemembered | events.FactForgotten, *, with_text: bool) -> Attributes:
    """Which fact was remembered or forgotten."""
    about: Attributes = {"replan.fact.id": event.fact_id}
    return {**about, "replan.fact.text": event.text} if with_text else about


def _messages(messages: Sequence[events.MessageText]) -> str:
    return json_text([_message(message) for message in messages])


def _message(message: events.MessageText) -> Mapping[str, Any]:
    kind, _, name = message.role.partition(" ")
    content = _cut(message.text)
    if kind == "tool":
        part: Mapping[str, Any] = {"type": "tool_call_response", "response": content}
        return {"role": "tool", "name": one_line(name), "parts": [part]}
    return {"role": _ROLES.get(kind, kind), "parts": [{"type": "text", "content": content}]}


def _cut(text: str) -> str:
    text = storable_text(text)
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}…"
