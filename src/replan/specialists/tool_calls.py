"""Calls the tools of a loop: approved, recorded before and after, and never twice."""
# LangGraph leaves the type arguments of commands open.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import ToolCall, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langgraph.errors import GraphBubbleUp
from langgraph.types import Command
from pydantic import BaseModel, JsonValue, ValidationError

from replan.base.declared.mistakes import mistakes_in
from replan.base.declared.part import Effects
from replan.base.errors import InDoubtError, ToolCallLostError
from replan.base.failures import describe, is_fatal_for_run, told_of
from replan.base.langgraph_inside.langchain import called_by, runs_in_thread
from replan.base.user_code import call
from replan.base.values import restored
from replan.log.events.types import ToolDecision
from replan.log.transcript import ToolEnd, ToolRun, Transcript, plain
from replan.ports.ask_user import ask
from replan.ports.run_context import reported_tool_call
from replan.prompts.sections import within_budget
from replan.specialists.effects import KEY, takes_key, tool_effects
from replan.state.person.answers import ask_what_became_of, read_call_decision
from replan.state.questions import Decision

LONGEST_TOOL_RESULT = 50_000  # characters of one tool's result that the model sees
_LONGEST_DESCRIPTION = 300
LONGEST_OTHER_BLOCKS = 5_000_000  # characters of its blocks that are not text, such as pictures

Content = str | list[str | dict[str, Any]]
ToolAnswer = ToolMessage | Command[Any]
Handler = Callable[[ToolCallRequest], Awaitable[ToolAnswer]]


@dataclass(frozen=True)
class ToolCalls:
    record: Transcript  # the record of replies and calls, read and written here
    seconds: float | None  # how long one call may take
    effects: Effects  # the effects of tools that do not declare them
    approve: frozenset[str]  # the names of tools that a person must approve

    async def make(
        self, request: ToolCallRequest, call_number: str, handler: Handler
    ) -> ToolAnswer:
        """Call a tool, or return its recorded outcome; errors go to the model."""
        kept = await self.record.outcome(call_number)
        if kept is not None:
            return _answer_in(restored(ToolEnd, kept))
        answer = None
        while answer is None:
            settled = await self._settle_doubt(request, call_number)
            answer = settled or await self._call_tool(request, call_number, handler)
        await self.record.end(call_number, _record_of(answer))
        return answer

    async def _settle_doubt(self, request: ToolCallRequest, call_number: str) -> ToolAnswer | None:
        """Return the answer for a call that was cut off; None if the call can be made."""
        begun = await self.record.begun(call_number)
        if begun is None or begun.effects != "unsafe":
            return None
        what = f"The call of {begun.tool}"
        error = InDoubtError(what, begun.attempt)
        match self.record.on_doubt:
            case "fail":
                raise error
            case "tell":
                return answer_of_failure(request.tool_call, describe(error))
            case "ask":
                details = begun.model_dump(mode="json")
                verdict = ask_what_became_of(what, begun.attempt, details, ask)
        match verdict.action:
            case "run again":
                return None
            case "done":
                called, text = request.tool_call, verdict.text or "Done."
                return ToolMessage(text, tool_call_id=called["id"] or "", name=called["name"])
            case "fail":
                return answer_of_failure(request.tool_call, verdict.text or str(error))

    async def _call_tool(
        self, request: ToolCallRequest, call_number: str, handler: Handler
    ) -> ToolAnswer | None:
        """Call the tool; None if the call was cut off and its outcome is unknown."""
        called, remark = request.tool_call, ""
        approval: ToolDecision | None = None
        if called["name"] in self.approve:
            decision = _decision_about(request, call_number)
            approval = "approved"
            if decision.action == "reject":
                return self._reject(request, call_number, decision.reason or "no reason given")
            if decision.action == "edit":
                approval = "edited"
                called = ToolCall({**called, "args": decision.arguments or {}})
                remark = f"A person changed the arguments to {called['args']}.\n"
        effects = tool_effects(request.tool, self.effects)
        with reported_tool_call(call_number, called, effects, approval) as report:
            answer = await self._call_recorded(request, called, call_number, handler)
            if isinstance(answer, ToolMessage):
                answer.content = _cut_to_fit(answer.content, remark)
            if answer is not None:
                report.answered(_messages_of(answer))
        return answer

    def _reject(self, request: ToolCallRequest, call_number: str, reason: str) -> ToolMessage:
        called, effects = request.tool_call, tool_effects(request.tool, self.effects)
        answer = answer_of_failure(called, f"A person did not allow this call: {reason}")
        with reported_tool_call(call_number, called, effects, "rejected") as report:
            report.ends("rejected", answer.text)
        return answer

    async def _call_recorded(
        self, request: ToolCallRequest, called: ToolCall, call_number: str, handler: Handler
    ) -> ToolAnswer | None:
        tool, arguments = request.tool, plain(called["args"])
        run = ToolRun(
            tool=called["name"],
            arguments=arguments,
            effects=tool_effects(tool, self.effects),
            attempt=self.record.attempt,
        )
        own_request = _in_own_thread(request.override(tool_call=called))
        if tool is not None and takes_key(tool):
            key = self.record.key_of(call_number, called["name"], arguments)
            own_request = _with_key(own_request, own_request.tool or tool, key)
        await self.record.begin(call_number, run)
        clock = asyncio.timeout(self.seconds)
        try:
            async with clock:
                return await _answered(own_request, handler)
        except GraphBubbleUp:
            # It waits for a person, and will be called again.
            await self.record.forget(call_number)
            raise
        # A tool that asks the process to end has failed, no more.
        except (Exception, SystemExit) as error:
            if is_fatal_for_run(error):
                raise
            is_lost = clock.expired() or isinstance(error, ToolCallLostError)
            if is_lost and run.effects == "unsafe":
                return None
            return answer_of_failure(called, describe(error))


