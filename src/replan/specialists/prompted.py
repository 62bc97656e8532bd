"""A specialist that answers messages: a chat model, a runnable, a graph, a function of messages."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import Runnable, RunnableConfig

from replan.base.errors import LimitReachedError
from replan.base.langgraph_inside.callbacks import StreamRequest, has_listener
from replan.base.langgraph_inside.graphs import is_graph
from replan.base.langgraph_inside.tasks import with_handlers
from replan.base.texts.storable import storable_text
from replan.base.user_code import call, call_in_pieces, joined
from replan.models.reply_end import ReplyEnd, end_of
from replan.ports.specialist_port import show_text
from replan.prompts.repeated import repeats_instructions
from replan.prompts.replies.shape import MisshapenError, Shape
from replan.prompts.sections import (
    in_order,
    request_text,
    summary_section,
    with_data,
    without_system,
)
from replan.prompts.step import StepPrompt
from replan.specialists.returned_values import (
    as_its_run_ended,
    message_of,
    messages_of,
    result_in,
    result_of,
    shaped_result,
    structured_in,
)
from replan.state.conversation.conversation import asked_again
from replan.state.results import ExecutionContext, SpecialistResult
from replan.state.team import SpecialistCard

SHORTER = "Write the whole result again, shorter, so that all of it fits."


@dataclass(frozen=True, kw_only=True)
class PromptedSpecialist:
    """Has its messages answered once for a step; if possible, again if the answer is cut."""

    card: SpecialistCard  # what the host sees of it
    # A chat model, one with tools, a runnable, a graph or a function of messages.
    answer: Callable[[list[BaseMessage], RunnableConfig], Awaitable[Any]]
    system_prompt: str = ""  # in place of the built-in prompt's first paragraph
    # Makes the messages, in place of the prompt.
    input_processor: Callable[..., Any] | None = None
    # Makes the result, in place of reading the front matter.
    output_processor: Callable[..., Any] | None = None
    # Whether a second answer repeats no effect of the first one.
    can_answer_again: bool = False
    shape: Shape | None = None  # the type of its results, or None
    graph: Any = None  # the graph that answers, which is drawn, or none
    _prompt: StepPrompt = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_prompt", StepPrompt.of(self.card, self.system_prompt))

    async def run(self, context: ExecutionContext, config: RunnableConfig) -> SpecialistResult:
        """Answer the messages of the step; the last returned message is the answer."""
        asked = ""
        if self.shape is not None:
            asked, context = self.shape.instruction, context.replace(expected_format="json")
        messages = await self._messages(context, asked, config)
        answer = await self.answer(messages, config)
        result = await self._read(answer, messages, asked, context, config)
        return as_its_run_ended(result, answer)

    async def _read(
        self,
        answer: object,
        messages: list[BaseMessage],
        asked: str,
        context: ExecutionContext,
        config: RunnableConfig,
    ) -> SpecialistResult:
        """The result in an answer, which is requested again if it cannot be used."""
        if self.shape is not None and (structured := structured_in(answer)) is not None:
            return shaped_result(structured, self.shape)
        message = message_of(answer)
        end = end_of(message)
        task = f"{context.task_description}\n{request_text(context.messages)}"
        if self.input_processor is None and repeats_instructions(message.text, messages, task):
            raise ValueError("the model repeated its instructions, and gave no result")
        is_cut = end.cut and self.can_answer_again
        if is_cut:
            message, end = await self._ask_shorter(messages, message, end, config)
        try:
            return await self._result(message, end, config)
        except MisshapenError as error:
            if is_cut or not self.can_answer_again:
                raise
            wish = f"Your result cannot be used: {error}. {asked}"
        message = await self._ask_again(messages, message, wish, config)
        return await self._result(message, end_of(message), config)

    async def _result(
        self, message: BaseMessage, end: ReplyEnd, config: RunnableConfig
    ) -> SpecialistResult:
        shape = self.shape
        if self.output_processor is not None:
            made = await call(self.output_processor, message, config)
            if shape is not None:
                return shaped_result(made, shape).replace(cut=end.cut)
            result = result_of(made).replace(cut=end.cut)
            return result.replace(result=result.result or _said_in(message))
        if shape is None:
            return result_in(message, end)
        try:
            # A value may look like the front matter that results have else.
            output = shape.read(message.text)
        except MisshapenError:
            return shaped_result(result_in(message, end), shape)
        return SpecialistResult(result=_said_in(message), output=output, cut=end.cut)

    async def _ask_shorter(
        self, messages: list[BaseMessage], first: BaseMessage, end: ReplyEnd, config: RunnableConfig
    ) -> tuple[BaseMessage, ReplyEnd]:
        """Request a shorter answer; if that fails, an incomplete answer is better than none."""
        wish = f"Your result is incomplete: {end.why}. {SHORTER}"
        try:
            second = await self._ask_again(messages, first, wish, config)
        except LimitReachedError:
            if first.text:
                return first, end
            raise
        return (second, end_of(second)) if second.text else (first, end)

    async def _ask_again(
        self, messages: list[BaseMessage], first: BaseMessage, wish: str, config: RunnableConfig
    ) -> BaseMessage:
        return message_of(await self.answer(asked_again(messages, first.text, wish), config))

    async def _messages(
        self, context: ExecutionContext, asked: str, config: RunnableConfig
    ) -> list[BaseMessage]:
        if self.input_processor is None:
            return self._prompt.messages(context, asked)
        made = messages_of(await call(self.input_processor, context, config))
        made = made or with_data(context.messages, summary_section(context.summary))
        return [*in_order([*made, HumanMessage(asked)] if asked else made)]


@dataclass(frozen=True)
class RunnableAnswer:
    """Passes the messages on; streaming is preferred, and pieces are shown as they come."""

    invokable: Any = None
    streamable: Any = None

    async def __call__(self, messages: list[BaseMessage], config: RunnableConfig) -> Any:
        if self.streamable is None:
            return await _run_whole(self.invokable, messages, config)
        if is_graph(self.streamable):
            # The pieces of a graph's stream are states.
            return await _run_whole(self.streamable, messages, config)
        if isinstance(cast("object", self.streamable), Runnable):
            pieces = self.streamable.astream(messages, config)
        else:
            pieces = call_in_pieces(self.streamable, messages, config)
        return await joined(pieces, partial(show_text, config=config))


async def _run_whole(invokable: Any, messages: list[BaseMessage], config: RunnableConfig) -> Any:
    """Run it on its input: a graph takes a state, everything else takes the messages."""
    if not isinstance(invokable, Runnable):
        return await call(invokable, messages, config)
    runnable = cast("Runnable[Any, Any]", invokable)
    if has_listener(config):
        # The models inside are asked for whole replies, whoever listens.
        config = with_handlers(config, [StreamRequest()])
    graph_input = {"messages": without_system(messages)} if is_graph(runnable) else messages
    return await runnable.ainvoke(graph_input, config)


def _said_in(message: BaseMessage) -> AIMessage:
    return AIMessage(storable_text(message.text), id=message.id)
