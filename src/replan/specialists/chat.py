"""A specialist that is a chat model with a prompt."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import RunnableConfig

from replan.ports.chat import Chat
from replan.prompts.specialist import build_specialist_prompt
from replan.replies.readings import read_specialist
from replan.specialists.foreign import with_message
from replan.state.results import ExecutionContext, SpecialistResult
from replan.state.team import SpecialistCard


@dataclass(frozen=True)
class ChatSpecialist:
    """Asks its model once for a step."""

    card: SpecialistCard
    chat: Chat
    system_prompt: str = ""
    input_processor: Callable[[ExecutionContext], Sequence[BaseMessage]] | None = None
    output_processor: Callable[[BaseMessage], SpecialistResult] | None = None

    async def run(self, context: ExecutionContext, config: RunnableConfig) -> SpecialistResult:
        """Ask the model, and read the front matter of its reply if it has one.

        Raises:
            ValueError: The reply is empty.
        """
        if self.input_processor is not None:
            messages = list(self.input_processor(context))
        else:
            messages = build_specialist_prompt(self.card, context, system_prompt=self.system_prompt)
        message = await self.chat.reply(messages, config)
        if self.output_processor is not None:
            return with_message(self.output_processor(message), message)
        reading = read_specialist(message.text)
        if not message.text.strip():
            raise ValueError("the model gave an empty reply")
        return SpecialistResult(
            # The id of what was streamed, so that LangGraph does not show it twice.
            result=AIMessage(reading.body, id=message.id),
            status=reading.status,
            confidence=reading.confidence,
            replan_needed=reading.replan_needed,
            retry=reading.retry,
        )
