"""A call of a host's model: counted, hidden from the stream, retried if that can help."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar, cast

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime
from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt

from replan.errors import LimitReachedError, ModelCallError
from replan.events.calls import Calls, calls_at_work, emitter_at_work
from replan.events.emitter import Emitter
from replan.events.types import LimitReached, ReplyUnreadable
from replan.failures import can_pass, describe, ends_whole_work
from replan.host.answer_stream import AnswerStream
from replan.langgraph_inside.callbacks import has_listener
from replan.langgraph_inside.tasks import stream_is_heard, with_handlers
from replan.memory.conversation import asked_again
from replan.memory.summary import is_due
from replan.models.chat import Chat
from replan.models.reply_end import WHOLE, ReplyEnd, end_of
from replan.models.retries import error_raised, pause_if_busy, retried
from replan.plan.preview import HOST_TRIES
from replan.prompts.host import LEAST_RESULT, RESULTS_BUDGET
from replan.prompts.sections import Caller, within_budget
from replan.replies.unreadable import Complaint
from replan.services import Services
from replan.spending.account import Account
from replan.spending.deadline import in_time
from replan.spending.meter import Meter
from replan.spending.scopes import Scope, run_scope
from replan.state.enhanced import EnhancedState, settings_of
from replan.state.limits import RunSettings
from replan.state.results import UnreadableReply
from replan.state.usage import CUT_OFF, TokenCount, Usage

R = TypeVar("R")

logger = logging.getLogger(__name__)

_LIMITS_OF_LENGTH = ("max_tokens", "max_cost")
_ANSWERING = ("think", "direct_answer", "final_answer")


@dataclass
class HostCall:
    """What one node of the host needs to call a model and to report events."""

    node: Caller
    services: Services  # the live things
    emitter: Emitter  # reports events
    runtime: Runtime[RunSettings]  # LangGraph's, of the node
    config: RunnableConfig  # the caller's configuration, for callbacks, tags and metadata
    seconds: float  # how long one turn of an attempt may take
    run_id: str
    scope: Scope  # the run, and what of it is kept back for others
    reports_calls: bool = True  # whether each call is reported
    used: TokenCount = field(default_factory=TokenCount)  # what the calls so far used
    # The replies that could not be used.
    unreadable: list[UnreadableReply] = field(default_factory=list[UnreadableReply])
    # The limit that kept the newest call from being made, or none.
    refused: LimitReachedError | None = None
    end: ReplyEnd = WHOLE  # how the newest reply ended

    async def ask(
        self, chat: Chat, messages: list[BaseMessage], answer: AnswerStream | None = None
    ) -> str:
        """Return the text of the model's reply, shown through `answer` as it comes.

        Raises:
            ModelCallError: The model could not be reached or refused the call.
            LimitReachedError: The run has no call, no token, no money or no time left.
        """
        self.refused = None
        meter = self.meter()
        try:
            async with meter:
                reply = partial(self._replied, chat, messages, answer, meter)
                message = await in_time(reply, meter)
        except LimitReachedError as error:
            self.refused = error
            raise
        except Exception as error:
            if ends_whole_work(error):
                raise
            raise self._failed(error) from error
        finally:
            self.used += meter.count
        self.end = end_of(message)
        return message.text

    async def _replied(
        self, chat: Chat, messages: list[BaseMessage], answer: AnswerStream | None, meter: Meter
    ) -> AIMessage:
        """Ask the model, and ask again after a transient failure."""
        config = with_handlers(self.config, meter.handlers, tags=["nostream"])
        is_heard = stream_is_heard(self.emitter.write, config) or has_listener(config)
        is_heard = is_heard or self.emitter.hooks.hears_tokens
        on_text = answer.feed if answer is not None and is_heard else None

        async def reply() -> AIMessage:
            # A model that never answers, or never stops, must not hold the run forever.
            seconds = self.seconds * chat.turns
            return await in_time(lambda: chat.reply(messages, config, on_text), meter, seconds)

        try:
            return await reply()
        except Exception as error:  # noqa: BLE001 - tenacity raises it if it is the last one
            failed = error
        retrying = AsyncRetrying(
            # The model's own tries count, too: there is one set of them.
            retry=retry_if_exception(
                lambda error: can_pass(error) and meter.count.calls < HOST_TRIES
            ),
            stop=stop_after_attempt(HOST_TRIES),
            wait=pause_if_busy(error_raised, first=self.services.retry_wait, longest=30),
            before_sleep=lambda _: answer.restart() if answer is not None else None,
            reraise=True,
        )
        return await retried(reply, retrying, failed)

    async def ask_in_room(
        self,
        chat: Chat,
        prompt_of: Callable[[int], list[BaseMessage]],
        answer: AnswerStream | None = None,
    ) -> tuple[str, int]:
        """Ask, with a shorter prompt if the limits require it; return the length that was used."""
        budget, refusals = RESULTS_BUDGET, list[LimitReachedError]()
        while True:
            try:
                reply = await self.ask(chat, prompt_of(budget), answer)
            except LimitReachedError as error:
                # A refused call costs nothing, and a shorter one may have room.
                if error.limit not in _LIMITS_OF_LENGTH or budget < LEAST_RESULT:
                    raise
                refusals.append(error)
            else:
                # A limit of an outer run may have refused it.
                for each in refusals:
                    each.is_overcome = True
                return reply, budget
            budget //= 2

    async def ask_again(
        self,
        chat: Chat,
        messages: list[BaseMessage],
        reply: str,
        complaint: str,
        answer: AnswerStream | None = None,
    ) -> str:
        """Show the model its reply and what is wrong with it, and return its second reply."""
        if answer is not None:
            answer.restart()
        shown = within_budget(reply, RESULTS_BUDGET)
        return await self.ask(chat, asked_again(messages, shown, complaint), answer)

    async def ask_readable(
        self,
        chat: Chat,
        messages: list[BaseMessage],
        read: Callable[[str], R | Complaint[R]],
        answer: AnswerStream | None,
        *,
        fallback: str,
    ) -> R | None:
        """Return the reading of a reply, or of a second one; None if `fallback` is needed."""
        text = await self.ask(chat, messages, answer)
        reading = read(text)
        if not isinstance(reading, Complaint):
            return reading
        complaint = cast("Complaint[R]", reading)
        try:
            reading = read(await self.ask_again(chat, messages, text, complaint.problem, answer))
            if not isinstance(reading, Complaint):
                return reading
            complaint = cast("Complaint[R]", reading)
        except (ModelCallError, LimitReachedError):
            # The first reply is worse than a second one, and better than none.
            if complaint.reading is None:
                raise
        done = fallback if complaint.reading is None else complaint.done
        await self.report_unreadable(complaint.wrong, done)
        return complaint.reading

    async def report_unreadable(self, complaint: str, fallback: str) -> None:
        """Report a reply that cannot be used; the state keeps it, too."""
        record = UnreadableReply(node=self.node, complaint=complaint, fallback=fallback)
        self.unreadable.append(record)
        await self.emitter.emit(ReplyUnreadable, **dict(record))

    async def report_limit(self, limit: str, value: float, why: str = "") -> None:
        await self.emitter.emit(LimitReached, limit=limit, value=value, why=why)

    async def report_cut(self) -> str:
        """Report that the newest answer is incomplete; return why, or an empty text."""
        if self.end.cut:
            await self.report_limit(self.end.cut, self.end.tokens)
        return self.end.cut

    async def close(self, state: EnhancedState, answer: AIMessage) -> None:
        """Release what only a run that continues needs; a summary may still be written."""
        said: EnhancedState = {**state, "messages": [*state.get("messages", []), answer]}
        if not is_due(said, self.services.prompts.memory_in(state)):
            await self.release()

    async def release(self) -> None:
        """Release what only a run that continues needs."""
        await self.services.journal.closed(self.run_id)
        await self.services.threads.closed(self.run_id)
        self.services.accounts.close(self.run_id)

    async def update(self, state: EnhancedState) -> EnhancedState:
        """What the calls of this node add to the state."""
        return {
            "unreadable_replies": self.unreadable,
            "usage": await self.usage(state),
            "warnings": self.emitter.warnings,
        }

    async def usage(self, state: EnhancedState) -> Usage:
        """The run's usage with this node's share, and the possible cost of calls cut off."""
        used = state.get("usage", Usage()).plus((self.node, self.used))
        # Nothing else is on its way while a node of the host is at work.
        charged = await self._account.charged()
        calls, cost = charged.calls - used.calls, max(0.0, charged.cost - used.known_cost)
        if calls <= 0:
            return used
        # The journal does not say which of them have a price.
        is_known = cost > 0 and not (used.unpriced_calls or self.services.unpriced)
        lost = TokenCount(calls=calls, known_cost=cost, unpriced_calls=0 if is_known else calls)
        return used.plus((CUT_OFF, lost))

    def meter(self) -> Meter:
        """Make what counts, charges and reports the next call."""
        calls, services = None, self.services
        if self.reports_calls and self.emitter.is_heard:
            about = {"node": self.node}
            calls = Calls(emitter=self.emitter, config=self.config, about=about)
        # Those of its tools are reported, too. Each node is a task, and its context ends with it.
        calls_at_work.set(calls)
        emitter_at_work.set((self.emitter, self.config))
        return Meter(
            self._account,
            [self.scope],
            new_id=services.new_id,
            prices=services.prices,
            calls=calls,
        )

    def _failed(self, error: Exception) -> ModelCallError:
        about = {"run_id": self.run_id, "node": self.node, "error": type(error).__name__}
        logger.warning("model call failed", extra=about)
        return ModelCallError(self.node, describe(error))

    @property
    def _account(self) -> Account:
        return self.services.accounts.of(self.services.journal, self.run_id)


def host_call(
    node: Caller,
    state: EnhancedState,
    services: Services,
    runtime: Runtime[RunSettings],
    config: RunnableConfig,
) -> HostCall:
    """Prepare the calls of a node; only one that can answer may use the closing reserve."""
    limits = settings_of(state).limits
    can_answer = services.prompts.merged_final_answer if node == "feedback" else node in _ANSWERING
    return HostCall(
        node=node,
        services=services,
        emitter=emitter_of(state, services, runtime),
        runtime=runtime,
        config=config,
        seconds=limits.step_timeout,
        run_id=state.get("run_id", ""),
        scope=run_scope(limits, services, closing=can_answer),
    )


def emitter_of(state: EnhancedState, services: Services, runtime: Runtime[RunSettings]) -> Emitter:
    """The emitter for the events of a node."""
    return Emitter(
        write=runtime.stream_writer,
        hooks=services.hooks.of(state.get("run_id", "")),
        run_id=state.get("run_id", ""),
        round=state.get("current_round", 0),
        keeps_prompts=settings_of(state).keep_prompts,
    )
