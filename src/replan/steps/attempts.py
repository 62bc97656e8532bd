"""The attempts of a step: each is recorded, timed, counted and reported."""

import asyncio
import logging
import time
from dataclasses import dataclass, field
from functools import partial

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphBubbleUp, GraphDrained
from tenacity import AsyncRetrying, RetryCallState, retry_if_result, stop_after_attempt

from replan.errors import LimitReachedError, QuestionError, StorageError
from replan.events.calls import Calls, calls_at_work, emitter_at_work
from replan.events.types import LimitReached, SpecialistToken
from replan.facts.fact_tools import CurrentFacts, facts_at_work
from replan.failures import can_pass, describe, is_busy, own_traceback
from replan.langgraph_inside.tasks import (
    answers_to_interrupts,
    config_inside,
    inherited_config,
    runtime_in,
    stream_is_heard,
    with_handlers,
)
from replan.log.attempt_rows import AttemptOutcome, LedgerEntry
from replan.models.reply_end import end_of
from replan.models.retries import pause_if_busy, retried, tries_left, tries_of
from replan.models.transcript import transcript_at_work
from replan.plan.preview import MOST_RETRIES, TRIES
from replan.ports.ask_user import Waiting
from replan.ports.folders import folders_at_work
from replan.ports.specialist_port import SpecialistPort
from replan.ports.thread_repository import thread_of_step
from replan.prompts.sections import within_budget
from replan.secrets.masking import with_masked_traceback, without_secrets
from replan.spending.deadline import in_time, was_cut_off
from replan.spending.meter import Meter
from replan.spending.scopes import RUN, step_scopes
from replan.state.knowledge import Source
from replan.state.limits import LimitHit, Limits, RunSettings
from replan.state.questions import Question
from replan.state.results import (
    ExecutionContext,
    ExecutionStatus,
    MadeOf,
    SpecialistResult,
    storable_result,
)
from replan.state.session.session import current_session
from replan.state.usage import TokenCount
from replan.steps.doubts import doubts_in, note_doubt, result_of_verdict, verdict_on
from replan.steps.enrichment import knowledge_for
from replan.steps.interrupt_events import report_interrupt_answers, report_interrupts
from replan.steps.loop_watch import watched
from replan.steps.on_record import digest_of_text
from replan.steps.permission import permission_to_begin
from replan.steps.queued_step import done_elsewhere
from replan.steps.step_record import Asker, StepRecord

logger = logging.getLogger(__name__)
logger.addFilter(with_masked_traceback)

LONGEST_RESULT = 200_000
"""Characters of a result that the state keeps; larger results belong in a file."""

LONGEST_ERROR = 2_000  # the most characters of an error in the state

SAME_AGAIN = "The same error twice: another attempt does not help without a change."
"""Added to the error of a step that failed twice in the same way (not for lack of a server)."""

_NOTHING = TokenCount()


@dataclass(frozen=True)
class Recalled:
    """A result that another process recorded in the meantime."""

    result: SpecialistResult


Made = SpecialistResult | list[Question] | LedgerEntry | Recalled
"""The outcome of an attempt; a ledger entry means an attempt in doubt."""


