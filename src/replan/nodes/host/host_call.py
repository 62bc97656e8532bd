"""A call of a host's model: counted, hidden from the stream, retried if that can help."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TypeVar

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphBubbleUp
from langgraph.runtime import Runtime
from tenacity import AsyncRetrying, retry_if_exception

from replan.base.errors import LimitReachedError, ModelCallError, ReplanError
from replan.base.failures import describe, is_fatal_for_run, is_prompt_too_long, is_transient
from replan.base.langgraph_inside.callbacks import is_seen
from replan.base.langgraph_inside.tasks import stream_is_heard, with_handlers
from replan.log.events.calls import CallReporter
from replan.log.events.emitter import Emitter
from replan.log.events.types import LimitReached, ReplyParseFailed
from replan.models.chat import Chat
from replan.models.reply_end import WHOLE, ReplyEnd, end_of
from replan.models.retries import error_raised, pause_if_busy, retried, tries_of
from replan.models.spending.account import Account
from replan.models.spending.deadline import in_time
from replan.models.spending.meter import Meter
from replan.models.spending.scopes import Scope, run_scope
from replan.models.streams import OnText
from replan.nodes.host.reply_parts import AnswerStream, PlanStream
from replan.ports.run_context import here, use, using
from replan.prompts.host import LEAST_RESULT, RESULTS_BUDGET, request_messages
from replan.prompts.repeated import REPEATED, repeats_instructions
from replan.prompts.replies.readings import Reading, read_answer
from replan.prompts.sections import Caller, request_text, within_budget
from replan.specialists.services import Services
from replan.state.conversation.conversation import asked_again, is_due_after
from replan.state.enhanced import EnhancedState, settings_of
from replan.state.limits import TRIES, RunSettings
from replan.state.results import UnreadableReply
from replan.state.usage import CUT_OFF, TokenCount, Usage

R = TypeVar("R", bound=Reading)

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
    idle: float | None  # how long it may take without a sign of work
    run_id: str
    messages: list[AnyMessage]  # the conversation of the thread
    scope: Scope  # the run, and what of it is kept back for others
    tries: int = TRIES  # of a question; with one, its model makes no further calls either
    tried: int = 0  # how many of them the newest question has had
    reports_calls: bool = True  # whether each call is reported
    used: TokenCount = field(default_factory=TokenCount)  # what the calls so far used
    # The replies that could not be used.
    unreadable: list[UnreadableReply] = field(default_factory=list[UnreadableReply])
    # The limit that kept the newest call from being made, or none.
    refused: LimitReachedError | None = None
    end: ReplyEnd = WHOLE  # how the newest reply ended
    plan: PlanStream | None = None  # hears the plan in the replies as it is written, or nobody

    @cached_property
    def request(self) -> str:
        """What was asked for."""
        return request_text(request_messages({"messages": self.messages}))

    async def ask(
        self,
        chat: Chat,
        messages: list[BaseMessage],
        answer: AnswerStream | None = None,
        *,
        goes_on: bool = False,
    ) -> str:
        """Return the text of the model's reply, shown through `answer` as it comes.

        With `goes_on` it is the newest question in other words, which has only the attempts left.

        Raises:
            ModelCallError: The model could not be reached or refused the call.
            LimitReachedError: The run has no call, no token, no money or no time left.
        """
        self.refused = None
        self.tried = self.tried if goes_on else 0
        meter = self.meter()
        try:
            async with meter:
                reply = partial(self._replied, chat, messages, answer, meter)
                message = await in_time(reply, meter)
        except LimitReachedError as error:
            self.refused = error
            raise
        except Exception as error:
            if is_fatal_for_run(error):
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
        is_heard = stream_is_heard(self.emitter.write, config) or is_seen(config)
        is_heard = is_heard or self.emitter.hooks.hears_tokens
        shown = answer.feed if answer is not None and is_heard else None
        on_text = _each_of(shown, self.plan and self.plan.feed)

        async def reply() -> AIMessage:
            # The first calls are as many as the model is configured to have.
            is_bound = self.tried > 0 or self.tries < TRIES
            left = self.tries - self.tried if is_bound else None
            # A model that never answers, or never stops, must not hold the run forever.
            seconds = self.seconds * chat.turns
            made, tries = meter.made, 1
            try:
                with using(tries=left):
                    reply = partial(chat.reply, messages, config, on_text)
                    return await in_time(reply, meter, seconds, self.idle)
            except Exception as error:
                tries = tries_of(error)
                raise
            finally:
                # Calls in a loop of tools are not all attempts at one.
                calls = 1 if chat.turns > 1 else meter.made - made
                self.tried += max(1, tries, calls)

        try:
            return await reply()
        except Exception as error:  # noqa: BLE001 - tenacity raises it if it is the last one
            failed = error
        if on_text is not None and shown is None and self._has_fallback(chat, failed):
            # Nobody saw the reply that broke off, and a fallback gives a whole one.
            on_text = None
            try:
                return await reply()
            except Exception as error:  # noqa: BLE001 - as above
                failed = error
        retrying = AsyncRetrying(
            retry=retry_if_exception(is_transient),
            # The model's own tries count, too: there is one set of them.
            stop=lambda _: self.tried >= self.tries,
            wait=pause_if_busy(error_raised, first=self.services.retry_wait, longest=30),
            before_sleep=lambda _: self._restart(answer),
            reraise=True,
        )
        return await retried(reply, retrying, failed)

    def _has_fallback(self, chat: Chat, error: Exception) -> bool:
        """Whether another model may give the reply in which this one failed."""
        is_over = isinstance(error, ReplanError | GraphBubbleUp) or self.tried >= self.tries
        return chat.other is not None and not is_over

    def _restart(self, answer: AnswerStream | None) -> None:
        """The reply is asked for again."""
        for stream in (answer, self.plan):
            if stream is not None:
                stream.restart()

    async def ask_in_room(
        self,
        chat: Chat,
        prompt_of: Callable[[int], list[BaseMessage]],
        answer: AnswerStream | None = None,
    ) -> tuple[str, int]:
        """Ask, with a shorter prompt if there is no room; return the length that was used."""
        budget, refusals, is_shorter = RESULTS_BUDGET, list[LimitReachedError](), False
        while True:
            try:
                reply = await self.ask(chat, prompt_of(budget), answer, goes_on=is_shorter)
            except LimitReachedError as error:
                # A refused call costs nothing, and a shorter one may have room.
                if error.limit not in _LIMITS_OF_LENGTH or budget < LEAST_RESULT:
                    raise
                refusals.append(error)
                budget //= 2
            except ModelCallError as error:
                if is_shorter:
                    raise
                budget, is_shorter = await self.shorter_after(error, prompt_of, budget), True
            else:
                # A limit of an outer run may have refused it.
                for each in refusals:
                    each.is_overcome = True
                return reply, budget

    async def shorter_after(
        self,
        error: ModelCallError,
        prompt_of: Callable[[int], list[BaseMessage]],
        budget: int,
    ) -> int:
        """Return and report the length of the results for one more attempt after a failed call.

        Raises:
            ModelCallError: The error; another length does not help, or there was no attempt left.
        """
        cause, whole = error.__cause__, _length(prompt_of(budget))
        least = _length(prompt_of(LEAST_RESULT))
        is_too_long = cause is not None and is_prompt_too_long(cause)
        if not is_too_long or least >= whole or self.tried >= self.tries:
            raise error
        # Few servers say how long a prompt may be. A quarter leaves room for most models.
        wanted = least + (whole - least) // 4
        while budget > LEAST_RESULT and _length(prompt_of(budget)) > wanted:
            budget //= 2
        budget = max(budget, LEAST_RESULT)
        await self.emitter.warn(
            f"The prompt of {self.node} was too long for the model, so it was sent again with at "
            f"most {budget:,} characters of the results."
        )
        return budget

    async def ask_readable(
        self,
        chat: Chat,
        messages: list[BaseMessage],
        read: Callable[[str], R],
        answer: AnswerStream | None = None,
        *,
        goes_on: bool = False,
    ) -> R:
        """Return the reading of a reply, or of a second one if the first is wrong."""
        text = await self.ask(chat, messages, answer, goes_on=goes_on)
        return await self.readable(chat, lambda: messages, text, read, answer)

    async def answer_in(
        self, chat: Chat, messages: list[BaseMessage], text: str, answer: AnswerStream
    ) -> Reading:
        """Read an answer, or a second one if attempts are left and it repeats the instructions."""

        def read(text: str) -> Reading:
            if repeats_instructions(text, messages, self.request):
                form = "Write the answer to the request, and nothing else."
                return Reading(wrong=REPEATED, form=form, done="there is no answer")
            return read_answer(text)

        return await self.readable(chat, lambda: messages, text, read, answer, goes_on=True)

    async def readable(
        self,
        chat: Chat,
        prompt: Callable[[], list[BaseMessage]],
        text: str,
        read: Callable[[str], R],
        answer: AnswerStream | None = None,
        *,
        goes_on: bool = False,
    ) -> R:
        """Read a reply; one that is wrong is asked for again, and reported if that is in vain.

        The model is shown its reply to the prompt, and what is wrong with it.
        """
        reading = read(text)
        if reading.wrong and not (goes_on and self.tried >= self.tries):
            self._restart(answer)
            shown = within_budget(text, RESULTS_BUDGET)
            again, end = asked_again(prompt(), shown, reading.complaint), self.end
            try:
                second = read(await self.ask(chat, again, answer, goes_on=goes_on))
                if second.is_empty:
                    self.end = end
                else:
                    reading = second
            except (ModelCallError, LimitReachedError):
                # The first reply is worse than a second one, and better than none.
                if not reading.counts:
                    raise
        if reading.wrong:
            await self.report_unreadable(reading.wrong, reading.done)
        if reading.odd:
            here().warn(reading.odd)
        return reading

    async def report_unreadable(self, problem: str, fallback: str) -> None:
        """Report a reply that cannot be used; the state keeps it, too."""
        record = UnreadableReply(node=self.node, problem=problem, fallback=fallback)
        self.unreadable.append(record)
        await self.emitter.emit(ReplyParseFailed, **dict(record))

    async def report_limit(self, limit: str, value: float, reason: str = "") -> None:
        await self.emitter.emit(LimitReached, limit=limit, value=value, reason=reason)

    async def report_cut(self) -> str:
        """Report that the newest answer is incomplete; return why, or an empty text."""
        if self.end.cut:
            await self.report_limit(self.end.cut, self.end.tokens)
        return self.end.cut

    async def close(self, state: EnhancedState, answer: AIMessage) -> None:
        """Release what only a run that continues needs; a summary may still be written."""
        if not is_due_after(state, [answer], self.services.prompts.memory_in(state)):
            await self.release()

    async def release(self) -> None:
        """Release what only a run that continues needs."""
        await self.services.log.closed(self.run_id)
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
        if (early := here().early) is not None and early.is_at_work:
            # Their steps count what they use when their round takes them.
            return used
        # Nothing else is on its way while a node of the host is at work.
        charged = await self._account.charged()
        calls, cost = charged.calls - used.calls, max(0.0, charged.cost - used.known_cost)
        if calls <= 0:
            return used
        # The log does not say which of them have a price.
        is_known = cost > 0 and not (used.unpriced_calls or self.services.unpriced)
        lost = TokenCount(calls=calls, known_cost=cost, unpriced_calls=0 if is_known else calls)
        return used.plus((CUT_OFF, lost))

    def meter(self) -> Meter:
        """Make what counts, charges and reports the next call."""
        calls, services = None, self.services
        if self.reports_calls and self.emitter.is_heard:
            about = {"node": self.node}
            calls = CallReporter(emitter=self.emitter, config=self.config, about=about)
        # Those of its tools are reported, too.
        at_work = {"run_id": self.run_id, "node": self.node, "clock": services.clock}
        use(**at_work, emitter=self.emitter, config=self.config, calls=calls)
        return Meter(
            self._account,
            [self.scope],
            new_id=services.new_id,
            prices=services.prices,
            calls=calls,
        )

    def _failed(self, error: Exception) -> ModelCallError:
        about = {"run_id": self.run_id, "node": self.node, "error": type(error).__name__}
        logger.warning("model call failed: %(node)s, %(error)s", about, extra=about)
        return ModelCallError(self.node, describe(error))

    @property
    def _account(self) -> Account:
        return self.services.accounts.of(self.services.log, self.run_id)


def _each_of(*hearers: OnText | None) -> OnText | None:
    """What gives a piece of text to each of some; None if there is nobody."""
    present = [hearer for hearer in hearers if hearer is not None]

    def tell(text: str) -> None:
        for hear in present:
            hear(text)

    return tell if present else None


def _length(messages: list[BaseMessage]) -> int:
    return sum(len(message.text) for message in messages)


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
        idle=limits.idle_timeout,
        run_id=state.get("run_id", ""),
        messages=state.get("messages", []),
        scope=run_scope(limits, services, closing=can_answer),
    )


def emitter_of(state: EnhancedState, services: Services, runtime: Runtime[RunSettings]) -> Emitter:
    """The emitter for the events of a node."""
    run_id = state.get("run_id", "")
    return here().emitter_for(
        runtime.stream_writer,
        services.hooks.of(run_id),
        run_id,
        state.get("current_round", 0),
        keeps_prompts=settings_of(state).keep_prompts,
    )
