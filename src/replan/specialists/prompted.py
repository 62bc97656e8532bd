"""A specialist that answers messages: the prompt of its step, or what a processor makes of it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig

from replan.errors import LimitReachedError
from replan.models.reply_end import ReplyEnd, end_of
from replan.prompts.step import build_specialist_prompt
from replan.specialists.answers import (
    message_of,
    messages_of,
    result_in,
    result_of,
    with_message,
)
from replan.specialists.foreign import call
from replan.state.results import ExecutionContext, SpecialistResult
from replan.state.team import SpecialistCard

SHORTER = "Write the whole result again, shorter, so that all of it fits."


@dataclass(frozen=True, kw_only=True)
class PromptedSpecialist:
    """Has its messages answered once for a step; where it can, once more if the answer is cut off.

    Attributes:
        card: What the host sees of it.
        answer: A chat model, one with tools, a runnable, a graph or a function of messages.
        system_prompt: In the place of the built-in prompt's first paragraph.
        input_processor: Makes the messages, in the place of the prompt.
        output_processor: Makes the result, in the place of reading the front matter.
        can_answer_again: Whether a second answer does nothing that the first one did already.
    """

    card: SpecialistCard
    answer: Callable[[list[BaseMessage], RunnableConfig], Awaitable[Any]]
    system_prompt: str = ""
    input_processor: Callable[..., Any] | None = None
    output_processor: Callable[..., Any] | None = None
    can_answer_again: bool = False

    async def run(self, context: ExecutionContext, config: RunnableConfig) -> SpecialistResult:
        """Answer the messages of the step; the last message that comes back is the answer."""
        messages = await self._messages(context, config)
        message = message_of(await self.answer(messages, config))
        end = end_of(message)
        if end.cut and self.can_answer_again:
            message, end = await self._shorter(messages, message, end, config)
        if self.output_processor is None:
            return result_in(message, end)
        made = await call(self.output_processor, message, config)
        return with_message(result_of(made), message).replace(cut=end.cut)

    async def _shorter(
        self, messages: list[BaseMessage], first: BaseMessage, end: ReplyEnd, config: RunnableConfig
    ) -> tuple[BaseMessage, ReplyEnd]:
        """Ask once more, shorter; where that brings nothing, half an answer is better than none."""
        wish = HumanMessage(f"Your result is not whole: {end.why}. {SHORTER}")
        try:
            again = [*messages, AIMessage(first.text or "(empty)"), wish]
            second = message_of(await self.answer(again, config))
        except LimitReachedError:
            if first.text:
                return first, end
            raise
        return (second, end_of(second)) if second.text else (first, end)

    async def _messages(
        self, context: ExecutionContext, config: RunnableConfig
    ) -> list[BaseMessage]:
        if self.input_processor is None:
            return build_specialist_prompt(self.card, context, system_prompt=self.system_prompt)
        made = messages_of(await call(self.input_processor, context, config))
        return made or list(context.messages)