@dataclass
class Attempts:
    specialist: SpecialistPort
    record: StepRecord
    limits: Limits  # the run's limits, for what the step does not set
    config: RunnableConfig  # the caller's configuration, for callbacks, tags and metadata
    used: TokenCount = _NOTHING
    # The partial result of work whose calls a limit of the run refused, or None.
    part: SpecialistResult | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self._services, self._emitter = self.record.services, self.record.emitter
        self._card = self.specialist.card
        self._step = self.record.context.plan_step
        self._cause: Exception | None = None
        self._model_tries = 0  # of the calls of models at which its attempts failed
        tried = [entry for entry in self.record.tried if entry.key == self.record.keys.attempt]
        self._error_before = tried[-1].error if tried else ""
        self._sources: tuple[Source, ...] = ()

    async def run(self) -> SpecialistResult | Recalled | list[Question] | LimitHit:
        """Make attempts until one succeeds, another cannot help, or none is left."""
        refused = await self._ask_first() if self._step.ask_first else None
        return await self._run() if refused is None else refused

    async def _run(self) -> SpecialistResult | Recalled | list[Question] | LimitHit:
        for doubt in await doubts_in(self.record, self._card) if self.record.tried else ():
            if (settled := await self._settle_doubt(doubt)) is not None:
                return settled
        if self.record.tried:
            await report_interrupt_answers(self.record, answers_to_interrupts(self.config))
        try:
            made = await self._one_attempt()
            if _can_be_retried(made):
                made = await retried(self._one_attempt, self._retrying(), made)
        except LimitReachedError as error:
            await self.record.ended(self._end_at(error), describe(error))
            return LimitHit(
                limit=error.limit,
                value=error.value,
                round=self.record.context.round,
                specialist=self._card.name,
                usage=self.used,
                reason=error.reason,
                wants=error.wants,
                kept=error.kept,
            )
        if isinstance(made, LedgerEntry):
            return await self._settle_doubt(made) or await self._run()
        if isinstance(made, SpecialistResult):
            made = self._mark_same_failure(made)
            made = await self.record.finished(made)
        return made

    async def _ask_first(self) -> SpecialistResult | Recalled | list[Question] | None:
        """Ask whether the step may begin; None if it may."""
        asker = self.record.asker()
        try:
            decision = permission_to_begin(self.record, asker)
        except Waiting:
            return await self.record.asked(asker, self.record.number, self.used)
        except QuestionError as error:
            reason = describe(error)
        else:
            if decision.action == "approve":
                return None
            reason = f"A person did not let it begin. {decision.reason}".rstrip()
        known = await self.record.begin()
        if known is not None:
            return Recalled(known)
        failed = ExecutionStatus.FAILED
        result = SpecialistResult(status=failed, error=reason, confidence=0.0, retry=False)
        result = self._complete(result, 0.0)
        await self.record.finished(result)
        return result

    def _mark_same_failure(self, made: SpecialistResult) -> SpecialistResult:
        """Add to a failure that it is the same as that of the previous attempt."""
        is_same = made.is_failed and made.error == self._error_before
        # A server that could not be reached may be available later.
        if not is_same or self._cause is None or is_busy(self._cause):
            return made
        return made.replace(error=f"{made.error.rstrip('.')}. {SAME_AGAIN}")

    def _retrying(self) -> AsyncRetrying:
        """The retry loop; the first attempt was already made."""
        retry_wait = self._services.retry_wait
        return AsyncRetrying(
            retry=retry_if_result(_can_be_retried),
            stop=stop_after_attempt(max(1, self._retries + 1 - self.record.failures)),
            wait=pause_if_busy(lambda _: self._cause, first=retry_wait, longest=30),
            before_sleep=self._before_retry,
            retry_error_callback=_last_result,
        )

    async def _before_retry(self, state: RetryCallState) -> None:
        self._error_before = _last_result(state).error
        await self.record.failed(self._error_before)

    @property
    def _retries(self) -> int:
        """Attempts after the first; declared unsafe work has none unless its step says so."""
        asked = self._step.max_retries
        if asked is None:
            is_once_only = self._is_unsafe and self._card.is_declared
            asked = 0 if is_once_only else self.limits.step_retries
        return min(asked, MOST_RETRIES)

    async def _settle_doubt(self, doubt: LedgerEntry) -> SpecialistResult | list[Question] | None:
        """Settle work that must not be done twice; None if it is to be done again."""
        record, asker = self.record, self.record.asker()
        is_asked = record.on_doubt == "ask"
        try:
            verdict = verdict_on(doubt, record.context, self._card, asker if is_asked else None)
        except Waiting:
            return await record.asked(asker, doubt.number, self.used)
        if verdict.action == "run again":
            return None
        was_done = doubt.outcome == "done"
        if record.on_doubt == "fail" and not was_done:
            # It fails, and its end is as unknown as before.
            await note_doubt(record, doubt)
        before = record.before.text if record.before and was_done else ""
        result = self._complete(result_of_verdict(verdict, before), 0.0)
        return await record.finished(result, doubt)

    @property
    def _is_unsafe(self) -> bool:
        return self._card.effects == "unsafe"

    def _end_at(self, limit: LimitReachedError) -> AttemptOutcome:
        """How an attempt ended at a limit of the run: by its own error, or in the middle."""
        is_undeclared = self._is_unsafe and not self._card.is_declared
        return "failed" if is_undeclared and not was_cut_off(limit) else "cancelled"

    async def _one_attempt(self) -> Made:
        """Make one attempt; a question to a person and a cancellation are not results."""
        known = await self.record.begin()
        if known is not None:
            return Recalled(known)
        meter, asker = self._meter(), self.record.asker()
        started = time.monotonic()
        try:
            result = await self._try_once(meter, asker)
        finally:
            self.used += meter.count
        if result is None or asker.asked:
            # A question counts even if the code around it turned it into a failure.
            asked = await self.record.asked(asker, self.record.number, self.used)
            await self.record.ended("waiting")
            return asked
        if isinstance(result, LedgerEntry):
            return result
        return self._mark_partial(self._complete(result, time.monotonic() - started), meter.refused)

    async def _try_once(self, meter: Meter, asker: Asker) -> SpecialistResult | LedgerEntry | None:
        self._cause = None
        try:
            seconds = self._step.timeout or self.limits.step_timeout
            with asker:
                async with meter:
                    return await in_time(partial(self._watched_call, meter), meter, seconds)
        except Waiting:
            return None
        except (asyncio.CancelledError, GraphDrained):
            await self.record.ended("cancelled")
            raise
        except GraphBubbleUp as signal:
            await report_interrupts(self.record, signal)
            raise
        except StorageError:
            raise
        except Exception as error:
            self._cause = reason = self._limit_behind(error, meter) or error
            about = {"run_id": self.record.context.run_id, **self.record.names}
            said = describe(error)
            logger.warning("attempt failed: %s", said, exc_info=own_traceback(error), extra=about)
            if self._is_unsafe and was_cut_off(reason) and not asker.asked:
                return await self.record.cut_off(reason)
            return self._failure(reason)

    def _failure(self, error: Exception) -> SpecialistResult:
        """The result of an attempt that raised; what no model answered has one set of attempts."""
        self._model_tries += tries_of(error)
        return SpecialistResult(
            status=ExecutionStatus.FAILED,
            error=describe(error),
            confidence=0.0,
            retry=can_pass(error) and self._model_tries < TRIES,
        )

    def _meter(self, node: str = "") -> Meter:
        names = self.record.names

        def tell(text: str) -> None:
            self._emitter.stream(SpecialistToken, **names, text=text)

        is_heard = stream_is_heard(self._emitter.write, self.config)
        is_heard = is_heard or self._emitter.hooks.hears_tokens
        about = {"node": node or f"specialist_{self._card.name}", **names}
        return Meter(
            self._services.accounts.of(self._services.log, self.record.context.run_id),
            step_scopes(self.limits, self._services, self._card.name, self._step.id),
            new_id=self._services.new_id,
            prices=self._services.prices,
            on_token=tell if is_heard and not node else None,
            calls=Calls(
                emitter=self._emitter, config=self.config, about=about, effects=self._card.effects
            )
            if self._emitter.is_heard
            else None,
        )

    async def _watched_call(self, meter: Meter) -> SpecialistResult:
        about = {"run_id": self.record.context.run_id, **self.record.names}
        return await watched(self._call(meter), about)

    async def _call(self, meter: Meter) -> SpecialistResult:
        """Run the specialist, in its own task: its context variables end with it."""
        context = self.record.context
        if context.attempt != self.record.number:
            context = context.replace(attempt=self.record.number)
        key = {"idempotency_key": context.idempotency_key}
        metered = with_handlers(self.config, meter.handlers, metadata=key)
        config = config_inside(metered, RunSettings)
        if self._services.knowledge is not None:
            context = await self._with_knowledge(context, config, meter)
        # Code that does not get the configuration as an argument finds it here.
        inherited_config.set(config)
        tries_left.set(TRIES - self._model_tries if self._model_tries else None)
        folders_at_work.set(self._services.folders)
        thread_of_step.set(self.record.thread())
        transcript_at_work.set(self.record.transcript)
        calls_at_work.set(meter.calls)
        emitter_at_work.set((self._emitter, self.config))
        # A team inside the step has no session: nobody would take what its steps change of it.
        current_session.set(None)
        if self._services.remembers:
            facts_at_work.set(self._facts())
        try:
            given = await self._run_specialist(context, config, meter)
            return storable_result(SpecialistResult.model_validate(given))
        except SystemExit as error:
            raise RuntimeError(f"it tried to exit the process (exit {error.code})") from error
        except (Exception, asyncio.CancelledError, KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:
            raise RuntimeError(describe(error)) from error

    async def _run_specialist(
        self, context: ExecutionContext, config: RunnableConfig, meter: Meter
    ) -> SpecialistResult:
        """Run the specialist here, or in a worker of its queue."""
        elsewhere, queue = self._services.elsewhere, self._services.queues.get(self._card.name)
        if queue and elsewhere is not None:
            return await done_elsewhere(elsewhere, queue, context, self.record, meter)
        return await self.specialist.run(context, config)

    def _facts(self) -> CurrentFacts | None:
        runtime, settings = runtime_in(self.config), self.record.board.settings
        return self._services.facts(
            settings,
            runtime and runtime.store,
            self.record.context.run_id,
            node="specialist",
            step_id=self._step.id,
            specialist=self._card.name,
        )

    async def _with_knowledge(
        self, context: ExecutionContext, config: RunnableConfig, meter: Meter
    ) -> ExecutionContext:
        """Return the context with the passages that were found for the step."""
        found = await knowledge_for(self.record, config, meter, self._ask)
        self._sources = found.sources
        return context.replace(knowledge_context=found.text) if found.text else context

    async def _ask(self, messages: list[BaseMessage]) -> str:
        """Ask the host's model for the step, which is charged; the reply is not streamed."""
        meter = self._meter("knowledge")
        config = with_handlers(self.config, meter.handlers, tags=["nostream"])
        try:
            async with meter:
                reply = await self._services.models.answering.reply(messages, config)
        finally:
            self.used += meter.count
        end = end_of(reply)
        if end.cut:
            raise RuntimeError(end.why)
        return reply.text

    def _mark_partial(
        self, result: SpecialistResult, limit: LimitReachedError | None
    ) -> SpecialistResult:
        """Mark a partial result of work whose calls a limit refused, such as an inner run."""
        if limit is None or result.is_failed:
            return result
        result = result.replace(cut=result.cut or limit.limit)
        if limit.scope != RUN:
            self._report_limit(limit)
            return result
        # The usage is reported with the limit.
        self.part = result.replace(status=ExecutionStatus.PARTIAL, usage=_NOTHING)
        raise limit

    def _limit_behind(self, error: Exception, meter: Meter) -> LimitReachedError | None:
        """The limit that an attempt failed at, reported; the work may have wrapped its error."""
        limit = error if isinstance(error, LimitReachedError) else meter.refused
        if limit is None:
            return None
        if limit.scope == RUN:  # it ends all attempts
            raise limit from (limit.__cause__ if limit is error else error)
        self._report_limit(limit)
        return limit

    def _report_limit(self, limit: LimitReachedError) -> None:
        told = {name: getattr(limit, name) for name in ("limit", "value", "scope", "reason")}
        self._emitter.stream(LimitReached, **told)

    def _complete(self, result: SpecialistResult, seconds: float) -> SpecialistResult:
        failed = result.status is ExecutionStatus.FAILED
        if len(result.text) > LONGEST_RESULT:
            text = within_budget(result.text, LONGEST_RESULT)
            result = result.replace(result=AIMessage(text, id=result.result and result.result.id))
        record = self.record
        error = result.error or (result.text or "no reason given" if failed else "")
        return result.replace(
            specialist_name=self._card.name,
            step_id=self._step.id,
            round=record.context.round,
            retry_count=record.failures,
            duration=result.duration or seconds,
            usage=self.used,
            confidence=0.0 if failed else result.confidence,
            made_of=MadeOf(inputs=dict(record.keys.inputs), text=digest_of_text(result.text)),
            sources=result.sources or self._sources,
            error=within_budget(without_secrets(error), LONGEST_ERROR),
        )


def _can_be_retried(made: Made) -> bool:
    return isinstance(made, SpecialistResult) and made.is_failed and made.retry


def _last_result(state: RetryCallState) -> SpecialistResult:
    if state.outcome is None:
        raise RuntimeError("a retry loop ended without an attempt")
    return state.outcome.result()
