"""Reports the calls of models and tools that a node of the host or an attempt of a step makes."""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphBubbleUp

from replan.base.declared.fields import Effects
from replan.base.failures import describe
from replan.base.langgraph_inside.tasks import inherited_config
from replan.base.texts.storable import storable, storable_text
from replan.base.values import json_text
from replan.log.events.emitter import Emitter
from replan.log.events.types import (
    BaseEvent,
    MessageText,
    ModelCompleted,
    ModelInvoked,
    ToolCompleted,
    ToolDecision,
    ToolInvoked,
    ToolStatus,
)
from replan.state.conversation.conversation import AskedAgain
from replan.state.usage import Tokens


@dataclass(frozen=True, kw_only=True)
class CallReporter:
    """The calls of one node of the host, or of one attempt of a step."""

    emitter: Emitter
    # The configuration of the node, which LangGraph's stream writer looks for; what calls a model
    # in its own thread has none.
    config: RunnableConfig
    about: Mapping[str, object]  # the fields of the events that say who calls
    effects: Effects = "unsafe"  # of tools that do not say it themselves
    _began: dict[str, float] = field(default_factory=dict[str, float], init=False)

    def called(
        self, call: str, model: str, messages: Sequence[BaseMessage], provider: str = ""
    ) -> None:
        if not self.emitter.hears_models:
            return
        self._began[call] = time.monotonic()
        prompt = tuple(map(message_as_text, messages)) if self.emitter.reports_texts else ()
        again = isinstance(messages[-1], AskedAgain) if messages else False
        about = {"model": model, "provider": provider, "is_reprompt": again}
        self._report(ModelInvoked, call=call, **about, prompt=prompt)

    def answered(
        self,
        call: str,
        model: str,
        came: Sequence[BaseMessage] | BaseException,
        reported: Tokens,
        cost: float | None,
    ) -> None:
        if not self.emitter.hears_models:
            return
        counted = reported if any(reported[:2]) else None
        failed = isinstance(came, BaseException)
        self._report(
            ModelCompleted,
            call=call,
            model=model,
            input_tokens=counted and counted.input_tokens,
            output_tokens=counted and counted.output_tokens,
            cached_tokens=reported.cached_tokens,
            cost=cost,
            seconds=self._seconds(call),
            error=describe(came) if failed else "",
            reply=message_as_text(came[0])
            if not failed and came and self.emitter.reports_texts
            else None,
        )

    def tool_begins(self, about: Mapping[str, Any]) -> None:
        """A tool is called, or a person did not allow it."""
        self._began[about["call"]] = time.monotonic()
        if about["approval"] != "rejected":
            self._report(ToolInvoked, **about)

    def tool_ends(self, about: Mapping[str, Any], outcome: "ToolOutcome") -> None:
        ended = {"status": outcome.status, "result": storable_text(outcome.result)}
        self._report(ToolCompleted, **about, **ended, seconds=self._seconds(about["call"]))

    def _seconds(self, call: str) -> float:
        now = time.monotonic()
        return round(now - self._began.pop(call, now), 6)

    def _report(self, kind: type[BaseEvent], **fields: Any) -> None:
        token = inherited_config.set(self.config)
        try:
            self.emitter.stream(kind, **self.about, **fields)
        finally:
            inherited_config.reset(token)


@dataclass
class ToolOutcome:
    """What is reported about a tool's call when it is over."""

    status: ToolStatus = "cancelled"  # how it ended; a call that was cut off says no word
    result: str = ""  # what the model gets
    # What reports it, and the tool, until LangChain reports the same call.
    awaited: tuple[CallReporter, str] | None = None

    def ends(self, status: ToolStatus, result: str = "") -> None:
        self.status, self.result = status, result

    def answered(self, messages: Sequence[BaseMessage]) -> None:
        """Record what the tool returned."""
        failed = any(getattr(message, "status", "") == "error" for message in messages)
        text = "\n".join(message_as_text(message).text for message in messages)
        self.ends("failed" if failed else "success", text)

    def broke_off(self, error: BaseException) -> None:
        if isinstance(error, GraphBubbleUp):
            self.ends("waiting")
        elif isinstance(error, Exception):
            self.ends("failed", describe(error))

    def claim(self, calls: CallReporter, tool: str) -> bool:
        """Whether LangChain reports this call for the first time; it counts as reported then."""
        if self.awaited is None or self.awaited[0] is not calls or self.awaited[1] != tool:
            return False
        self.awaited = None
        return True


def tool_fields(
    call: str,
    tool: str,
    arguments: Mapping[str, Any],
    effects: Effects,
    approval: ToolDecision | None = None,
    tool_call_id: str | None = None,
) -> Mapping[str, Any]:
    """The fields that both events of a tool's call have."""
    shown_arguments = storable(json.loads(json_text(arguments)))
    about = {"call": call, "tool": storable_text(tool), "arguments": shown_arguments}
    named = {"tool_call_id": storable_text(tool_call_id or "")}
    return {**about, **named, "effects": effects, "approval": approval}


def message_as_text(message: BaseMessage) -> MessageText:
    """Return a message as text: with the tools that it calls, and the kinds of what is not text."""
    parts = [message.text, *_other_content(message)]
    if isinstance(message, AIMessage):
        parts += [
            f"[calls {call['name']} {json_text(call['args'])}]" for call in message.tool_calls
        ]
        parts += [f"[calls {call['name']} {call['args']}]" for call in message.invalid_tool_calls]
    name = message.name if isinstance(message, ToolMessage) else None
    role = f"{message.type} {name}" if name else message.type
    return MessageText(role=role, text=storable_text("\n".join(part for part in parts if part)))


def _other_content(message: BaseMessage) -> list[str]:
    if isinstance(message.content, str):
        return []
    kinds = [block.get("type") for block in message.content if isinstance(block, dict)]
    return [f"[{kind}]" for kind in kinds if kind not in ("text", "tool_use", "function_call")]
