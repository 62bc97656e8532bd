"""The attempts of a step: each is recorded, timed, counted and reported.

`StepWork` is what one attempt works with, in the run's process or in a worker of a queue.
"""

import asyncio
import logging
import math
import time
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphBubbleUp, GraphDrained
from tenacity import AsyncRetrying, RetryCallState, retry_if_result, stop_after_attempt

from replan.base.errors import InDoubtError, LimitReachedError, QuestionError, StorageError
from replan.base.failures import describe, is_busy, is_transient, own_traceback, told_of
from replan.base.langgraph_inside.tasks import (
    answers_to_interrupts,
    config_inside,
    inherited_config,
    runtime_in,
    stream_is_heard,
    with_handlers,
)
from replan.base.secrets.masking import with_masked_traceback, without_secrets
from replan.log.events.calls import CallReporter
from replan.log.events.emitter import Emitter
from replan.log.events.types import LimitReached, SpecialistToken
from replan.log.rows import LedgerEntry
from replan.log.transcript import Transcript
from replan.models.reply_end import end_of
from replan.models.retries import pause_if_busy, retried, tries_of
from replan.models.spending.deadline import in_time, was_cut_off, watched
from replan.models.spending.meter import Meter
from replan.models.spending.scopes import RUN, step_scopes
from replan.ports.ask_user import Waiting
from replan.ports.run_context import here, using
from replan.ports.specialist_port import SpecialistPort
from replan.prompts.sections import within_budget
from replan.specialists.services import Services
from replan.specialists.steps.asked_first import (
    note_doubt,
    permission_to_begin,
    result_of_verdict,
    unresolved_attempts,
    verdict_on,
)
from replan.specialists.steps.enrichment import knowledge_for
from replan.specialists.steps.interrupt_events import report_interrupt_answers, report_interrupts
from replan.specialists.steps.on_record import digest_of_text
from replan.specialists.steps.queued_step import attempt_elsewhere
from replan.specialists.steps.step_record import Asker, StepRecord
from replan.state.knowledge import Source
from replan.state.limits import MOST_RETRIES, TRIES, LimitHit, Limits, RunSettings
from replan.state.outcomes import CUTS, AttemptOutcome
from replan.state.questions import Question
from replan.state.results import (
    ExecutionContext,
    ExecutionStatus,
    MadeOf,
    SpecialistResult,
    storable_result,
)
from replan.state.usage import TokenCount

logger = logging.getLogger(__name__)
logger.addFilter(with_masked_traceback)

LONGEST_RESULT = 200_000
"""Characters of a result that the state keeps; larger results belong in a file."""

LONGEST_ERROR = 2_000  # the most characters of an error in the state

SAME_AGAIN = "The same error twice: another attempt does not help without a change."
"""Added to the error of a step that failed twice in the same way (not for lack of a server)."""

_NOTHING = TokenCount()


Work = Callable[[ExecutionContext, RunnableConfig], Coroutine[Any, Any, SpecialistResult]]
"""What does a step, such as the `run` of its specialist."""


