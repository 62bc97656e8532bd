"""A chat that calls tools until it has an answer: LangChain's agent, with records."""
# LangChain leaves the type arguments of savers open, so `create_agent` reads as partly unknown.
# pyright: reportUnknownVariableType=false

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import AIMessage, BaseMessage, ToolCall
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool

from replan.base.declared.part import Effects
from replan.base.errors import ConfigurationError
from replan.models.chat import Chat
from replan.models.streams import OnText, Toolset
from replan.models.text_calls import with_written_calls
from replan.ports.run_context import here
from replan.specialists.granted_tools import GrantedTools
from replan.specialists.put_away import PutAway
from replan.specialists.tool_calls import ToolAnswer, ToolCalls, answer_of_failure


class ToolLoop(Chat):
    """Answers like a `Chat`, and lets the model call tools before."""

    def __init__(  # noqa: PLR0913 - what a loop can be told
        self,
        chat: Chat,
        toolset: Toolset,
        *,
        max_rounds: int,
        seconds: float | None = None,
        effects: Effects = "unsafe",
        approve: frozenset[str] = frozenset(),
        granted: GrantedTools | None = None,
    ) -> None:
        """Give tools to a model."""
        super().__init__(chat.model)
        self.chat = chat
        self.max_rounds = max_rounds
        self.turns = 2 * max_rounds + 1
        self.seconds = seconds
        self.effects: Effects = effects
        self.approve = approve
        self._granted = granted
        self._toolset = toolset

    async def reply(
        self,
        messages: Sequence[BaseMessage],
        config: RunnableConfig,
        on_text: OnText | None = None,
        toolset: Toolset | None = None,
    ) -> AIMessage:
        """Ask the model until it calls no tool; `on_text` gets the pieces of the answer."""
        # What is already on record is neither asked nor done again.
        toolset, approve = await self._with_granted(toolset or self._toolset)
        turns = _Turns(self, toolset, on_text, approve=approve, begun_with=len(messages))
        agent: Any = create_agent(self.model, turns.all_tools, middleware=[turns])
        # A round is a step of the model and one of the tools; the answer and the end are two more.
        bound: RunnableConfig = {**config, "recursion_limit": 2 * self.max_rounds + 2}
        state = await agent.ainvoke({"messages": list(messages)}, bound)
        last: BaseMessage = state["messages"][-1]
        return last if isinstance(last, AIMessage) else AIMessage(last.text, id=last.id)

    async def _with_granted(self, toolset: Toolset) -> tuple[Toolset, frozenset[str]]:
        """Add the granted tools that the servers have now."""
        if self._granted is None or not self._granted.grants:
            return toolset, self.approve
        tools, approve = await self._granted.now()
        own_names = {tool.name for tool in toolset.tools if isinstance(tool, BaseTool)}
        for name in (tool.name for tool in tools if tool.name in own_names):
            problem = "a tool of a tool server has the same name"
            raise ConfigurationError("tools", name, problem, "Rename the other tool.")
        return replace(toolset, tools=[*toolset.tools, *tools]), self.approve | approve


_MOST_REFUSED = 3  # replies in a row of which no call could be made