async def _answered(request: ToolCallRequest, handler: Handler) -> ToolAnswer:
    try:
        return await handler(request)
    except ExceptionGroup as errors:
        raise told_of(errors) from errors.__cause__


def _cut_to_fit(content: Content, remark: str) -> Content:
    """Keep the part of a result that the model sees; its blocks share the room."""
    if isinstance(content, str):
        return within_budget(remark + content, LONGEST_TOOL_RESULT)
    kept: list[str | dict[str, Any]] = [remark] if remark else []
    text_room, other_room = LONGEST_TOOL_RESULT, LONGEST_OTHER_BLOCKS
    for index, block in enumerate(content):
        text = block if isinstance(block, str) else block.get("text")
        if isinstance(text, str):
            cut = within_budget(text, max(0, text_room))
            kept.append(cut if isinstance(block, str) else {**block, "text": cut})
            text_room -= len(text)
        else:
            other_room -= len(json.dumps(block, default=str))
            kept.append(
                block if other_room >= 0 else f"[{_kind(block)} is too large, and left out]"
            )
        left = len(content) - index - 1
        if left and min(text_room, other_room) <= 0:
            return [*kept, f"[… {left} more parts of the result cut]"]
    return kept


def _kind(block: str | dict[str, Any]) -> str:
    return str(block.get("type", "a block"))[:40] if isinstance(block, dict) else "text"


def _decision_about(request: ToolCallRequest, call_number: str) -> Decision:
    """Ask a person about a call, again while the arguments that they give do not fit the tool."""
    refused = 0
    decision = read_call_decision(_ask_approval(request, call_number))
    # The run's bound on questions ends this.
    while problem := _problem_in(request.tool, decision):
        refused += 1
        decision = read_call_decision(_ask_approval(request, call_number, refused, problem))
    return decision