# The log is always that of the run. So the calls of a worker reserve what the run may spend, a loop
# of tools finds the calls that are on record, and a repetition has the same keys.
@dataclass(kw_only=True)
class StepWork:
    """What an attempt works with; made of the step's record, or of the job of a queue."""

    context: ExecutionContext  # what the specialist sees
    specialist: SpecialistPort
    services: Services
    settings: RunSettings
    emitter: Emitter
    asker: Asker
    make_transcript: Callable[[], Transcript]
    thread_id: str  # where a pipeline keeps what it does for the step
    config: RunnableConfig = field(default_factory=RunnableConfig)  # the caller's
    on_token: Callable[[str], None] | None = None
    tries: int | None = None  # what is left of them for its models; None: all
    meter: Meter = field(init=False)

    def __post_init__(self) -> None:
        self.meter = self.new_meter(f"specialist_{self._name}", self.on_token)

    @property
    def _name(self) -> str:
        return self.specialist.card.name

    @property
    def names(self) -> dict[str, object]:
        step_id, attempt = self.context.plan_step.id, self.context.attempt
        return {"step_id": step_id, "specialist": self._name, "attempt": attempt}

    def _about(self) -> dict[str, object]:
        return {"run_id": self.context.run_id, **self.names}

    def new_meter(self, node: str, on_token: Callable[[str], None] | None = None) -> Meter:
        """Make what counts, charges and reports calls of models for the step."""
        services, calls = self.services, None
        if self.emitter.is_heard:
            calls = CallReporter(
                emitter=self.emitter,
                config=self.config,
                about={"node": node, **self.names},
                effects=self.specialist.card.effects,
            )
        return Meter(
            services.accounts.of(services.log, self.context.run_id),
            step_scopes(self.settings.limits, services, self._name, self.context.plan_step.id),
            new_id=services.new_id,
            prices=services.prices,
            on_token=on_token,
            calls=calls,
        )

    async def result(self, work: Work, seconds: float = math.inf) -> SpecialistResult:
        """Do the work in its context, and within its time; what outlives it asks nothing more."""
        key = {"idempotency_key": self.context.idempotency_key}
        metered = with_handlers(self.config, self.meter.handlers, metadata=key)
        config = config_inside(metered, RunSettings)
        # Code that does not get the configuration as an argument finds it here.
        around = inherited_config.set(config)
        try:
            with self._in_context():
                async with self.meter:
                    do = partial(self._do, work, config)
                    return await in_time(do, self.meter, seconds, self._idle)
        finally:
            self.asker.close()
            inherited_config.reset(around)

    def _in_context(self) -> AbstractContextManager[None]:
        """A block whose code may use what the attempt has."""
        services, runtime = self.services, runtime_in(self.config)
        store = runtime and runtime.store
        facts = services.facts(self.settings, store) if services.remembers else None
        return using(
            run_id=self.context.run_id,
            node="specialist",
            emitter=self.emitter,
            config=self.config,
            calls=self.meter.calls,
            step_id=self.context.plan_step.id,
            specialist=self._name,
            asker=self.asker,
            folders=services.folders,
            threads=services.threads,
            thread_id=self.thread_id,
            make_transcript=self.make_transcript,
            facts=facts,
            clock=services.clock,
            new_id=services.new_id,
            tries=self.tries,
            is_stopping=lambda: runtime is not None and runtime.drain_requested,
            # A team inside the step has no session: nobody would take what it changes of it.
            session=None,
            # What people ask of the run, and its early steps, are none of that team's, either.
            steering=None,
            early=None,
            work=here().work if getattr(self.specialist, "continues_sessions", False) else None,
        )

    @property
    def _idle(self) -> float | None:
        """The seconds that it may take without a sign of work; the shorter bound counts."""
        bounds = (self.context.plan_step.idle_timeout, self.settings.limits.idle_timeout)
        return min((bound for bound in bounds if bound is not None), default=None)

    async def _do(self, work: Work, config: RunnableConfig) -> SpecialistResult:
        try:
            returned = await watched(work(self.context, config), self._about)
            kept_names: frozenset[str] = getattr(self.specialist, "kept_names", frozenset())
            return storable_result(SpecialistResult.model_validate(returned), kept_names)
        except SystemExit as error:
            raise RuntimeError(f"it tried to exit the process (exit {error.code})") from error
        except ExceptionGroup as errors:
            raise told_of(errors) from errors.__cause__
        except (Exception, asyncio.CancelledError, KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:
            raise RuntimeError(describe(error)) from error


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
    config: RunnableConfig  # the caller's configuration, for callbacks, tags and metadata
    used: TokenCount = _NOTHING
    # The partial result of work whose calls a limit of the run refused, or None.
    part: SpecialistResult | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self._services, self._emitter = self.record.services, self.record.emitter
        self._card = self.specialist.card
        # For what the step does not set.
        self._limits: Limits = self.record.board.settings.limits
        self._step = self.record.context.plan_step
        self._cause: Exception | None = None
        self._model_tries = 0  # of the calls of models at which its attempts failed
        tried = [entry for entry in self.record.tried if entry.key == self.record.keys.attempt]
        self._error_before = tried[-1].error if tried else ""
        self._sources: tuple[Source, ...] = ()

    async def run(self) -> SpecialistResult | Recalled | list[Question] | LimitHit:
        """Make attempts until one succeeds, another cannot help, or none is left."""
        asks_first = self._step.ask_first or self._card.asks_first
        refused = await self._ask_first() if asks_first else None
        return await self._run() if refused is None else refused

    async def _run(self) -> SpecialistResult | Recalled | list[Question] | LimitHit:
        for doubt in (
            await unresolved_attempts(self.record, self._card) if self.record.tried else ()
        ):
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
            decision = permission_to_begin(self.record, self._card, asker)
        except Waiting:
            return await self.record.note_asked(asker, self.record.number, self.used)
        except QuestionError as error:
            reason = describe(error)
        else:
            if decision.action == "approve":
                return None
            reason = f"A person did not let it begin. {decision.reason}".rstrip()
        begun = await self.record.begin()
        if begun is not None:
            return Recalled(begun)
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
        retries = self._step.max_retries
        if retries is None:
            is_once_only = self._is_unsafe and self._card.is_declared
            retries = 0 if is_once_only else self._limits.step_retries
        return min(retries, MOST_RETRIES)

    async def _settle_doubt(self, doubt: LedgerEntry) -> SpecialistResult | list[Question] | None:
        """Settle work that must not be done twice; None if it is to be done again."""
        record, asker = self.record, self.record.asker()
        is_asked = record.on_doubt == "ask"
        try:
            verdict = verdict_on(doubt, record.context, self._card, asker if is_asked else None)
        except Waiting:
            return await record.note_asked(asker, doubt.number, self.used)
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
        begun = await self.record.begin()
        if begun is not None:
            return Recalled(begun)
        attempt, started = self._attempt(), time.monotonic()
        try:
            result = await self._try_once(attempt)
        finally:
            self.used += attempt.meter.count
        if result is None or attempt.asker.asked:
            # A question counts even if the code around it turned it into a failure.
            # One that was killed between the two asks again.
            await self.record.ended("waiting")
            return await self.record.note_asked(attempt.asker, self.record.number, self.used)
        if isinstance(result, LedgerEntry):
            return result
        result = self._complete(result, time.monotonic() - started)
        return self._mark_partial(result, attempt.meter.refused)

    def _attempt(self) -> StepWork:
        record, number = self.record, self.record.number
        is_heard = stream_is_heard(self._emitter.write, self.config)
        is_heard = is_heard or self._emitter.hooks.hears_tokens
        context = record.context
        return StepWork(
            context=context if number == context.attempt else context.replace(attempt=number),
            specialist=self.specialist,
            services=self._services,
            settings=record.board.settings,
            emitter=self._emitter,
            asker=record.asker(),
            make_transcript=record.transcript,
            thread_id=record.thread_id,
            config=self.config,
            on_token=self._tell if is_heard else None,
            tries=TRIES - self._model_tries if self._model_tries else None,
        )

    def _tell(self, text: str) -> None:
        self._emitter.stream(SpecialistToken, **self.record.names, text=text)

    async def _try_once(self, attempt: StepWork) -> SpecialistResult | LedgerEntry | None:
        self._cause = None
        seconds = self._step.timeout or self._limits.step_timeout
        try:
            return await attempt.result(partial(self._work, attempt), seconds)
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
            self._cause = reason = self._limit_behind(error, attempt.meter) or error
            about = {"run_id": self.record.context.run_id, **self.record.names}
            error_text = describe(error)
            logger.warning(
                "attempt failed: %s (step %s, @%s)",
                error_text,
                about["step_id"],
                about["specialist"],
                exc_info=own_traceback(error),
                extra=about,
            )
            if self._is_unsafe and was_cut_off(reason) and not attempt.asker.asked:
                return await self.record.cut_off(reason)
            return await self._failure(reason)

    async def _failure(self, error: Exception) -> SpecialistResult:
        """The result of an attempt that raised; what no model answered has one set of attempts."""
        self._model_tries += tries_of(error)
        is_told = isinstance(error, InDoubtError)
        in_doubt = () if is_told else await self.record.calls_in_doubt()
        doubts = [str(InDoubtError(f"The call of {run.tool}", run.attempt)) for run in in_doubt]
        return SpecialistResult(
            status=ExecutionStatus.FAILED,
            error=" ".join([describe(error) + ("." if doubts else ""), *doubts]),
            confidence=0.0,
            retry=is_transient(error) and self._model_tries < TRIES,
        )

    async def _work(
        self, attempt: StepWork, context: ExecutionContext, config: RunnableConfig
    ) -> SpecialistResult:
        """Run the specialist here, or in a worker of its queue."""
        services = self._services
        if services.knowledge is not None:
            knowledge = await knowledge_for(
                self.record, config, attempt.meter, partial(self._ask, attempt)
            )
            self._sources = knowledge.sources
            context = (
                context.replace(knowledge_context=knowledge.text) if knowledge.text else context
            )
        elsewhere, queue = services.elsewhere, services.queues.get(self._card.name)
        if queue and elsewhere is not None:
            return await attempt_elsewhere(elsewhere, queue, context, self.record, attempt.meter)
        return await self.specialist.run(context, config)

    async def _ask(self, attempt: StepWork, messages: list[BaseMessage]) -> str:
        """Ask the host's model for the step, which is charged; the reply is not streamed."""
        meter = attempt.new_meter("knowledge")
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
        result = result.replace(cut=result.cut if result.cut in CUTS else limit.limit)
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
        fields = {name: getattr(limit, name) for name in ("limit", "value", "scope", "reason")}
        self._emitter.stream(LimitReached, **fields)

    def _complete(self, result: SpecialistResult, seconds: float) -> SpecialistResult:
        failed = result.status is ExecutionStatus.FAILED
        if len(result.text) > LONGEST_RESULT:
            text = within_budget(result.text, LONGEST_RESULT)
            result = result.replace(result=AIMessage(text, id=result.result and result.result.id))
        record = self.record
        error = result.error or (result.text or "no reason given" if failed else "")
        known = {
            "specialist_name": self._card.name,
            "step_id": self._step.id,
            "round": record.context.round,
            "retry_count": record.failures,
            "duration": result.duration or seconds,
            "usage": self.used,
            "confidence": 0.0 if failed else result.confidence,
            "made_of": MadeOf(inputs={**record.keys.inputs}, text=digest_of_text(result.text)),
            "sources": result.sources or self._sources,
            "error": within_budget(without_secrets(error), LONGEST_ERROR),
        }
        return result.model_copy(update=known)


def _can_be_retried(made: Made) -> bool:
    return isinstance(made, SpecialistResult) and made.is_failed and made.retry


def _last_result(state: RetryCallState) -> SpecialistResult:
    if state.outcome is None:
        raise RuntimeError("a retry loop ended without an attempt")
    return state.outcome.result()
