"""Reports calls of models and tools: of a node, an attempt of a step, or a graph of others."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphBubbleUp
from langgraph.types import Command

from replan.base.declared.part import Effects
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


_EFFECTS = ("pure", "keyed", "unsafe")


class ForeignTools(BaseCallbackHandler):
    """A handler that goes wherever the caller's config goes."""

    # Else LangChain makes a task or a thread of each call.
    run_inline = True
    ignore_llm = ignore_chat_model = ignore_chain = ignore_retriever = True  # type: ignore[assignment] - properties
    ignore_retry = ignore_custom_event = True  # type: ignore[assignment] - properties

    def __init__(self, calls: CallReporter, own: Callable[[], ToolOutcome | None]) -> None:
        # `own` gives the call of a tool that a loop of ours makes, and reports.
        self._calls = calls
        self._own = own
        self._on_way: dict[UUID, Mapping[str, Any]] = {}
        self._is_over = False

    def on_tool_start(
        self,
        serialized: dict[str, Any] | None,
        input_str: str,
        *,
        run_id: UUID,
        metadata: dict[str, Any] | None = None,
        inputs: dict[str, Any] | None = None,
        tool_call_id: str | None = None,
        **_: Any,
    ) -> None:
        """Report that a tool is called, unless one of our loops has reported it."""
        name = str((serialized or {}).get("name") or "tool")
        own = self._own()
        if self._is_over or (own is not None and own.claim(self._calls, name)):
            return
        declared = (metadata or {}).get("effects")
        effects = declared if declared in _EFFECTS else self._calls.effects
        arguments = {"input": input_str} if inputs is None else inputs
        about = tool_fields(str(run_id), name, arguments, effects, tool_call_id=tool_call_id)
        self._on_way[run_id] = about
        self._calls.tool_begins(about)

    def on_tool_end(self, output: Any, *, run_id: UUID, **_: Any) -> None:
        outcome = ToolOutcome()
        messages = _messages_in(output)
        if messages:
            outcome.answered(messages)
        else:
            outcome.ends("success", str(output))
        self._ends(run_id, outcome)

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        """Report why it gave nothing."""
        outcome = ToolOutcome()
        outcome.broke_off(error)
        self._ends(run_id, outcome)

    def close(self) -> None:
        """Report that what is still on its way was cut off."""
        self._is_over = True
        for call in list(self._on_way):
            self._ends(call, ToolOutcome())

    def _ends(self, call: UUID, outcome: ToolOutcome) -> None:
        about = self._on_way.pop(call, None)
        if about is not None:
            self._calls.tool_ends(about, outcome)


def _messages_in(output: object) -> list[BaseMessage]:
    if isinstance(output, Command):
        update = cast("Command[Any]", output).update
        output = cast("dict[str, Any]", update).get("messages") if isinstance(update, dict) else ()
    items = cast("list[object]", output) if isinstance(output, list) else [output]
    return [item for item in items if isinstance(item, BaseMessage)]
