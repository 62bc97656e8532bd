"""A chat that calls tools until it has an answer: LangChain's agent, made safe to wait for."""
# LangChain leaves the type arguments of savers open, so `create_agent` reads as partly unknown.
# pyright: reportUnknownVariableType=false

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import AIMessage, BaseMessage, ToolCall, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool, Tool
from langgraph.errors import GraphBubbleUp
from langgraph.types import Command

from replan.errors import ConfigurationError, LimitReachedError
from replan.ports.chat import Chat, OnText, Toolset
from replan.ports.failures import describe
from replan.prompts.budget import within_budget
from replan.specialists.foreign import call

LONGEST_TOOL_RESULT = 50_000
"""Characters of one tool's result that the model gets to see."""

ToolAnswer = ToolMessage | Command[Any]


class ToolLoop(Chat):
    """Answers like a `Chat`, and lets the model call tools on the way."""

    def __init__(
        self, chat: Chat, toolset: Toolset, *, max_rounds: int, seconds: float | None = None
    ) -> None:
        """Put tools into a model's hands.

        Args:
            chat: The model.
            toolset: The tools.
            max_rounds: How often the model may call tools.
            seconds: How long one tool may take; none where somebody else watches the time.
        """
        super().__init__(chat.model)
        self.chat = chat
        self.max_rounds = max_rounds
        self.seconds = seconds
        self._toolset = toolset

    async def reply(
        self,
        messages: Sequence[BaseMessage],
        config: RunnableConfig,
        on_text: OnText | None = None,
        toolset: Toolset | None = None,
    ) -> AIMessage:
        """Ask the model until it calls no tool; `on_text` gets the pieces of the answer.

        Raises:
            ConfigurationError: The model called tools too often.
            Exception: Whatever the model's client raises.
        """
        toolset = toolset or self._toolset
        turns = _Turns(self, toolset, on_text, begun_with=len(messages))
        agent: Any = create_agent(self.model, toolset.tools, middleware=[turns])
        # A round is a step of the model and one of the tools; the answer and the end are two more.
        bound: RunnableConfig = {**config, "recursion_limit": 2 * self.max_rounds + 2}
        state = await agent.ainvoke({"messages": list(messages)}, bound)
        last: BaseMessage = state["messages"][-1]
        return last if isinstance(last, AIMessage) else AIMessage(last.text, id=last.id)


class _Turns(AgentMiddleware[Any, Any, Any]):
    """How one loop asks its model and calls its tools."""

    def __init__(
        self, loop: ToolLoop, toolset: Toolset, on_text: OnText | None, *, begun_with: int
    ) -> None:
        super().__init__()
        self.tools = []
        self._loop = loop
        self._toolset = toolset
        self._on_text = on_text
        self._begun_with = begun_with
        self._has_shown = False
        self._broken: dict[str, str] = {}

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """Ask the model as every other is asked: streamed, where its server can."""
        show = None if self._on_text is None else self._show
        # What is running here hands its callbacks, tags and metadata on by itself.
        message = await self._loop.chat.reply(request.messages, {}, show, self._toolset)
        message = self._with_whole_calls(message, len(request.messages))
        if message.tool_calls:
            self._check_rounds(request.messages[self._begun_with :])
            if self._has_shown:
                # It was no answer after all. The rest is held back, so that the one who shows it
                # sees at the end that the answer does not go on like this.
                self._on_text = None
        return ModelResponse(result=[message])

    async def awrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], Awaitable[ToolAnswer]],
    ) -> ToolAnswer:
        """Call a tool; whatever goes wrong is told to the model."""
        problem = self._broken.get(request.tool_call["id"] or "")
        if problem is not None:
            return _failure(request.tool_call, problem)
        try:
            async with asyncio.timeout(self._loop.seconds):
                answer = await handler(_abandonable(request))
        except (GraphBubbleUp, LimitReachedError):
            raise
        # A tool that asks the process to end has failed, no more.
        except (Exception, SystemExit) as error:  # noqa: BLE001 - foreign code
            return _failure(request.tool_call, describe(error))
        if isinstance(answer, ToolMessage) and isinstance(answer.content, str):
            answer.content = within_budget(answer.content, LONGEST_TOOL_RESULT)
        return answer

    def _check_rounds(self, messages: Sequence[BaseMessage]) -> None:
        rounds = sum(isinstance(message, AIMessage) for message in messages)
        if rounds >= self._loop.max_rounds:
            problem = "the model called tools so often and gave no answer"
            mend = "Look at what the tools tell it, or allow more."
            raise ConfigurationError("max_tool_rounds", rounds, problem, mend)

    def _show(self, text: str) -> None:
        if self._on_text is not None:
            self._has_shown = True
            self._on_text(text)

    def _with_whole_calls(self, message: AIMessage, turn: int) -> AIMessage:
        """Give every call an id of its own, and answer for those whose arguments are no JSON.

        A call without its answer would make every later request of this loop a bad one.
        """
        calls: list[ToolCall] = []
        for place, given in enumerate([*message.tool_calls, *message.invalid_tool_calls]):
            taken = {call["id"] for call in calls}
            id_ = given["id"] if given["id"] and given["id"] not in taken else f"{turn}-{place}"
            args = given["args"]
            if not isinstance(args, dict):
                self._broken[id_] = f"The arguments are no JSON: {args}"
                args = {}
            calls.append(ToolCall(name=given["name"] or "", args=args, id=id_, type="tool_call"))
        return message.model_copy(update={"tool_calls": calls, "invalid_tool_calls": []})


class _Abandonable:
    """A tool that is not async, called in a thread that can be given up."""

    def __init__(self, tool: BaseTool) -> None:
        self._tool = tool

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tool, name)

    async def ainvoke(self, input: Any, config: RunnableConfig, **_: Any) -> Any:  # noqa: A002 - LangChain's name
        return await call(self._tool.invoke, input, config)


def _abandonable(request: ToolCallRequest) -> ToolCallRequest:
    tool = request.tool
    if tool is None or getattr(tool, "coroutine", None) is not None:
        return request
    owner = next(kind for kind in type(tool).__mro__ if "_arun" in vars(kind))
    if owner not in (BaseTool, StructuredTool, Tool):
        return request
    return request.override(tool=cast("BaseTool", _Abandonable(tool)))


def _failure(called: ToolCall, problem: str) -> ToolMessage:
    return ToolMessage(
        f"Error: {problem}", tool_call_id=called["id"] or "", name=called["name"], status="error"
    )
