"""Tells of the calls of models and tools that a node of the host or an attempt of a step makes."""

import json
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolCall, ToolMessage
from langchain_core.outputs import ChatGeneration, LLMResult
from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphBubbleUp

from replan.events.emitter import Emitter
from replan.events.types import (
    Approved,
    BaseEvent,
    ModelAnswered,
    ModelCalled,
    Said,
    ToolCompleted,
    ToolEnd,
    ToolInvoked,
    WarningGiven,
)
from replan.failures import describe
from replan.langgraph_inside.tasks import inherited_config
from replan.state.team import Effects
from replan.state.usage import TokenCount
from replan.texts.storable import storable, storable_text


@dataclass(frozen=True, kw_only=True)
class Calls:
    """The calls of one node of the host, or of one attempt of a step."""

    emitter: Emitter
    # The configuration of the node, which LangGraph's stream writer looks for; what calls a model
    # in a thread of its own has none.
    config: RunnableConfig
    about: Mapping[str, object]  # the fields of the events that say who calls
    _began: dict[str, float] = field(default_factory=dict[str, float], init=False)

    def called(self, call: str, model: str, messages: Sequence[BaseMessage]) -> None:
        """A model is called."""
        self._began[call] = time.monotonic()
        prompt = tuple(map(said, messages)) if self.emitter.keeps_prompts else ()
        self._tell(ModelCalled, call=call, model=model, prompt=prompt)

    def answered(
        self,
        call: str,
        model: str,
        came: LLMResult | BaseException,
        reported: TokenCount,
        cost: float | None,
    ) -> None:
        """A call of a model is over."""
        counted = reported if reported.total_tokens else None
        failed = isinstance(came, BaseException)
        self._tell(
            ModelAnswered,
            call=call,
            model=model,
            input_tokens=counted and counted.input_tokens,
            output_tokens=counted and counted.output_tokens,
            cost=cost,
            seconds=self._seconds(call),
            error=describe(came) if failed else "",
            reply=None if failed or not self.emitter.keeps_prompts else _reply_in(came),
        )

    @contextmanager
    def tool(self, about: Mapping[str, Any]) -> Generator["ToolTold"]:
        """Tell of a tool's call that is made inside, or that a person did not allow."""
        call, told = str(about["call"]), ToolTold()
        self._began[call] = time.monotonic()
        if about["approval"] != "rejected":
            self._tell(ToolInvoked, **about)
        try:
            yield told
        except GraphBubbleUp:
            told.ends("waiting")
            raise
        except Exception as error:
            told.ends("failed", describe(error))
            raise
        finally:
            result = storable_text(told.result)
            ended = {"status": told.status, "result": result, "seconds": self._seconds(call)}
            self._tell(ToolCompleted, **about, **ended)

    def _seconds(self, call: str) -> float:
        now = time.monotonic()
        return round(now - self._began.pop(call, now), 6)

    def _tell(self, kind: type[BaseEvent], **fields: Any) -> None:
        token = inherited_config.set(self.config)
        try:
            self.emitter.stream(kind, **self.about, **fields)
        finally:
            inherited_config.reset(token)


@dataclass
class ToolTold:
    """What is told of a tool's call when it is over."""

    status: ToolEnd = "cancelled"  # how it ended; a call that was cut off says no word
    result: str = ""  # what the model gets

    def ends(self, status: ToolEnd, result: str = "") -> None:
        """Say how it ended."""
        self.status, self.result = status, result

    def answered(self, messages: Sequence[BaseMessage]) -> None:
        """Say what the tool gave."""
        failed = any(getattr(each, "status", "") == "error" for each in messages)
        text = "\n".join(said(each).text for each in messages)
        self.ends("failed" if failed else "success", text)


def _nobody(_: str) -> None:
    """Outside of a run there is nobody to warn."""


warn_at_work: ContextVar[Callable[[str], None]] = ContextVar("replan_warn", default=_nobody)
"""Tells what a person may not expect of what is done here."""


def warner(emitter: Emitter, config: RunnableConfig) -> Callable[[str], None]:
    """Give what tells of warnings in the place of a node, whatever runs in it."""

    def warn(text: str) -> None:
        token = inherited_config.set(config)
        try:
            emitter.stream(WarningGiven, text=text)
        finally:
            inherited_config.reset(token)

    return warn


calls_at_work: ContextVar[Calls | None] = ContextVar("replan_calls", default=None)
"""Who tells of the tools that are called here; None where nobody hears."""


@contextmanager
def telling_of(
    call: str, called: ToolCall, effects: Effects, approval: Approved | None
) -> Generator[ToolTold]:
    """Tell of a tool's call that is made inside, where somebody hears."""
    calls = calls_at_work.get()
    if calls is None:
        yield ToolTold()
        return
    arguments = json.loads(_json(called["args"]))
    about = {"call": call, "tool": storable_text(called["name"]), "arguments": storable(arguments)}
    with calls.tool({**about, "effects": effects, "approval": approval}) as told:
        yield told


def said(message: BaseMessage) -> Said:
    """Give a message as text: with the tools that it calls, and the kinds of what is no text."""
    parts = [message.text, *_others_in(message)]
    if isinstance(message, AIMessage):
        parts += [f"[calls {each['name']} {_json(each['args'])}]" for each in message.tool_calls]
        parts += [f"[calls {each['name']} {each['args']}]" for each in message.invalid_tool_calls]
    name = message.name if isinstance(message, ToolMessage) else None
    role = f"{message.type} {name}" if name else message.type
    return Said(role=role, text=storable_text("\n".join(part for part in parts if part)))


def _others_in(message: BaseMessage) -> list[str]:
    if isinstance(message.content, str):
        return []
    kinds = [each.get("type") for each in message.content if isinstance(each, dict)]
    return [f"[{kind}]" for kind in kinds if kind not in ("text", "tool_use", "function_call")]


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _reply_in(came: LLMResult) -> Said | None:
    """The first reply, as text."""
    found = [one for generations in came.generations for one in generations[:1]]
    if not found:
        return None
    first = found[0]
    if isinstance(first, ChatGeneration):
        return said(first.message)
    return Said(role="ai", text=storable_text(first.text))
