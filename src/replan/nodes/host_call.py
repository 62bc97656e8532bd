"""How a node of the host asks a model: counted, hidden from the stream, retried if it can pass."""

from dataclasses import dataclass

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import merge_configs
from langgraph.errors import GraphBubbleUp
from langgraph.runtime import Runtime
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt
from tenacity.wait import wait_exponential_jitter

from replan.errors import LimitReachedError, ModelCallError
from replan.events.emitter import Counter, Emitter
from replan.nodes.answer_stream import AnswerStream
from replan.nodes.meter import KEPT_FOR_ANSWER, Meter
from replan.ports.chat import Chat
from replan.ports.failures import can_pass, describe
from replan.ports.services import Services
from replan.prompts.sections import Node
from replan.state.enhanced import EnhancedState, settings_of
from replan.state.limits import RunSettings
from replan.state.usage import Usage

HOST_TRIES = 3
"""Tries of one call of the host, beside those that the model's client makes itself."""


@dataclass
class HostCall:
    """What one node of the host needs to ask a model and to tell of it."""

    node: Node
    services: Services
    emitter: Emitter
    config: RunnableConfig
    meter: Meter

    async def ask(
        self, chat: Chat, messages: list[BaseMessage], answer: AnswerStream | None = None
    ) -> str:
        """Give the text of the model's reply, shown through `answer` as it comes.

        Raises:
            ModelCallError: The model could not be reached or refused the call.
            LimitReachedError: The run has no model call left.
        """
        config = merge_configs(self.config, {"callbacks": [self.meter], "tags": ["nostream"]})

        def restart(_: RetryCallState) -> None:
            if answer is not None:
                answer.restart()

        retrying = AsyncRetrying(
            retry=retry_if_exception(can_pass),
            stop=stop_after_attempt(HOST_TRIES),
            wait=wait_exponential_jitter(
                multiplier=self.services.retry_wait, jitter=self.services.retry_wait, max=30
            ),
            before_sleep=restart,
            reraise=True,
        )
        try:
            message: AIMessage = await retrying(
                chat.reply, messages, config, answer and answer.feed
            )
        except (GraphBubbleUp, LimitReachedError):
            raise
        except Exception as error:
            raise ModelCallError(self.node, describe(error)) from error
        return message.text

    async def ask_again(
        self,
        chat: Chat,
        messages: list[BaseMessage],
        reply: str,
        complaint: str,
        answer: AnswerStream | None = None,
    ) -> str:
        """Show the model its reply and what is wrong with it, and give its second reply."""
        if answer is not None:
            answer.restart()
        return await self.ask(
            chat, [*messages, AIMessage(reply or "(empty)"), HumanMessage(complaint)], answer
        )

    def usage(self, state: EnhancedState) -> Usage:
        """The run's usage with this node's part."""
        return state.get("usage", Usage()).plus((self.node, self.meter.count))


def host_call(
    node: Node,
    state: EnhancedState,
    *,
    services: Services,
    runtime: Runtime[RunSettings],
    config: RunnableConfig,
    closing: bool,
) -> HostCall:
    """Prepare a call; one that is not `closing` leaves the last call to one that is."""
    limit = settings_of(state).limits.max_model_calls
    run_id = state.get("run_id", "")
    return HostCall(
        node=node,
        services=services,
        emitter=emitter_of(state, services, runtime),
        config=config,
        meter=Meter(services.journal, run_id, limit, kept=0 if closing else KEPT_FOR_ANSWER),
    )


def emitter_of(state: EnhancedState, services: Services, runtime: Runtime[RunSettings]) -> Emitter:
    """Tell of events from where the run's numbers stand."""
    return Emitter(
        write=runtime.stream_writer,
        callbacks=services.callbacks,
        run_id=state.get("run_id", ""),
        round=state.get("current_round", 0),
        counter=Counter(state.get("event_seq", 0)),
    )