def _problem_in(tool: BaseTool | None, decision: Decision) -> str:
    """Why a tool would not take the arguments of an edit; empty if it would."""
    kind = _schema_of(tool) if decision.action == "edit" else None
    if kind is None:
        return ""
    try:
        kind.model_validate(decision.arguments or {})
    except ValidationError as error:
        return " ".join(mistake.text for mistake in mistakes_in(error, kind))
    return ""


def _schema_of(tool: BaseTool | None) -> type[BaseModel] | None:
    kind = None if tool is None else tool.tool_call_schema
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def _defaults(request: ToolCallRequest) -> dict[str, JsonValue]:
    """What the tool takes where its model gives nothing: that is called, too."""
    kind, arguments = _schema_of(request.tool), request.tool_call["args"]
    fields = {} if kind is None else kind.model_fields
    defaults = {
        name: field_info.default
        for name, field_info in fields.items()
        if not field_info.is_required()
    }
    return {
        name: plain(value)
        for name, value in defaults.items()
        if name not in arguments and _says_something(value)
    }


def _says_something(value: object) -> bool:
    is_plain = isinstance(value, str | int | float | list | tuple | dict)
    return is_plain and value not in ("", [], (), {})


def _description(tool: BaseTool | None) -> str:
    """What the tool does: the first line of its description."""
    lines = ("" if tool is None else tool.description).strip().splitlines()
    return lines[0][:_LONGEST_DESCRIPTION] if lines else ""


def _ask_approval(
    request: ToolCallRequest, call_number: str, refused: int = 0, problem: str = ""
) -> JsonValue:
    """Ask whether a tool may be called; so many edits of its arguments were refused before."""
    called = request.tool_call
    # With its place, since an equal call elsewhere is another call.
    details: dict[str, JsonValue] = {
        "tool": called["name"],
        "arguments": plain(called["args"]),
        "call": call_number,
    }
    more: dict[str, JsonValue] = {
        "defaults": _defaults(request),
        "description": _description(request.tool),
        "refused_edits": refused,
    }
    details |= {name: value for name, value in more.items() if value}
    remark = f" Its edited arguments were refused: {problem}" if problem else ""
    return ask(
        f"May the tool {called['name']} be called?{remark}", kind="approval", details=details
    )


def _record_of(answer: ToolAnswer) -> JsonValue:
    """The part of an answer that is recorded: the messages, which are all the model sees."""
    dumped = [
        message.model_dump(mode="json", exclude={"artifact"}, fallback=str)
        for message in _messages_of(answer)
    ]
    return {"messages": dumped, "is_command": isinstance(answer, Command)}


def _messages_of(answer: ToolAnswer) -> list[Any]:
    if isinstance(answer, Command):
        return cast("dict[str, list[Any]]", answer.update or {}).get("messages", [])
    return [answer]


def _answer_in(kept: ToolEnd) -> ToolAnswer:
    messages = list(kept.messages)
    is_command = kept.is_command or not messages
    return Command(update={"messages": messages}) if is_command else messages[0]


def _in_own_thread(request: ToolCallRequest) -> ToolCallRequest:
    """Let a tool that is not async be called in a thread that can be abandoned."""
    tool = request.tool
    if tool is None or not runs_in_thread(tool):
        return request
    return request.override(tool=called_by(tool, partial(call, tool.invoke)))


def _with_key(request: ToolCallRequest, tool: BaseTool, key: str) -> ToolCallRequest:
    """Pass a tool its idempotency key, which LangGraph would remove from a call."""

    async def keyed(called: Any, config: RunnableConfig) -> Any:
        return await tool.ainvoke({**called, "args": {**called["args"], KEY: key}}, config)

    return request.override(tool=called_by(tool, keyed))


def answer_of_failure(called: ToolCall, problem: str) -> ToolMessage:
    return ToolMessage(
        f"Error: {problem}", tool_call_id=called["id"] or "", name=called["name"], status="error"
    )