class _Turns(AgentMiddleware[Any, Any, Any]):
    """How one loop asks its model and calls its tools."""

    def __init__(
        self,
        loop: ToolLoop,
        toolset: Toolset,
        on_text: OnText | None,
        *,
        approve: frozenset[str],
        begun_with: int,
    ) -> None:
        super().__init__()
        self.tools = []
        self._loop = loop
        self._toolset = toolset
        self._on_text = on_text
        self._begun_with = begun_with
        self._has_shown = False
        self._broken: dict[str, str] = {}
        self._seen: set[int] = set()
        self._called: set[int] = set()  # the replies of which a tool was called
        self._away = PutAway(loop.model, toolset.tools)
        self._record = here().transcript
        self._calls = ToolCalls(
            self._record, seconds=loop.seconds, effects=loop.effects, approve=approve
        )

    @property
    def all_tools(self) -> list[Any]:
        """The tools, and the one that reads results back."""
        reads = [] if self._away.window is None else [self._away.tool]
        return [*self._toolset.tools, *reads]

    @property
    def _offered(self) -> Toolset:
        """What the model may call: what reads results back, once there is something to read."""
        is_own = self._away.is_empty
        return self._toolset if is_own else replace(self._toolset, tools=self.all_tools)

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """Return the recorded reply, else ask the model and record a reply that calls tools."""
        number = _replies_in(request.messages[self._begun_with :])
        message = await self._recorded_reply(number)
        if message is None:
            show = None if self._on_text is None else self._show
            # The running agent passes on its callbacks, tags and metadata.
            sent = self._away.with_references(request.messages)
            message = await self._loop.chat.reply(sent, {}, show, self._offered)
            message = with_written_calls(message, self._tool_names)
            if message.tool_calls or message.invalid_tool_calls:
                self._check_rounds(number)
                self._check_refusals(number, message)
                # Before its tools run: a repetition must make the same calls.
                # Its id may be a random one, and nobody asks for it later.
                noted = message.model_dump(mode="json", fallback=str, exclude={"id"})
                await self._record.note_reply(number, noted)
                if self._has_shown:
                    # It was not the answer after all. The rest is held back, so that whoever shows
                    # it sees at the end that the answer does not continue like this.
                    self._on_text = None
        return ModelResponse(result=[self._with_whole_calls(message, number)])

    async def awrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], Awaitable[ToolAnswer]],
    ) -> ToolAnswer:
        """Call a tool; any error goes to the model."""
        number, index = self._call_position(request)
        if number not in self._seen and (message := await self._recorded_reply(number)) is not None:
            # The agent continued behind the model's reply, so it was not looked at here.
            self._with_whole_calls(message, number)
        problem = self._broken.get(request.tool_call["id"] or "")
        if problem is not None:
            return answer_of_failure(request.tool_call, problem)
        if request.tool is not None:
            self._called.add(number)
        return await self._calls.make(request, f"{number}.{index}", handler)

    def _call_position(self, request: ToolCallRequest) -> tuple[int, int]:
        """Return the index of the reply that has a call, and the index of the call in it."""
        messages: list[BaseMessage] = request.state["messages"][self._begun_with :]
        id_ = request.tool_call["id"]
        message_index, call_ids = max(
            (index, [call["id"] for call in message.tool_calls])
            for index, message in enumerate(messages)
            if isinstance(message, AIMessage) and id_ in {call["id"] for call in message.tool_calls}
        )
        return _replies_in(messages[:message_index]), call_ids.index(id_)

    async def _recorded_reply(self, number: int) -> AIMessage | None:
        recorded = await self._record.reply(number)
        return None if recorded is None else AIMessage.model_validate(recorded)

    def _check_rounds(self, rounds: int) -> None:
        if rounds >= self._loop.max_rounds:
            problem = "the model called tools this often and gave no answer"
            fix = "Check what the tools return, or raise max_tool_rounds."
            raise ConfigurationError("max_tool_rounds", rounds, problem, fix)

    def _check_refusals(self, number: int, message: AIMessage) -> None:
        """End a loop in which the model calls nothing but what there is not."""
        before = range(number - _MOST_REFUSED, number)
        if before.start < 0 or not set(before) <= self._seen or self._called & set(before):
            return
        names = sorted({call["name"] or "" for call in message.tool_calls})
        problem = (
            f"in {_MOST_REFUSED} replies in a row, the model called only tools that there are not, "
            "or with arguments that are not JSON"
        )
        fix = "Set the tool parser of its server, or take a model that can call tools."
        raise ConfigurationError("tools", ", ".join(names), problem, fix)

    @property
    def _tool_names(self) -> list[str]:
        return [tool.name for tool in self._offered.tools if isinstance(tool, BaseTool)]

    def _show(self, text: str) -> None:
        if self._on_text is not None:
            self._has_shown = True
            self._on_text(text)

    def _with_whole_calls(self, message: AIMessage, number: int) -> AIMessage:
        """Give every call its own id, and answer calls whose arguments are not JSON."""
        # A call without its answer would make every later request of this loop a bad one.
        self._seen.add(number)
        calls: list[ToolCall] = []
        for place, broken_call in enumerate([*message.tool_calls, *message.invalid_tool_calls]):
            ids = {call["id"] for call in calls}
            call_id = (
                broken_call["id"]
                if broken_call["id"] and broken_call["id"] not in ids
                else f"{number}-{place}"
            )
            args = broken_call["args"]
            if not isinstance(args, dict):
                self._broken[call_id] = f"The arguments are not JSON: {args}"
                args = {}
            calls.append(
                ToolCall(name=broken_call["name"] or "", args=args, id=call_id, type="tool_call")
            )
        return message.model_copy(update={"tool_calls": calls, "invalid_tool_calls": []})


def _replies_in(messages: Sequence[BaseMessage]) -> int:
    return sum(isinstance(message, AIMessage) for message in messages)
