"""The one retry loop of a step: every try is on record, timed, counted and told."""

import asyncio
import logging
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial

from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphBubbleUp, GraphDrained
from tenacity import AsyncRetrying, RetryCallState, retry_if_result, stop_after_attempt

from replan.errors import LimitReachedError, StorageError
from replan.events.calls import Calls, telling
from replan.events.emitter import Emitter
from replan.events.types import LimitReached, SpecialistInvoked, SpecialistRetried, SpecialistToken
from replan.failures import can_pass, describe
from replan.langgraph_inside.tasks import inherited_config
from replan.models.handlers import with_handlers
from replan.models.listening import stream_is_heard
from replan.models.pauses import pause_if_busy
from replan.models.retries import with_retries
from replan.models.transcript import Transcript
from replan.plan.preview import MOST_RETRIES
from replan.ports.ask_user import Asker, Waiting
from replan.ports.folders import within
from replan.ports.journal import ACTED, DOUBTED, Attempt, AttemptOutcome, LedgerEntry
from replan.ports.specialist_port import SpecialistPort
from replan.prompts.budget import within_budget
from replan.secrets.masking import without_secrets
from replan.secrets.records import with_masked_traceback
from replan.services import Services
from replan.spending.account import RUN, Account
from replan.spending.deadline import in_time, was_cut_off
from replan.spending.meter import Meter
from replan.spending.scopes import step_scopes
from replan.state.limits import LimitHit, Limits, OnDoubt
from replan.state.questions import Question
from replan.state.results import (
    ExecutionContext,
    ExecutionStatus,
    MadeOf,
    SpecialistResult,
    result_key,
    storable_result,
)
from replan.state.usage import TokenCount
from replan.steps.doubts import result_by, verdict_on
from replan.steps.keys import Keys, digest_of_text
from replan.steps.on_record import (
    done_before,
    failures,
    key_of_result,
    left_in_doubt,
    newest_number,
)
from replan.steps.step_questions import StepQuestions
from replan.steps.superstep import as_the_caller_bounds, to_its_end

logger = logging.getLogger(__name__)
logger.addFilter(with_masked_traceback)

LONGEST_RESULT = 200_000
"""Characters of a result that the state keeps; what is larger belongs into a file."""

LONGEST_ERROR = 2_000
"""Characters of an error that the state keeps."""


_NOTHING = TokenCount()


@dataclass
class Tries:
    """All tries of one step at one specialist.

    Attributes:
        specialist: Who does the step.
        context: What the specialist sees.
        limits: The run's bounds, for what the step does not say itself.
        services: The live things.
        emitter: Tells of the tries.
        config: The caller's configuration, for callbacks, tags and metadata.
        questions: What the step asked a person before, and how it asks more.
        keys: What the tries are of, and what their results answer for.
        tried: The tries that the step has behind it, of earlier rounds and processes too.
        before: What came of the step when it was done before.
        on_doubt: What becomes of unsafe work that was cut off, or done before.
        used: What all tries used.
        number: The newest try, counted over rounds and resumptions.
        is_recalled: Whether somebody else recorded the result, so that nothing was tried.
        part: What was made of the work where a limit of the run refused calls of it, or none.
    """

    specialist: SpecialistPort
    context: ExecutionContext
    limits: Limits
    services: Services
    emitter: Emitter
    config: RunnableConfig
    questions: StepQuestions
    keys: Keys
    tried: Sequence[LedgerEntry] = ()
    before: SpecialistResult | None = None
    on_doubt: OnDoubt = "ask"
    used: TokenCount = _NOTHING
    number: int = field(init=False)
    is_recalled: bool = field(init=False, default=False)
    part: SpecialistResult | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.number = newest_number(self.tried)
        self._cause: Exception | None = None
        self._failures = failures(self.tried, self.keys.attempt)
        self._transcript = Transcript(
            self.services.journal,
            self.context.run_id,
            self.context.idempotency_key,
            self.on_doubt,
        )

    async def run(self) -> SpecialistResult | list[Question] | LimitHit:
        """Try until the step succeeds, cannot be helped, or has no try left.

        Returns:
            The result; the questions that it waits for; or the limit of the run that kept the step
            from being done.
        """
        for doubt in await self._doubts():
            if (settled := await self._settled(doubt)) is not None:
                return settled
        most = max(1, self._retries + 1 - self._failures)
        try:
            result = await with_retries(
                self._one, lambda: self._retrying(most), is_wanted=_cannot_be_retried
            )
        except _Asked as asked:
            return asked.questions
        except _CutOff as cut_off:
            return await self._settled(cut_off.attempt) or await self.run()
        except _OnRecord as known:
            self.is_recalled = True
            return known.result
        except LimitReachedError as error:
            await self._ended(self._end_at(error), describe(error))
            return LimitHit(
                limit=error.limit,
                value=error.value,
                round=self.context.round,
                specialist=self.name,
                usage=self.used,
            )
        return await self._finish(result)

    async def _doubts(self) -> list[LedgerEntry]:
        """The tries because of which the work may not be done unasked: cut off, or done before."""
        cut_off = await self._cut_off_before() if self._is_unsafe else None
        done = done_before(self.tried)
        is_asked = done is not None and await self._is_once_only()
        return [each for each in (cut_off, done if is_asked else None) if each is not None]

    async def _cut_off_before(self) -> LedgerEntry | None:
        """The newest try, if nobody knows what it did, and nobody has said it since."""
        newest = self.tried[-1] if self.tried else None
        if newest is None or newest.outcome != "failed":
            return left_in_doubt(self.tried)
        note = self._doubted(newest.number)
        is_open = note in await self.services.journal.notes(self.context.run_id, note)
        return newest if is_open else None

    async def _is_once_only(self) -> bool:
        """Whether work that was done before must not be done once more unasked."""
        if self._is_unsafe and self.specialist.card.is_declared:
            return True
        # Who did a part of it, and never said that it is unsafe, is asked for the rest.
        is_part = self.before is not None and self.before.status is ExecutionStatus.PARTIAL
        return not is_part and (self._is_unsafe or await self._has_acted())

    def _retrying(self, most: int) -> AsyncRetrying:
        return AsyncRetrying(
            retry=retry_if_result(lambda result: not _cannot_be_retried(result)),
            stop=stop_after_attempt(most),
            wait=pause_if_busy(lambda _: self._cause, first=self.services.retry_wait, longest=30),
            before_sleep=self._begin_again,
            retry_error_callback=_last_result,
        )

    async def _settled(self, doubt: LedgerEntry) -> SpecialistResult | list[Question] | None:
        """Say what became of work that must not be done twice; None if it is to be done again."""
        asker = self.questions.asker()
        try:
            verdict = verdict_on(
                doubt, self.context, self.specialist.card, asker if self.on_doubt == "ask" else None
            )
        except Waiting:
            return await self.questions.recorded(asker, doubt.number, self.used, self.emitter)
        if verdict.action == "run again":
            return None
        if self.on_doubt == "fail" and doubt.outcome != "done":
            # It fails, and nobody knows more of it than before.
            note = self._doubted(doubt.number)
            await self.services.journal.note(self.context.run_id, note, value=True)
        self._attempt = Attempt(**{name: getattr(doubt, name) for name in Attempt.model_fields})
        before = self.before.text if self.before and doubt.outcome == "done" else ""
        result = result_by(verdict, before)
        return await self._finish(self._completed(result, 0.0))

    async def _finish(self, result: SpecialistResult) -> SpecialistResult:
        """Put the final result of the step on record, as what came of the newest try."""
        # On record before anybody sees it: LangGraph writes a node's update in the background.
        if self._transcript.has_acted:
            await self.services.journal.note(self.context.run_id, self._acted, value=True)
        await self.services.journal.finished(
            self._attempt, result, self.services.clock(), key_of_result(self.keys, result)
        )
        # What failed may be opened again: its calls of tools are not made twice then.
        await (self._transcript.restart() if result.is_failed else self._transcript.close())
        return result

    async def _has_acted(self) -> bool:
        """Whether the work called tools that must not be called twice, when it was done before."""
        return self._acted in await self.services.journal.notes(self.context.run_id, self._acted)

    @property
    def _acted(self) -> str:
        return ACTED + result_key(self.context.plan_step.id, self.name)

    def _doubted(self, number: int) -> str:
        return f"{DOUBTED}{result_key(self.context.plan_step.id, self.name)}/{number}"

    @property
    def _retries(self) -> int:
        """Tries beside the first; what was declared unsafe has none unless its step says so."""
        step, card = self.context.plan_step, self.specialist.card
        if step.max_retries is not None:
            return min(step.max_retries, MOST_RETRIES)
        is_declared_unsafe = self._is_unsafe and card.is_declared
        return 0 if is_declared_unsafe else min(self.limits.step_retries, MOST_RETRIES)

    @property
    def _is_unsafe(self) -> bool:
        return self.specialist.card.effects == "unsafe"

    def _end_at(self, limit: LimitReachedError) -> AttemptOutcome:
        """How a try ended at a limit of the run: by an error of its own, or in the middle."""
        is_undeclared = self._is_unsafe and not self.specialist.card.is_declared
        return "failed" if is_undeclared and not was_cut_off(limit) else "cancelled"

    async def _one(self) -> SpecialistResult:
        """Make one try; everything but a question to the user and a cancellation is a result."""
        await self._begin()
        self._cause = None
        meter, asker = self._meter(), self.questions.asker()
        started = time.monotonic()
        try:
            with asker, within(self.services.folders):
                result = await self._within_limits(meter)
        except Waiting:
            result = None
        except (asyncio.CancelledError, GraphDrained):
            await self._ended("cancelled")
            raise
        except GraphBubbleUp:
            await self._ended("waiting")
            raise
        except StorageError:
            raise
        except Exception as error:
            self._cause = reason = await self._limit_behind(error, meter) or error
            logger.warning("attempt failed", exc_info=error, extra=self._about)
            if self._is_unsafe and was_cut_off(reason) and not asker.asked:
                raise await self._cut_off(reason) from error
            result = _failure(reason)
        finally:
            self.used += meter.count
        if result is None or asker.asked:
            # A question that was asked is asked, even if the code around it made a failure of it.
            raise _Asked(await self._waiting(asker))
        return self._or_part(self._completed(result, time.monotonic() - started), meter.refused)

    def _or_part(
        self, result: SpecialistResult, limit: LimitReachedError | None
    ) -> SpecialistResult:
        """Mark what was made of work whose calls a limit refused: an inner run ends with a part.

        Raises:
            LimitReachedError: It is one of the run, which ends all tries.
        """
        if limit is None or result.is_failed:
            return result
        result = result.replace(cut=result.cut or limit.limit)
        if limit.scope != RUN:
            self._tell(limit)
            return result
        # What was used counts with the limit.
        self.part = result.replace(status=ExecutionStatus.PARTIAL, usage=_NOTHING)
        raise limit

    async def _limit_behind(self, error: Exception, meter: Meter) -> LimitReachedError | None:
        """The limit that a try failed at, told; the work may have made another error of it.

        Raises:
            LimitReachedError: It is one of the run, which ends all tries.
        """
        limit = error if isinstance(error, LimitReachedError) else meter.refused
        if limit is None:
            return None
        if limit.scope == RUN:
            raise limit from (limit.__cause__ if limit is error else error)
        self._tell(limit)
        return limit

    def _tell(self, limit: LimitReachedError) -> None:
        self.emitter.stream(LimitReached, limit=limit.limit, value=limit.value, scope=limit.scope)

    async def _begin(self) -> None:
        self.number += 1
        self._attempt = Attempt(
            run_id=self.context.run_id,
            step_id=self.context.plan_step.id,
            specialist=self.name,
            number=self.number,
            key=self.keys.attempt,
            started_at=self.services.clock(),
            idempotency_key=self.context.idempotency_key,
        )
        known = await self.services.journal.started(self._attempt, self.keys.result)
        if known is not None:
            raise _OnRecord(known)
        self.emitter.stream(SpecialistInvoked, **self._names, task=self.context.task_description)

    async def _ended(self, outcome: AttemptOutcome, error: str = "") -> None:
        await self.services.journal.ended(self._attempt, outcome, self.services.clock(), error)

    async def _cut_off(self, error: Exception) -> "_CutOff":
        """Record that a try was stopped in the middle, and that nobody knows what it did."""
        await self._ended("cancelled", describe(error))
        fields = {name: getattr(self._attempt, name) for name in Attempt.model_fields}
        return _CutOff(LedgerEntry(**fields, outcome="cancelled", error=describe(error)))

    async def _waiting(self, asker: Asker) -> list[Question]:
        """Record that a try ended with questions."""
        asked = await self.questions.recorded(asker, self.number, self.used, self.emitter)
        await self._ended("waiting")
        return asked

    @property
    def name(self) -> str:
        """The specialist's name."""
        return self.specialist.card.name

    async def _call(self, meter: Meter) -> SpecialistResult:
        if self.context.attempt != self.number:
            self.context = self.context.replace(attempt=self.number)
        context = self.context
        key = {"idempotency_key": context.idempotency_key}
        metered = with_handlers(self.config, [meter.handler], metadata=key)
        config = as_the_caller_bounds(to_its_end(metered))
        # What runs without being handed the configuration finds it here.
        token = inherited_config.set(config)
        try:
            told = telling(meter.calls) if meter.calls else nullcontext()
            with self._transcript.at_work(self.number), told:
                given = await self.specialist.run(context, config)
                return storable_result(SpecialistResult.model_validate(given))
        except SystemExit as error:
            raise RuntimeError(f"it tried to end the process (exit {error.code})") from error
        except (Exception, asyncio.CancelledError, KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:
            raise RuntimeError(describe(error)) from error
        finally:
            inherited_config.reset(token)

    async def _within_limits(self, meter: Meter) -> SpecialistResult:
        """Make the try within its time and with the calls that it may make."""
        async with meter:
            seconds = self.context.plan_step.timeout or self.limits.step_timeout
            work = partial(self._call, meter)
            return await in_time(work, self._account, meter, seconds)

    def _completed(self, result: SpecialistResult, seconds: float) -> SpecialistResult:
        """Fill in what the specialist left out, and cut what is too long to be kept."""
        failed = result.status is ExecutionStatus.FAILED
        if len(result.text) > LONGEST_RESULT:
            text = within_budget(result.text, LONGEST_RESULT)
            result = result.replace(result=AIMessage(text, id=result.result and result.result.id))
        return result.replace(
            specialist_name=self.name,
            step_id=self.context.plan_step.id,
            round=self.context.round,
            retry_count=self._failures,
            duration=result.duration or seconds,
            usage=self.used,
            confidence=0.0 if failed else result.confidence,
            made_of=MadeOf(inputs=dict(self.keys.inputs), text=digest_of_text(result.text)),
            error=within_budget(
                without_secrets(
                    result.error or (result.text or "no reason given" if failed else "")
                ),
                LONGEST_ERROR,
            ),
        )

    def _meter(self) -> Meter:
        names = self._names

        def tell(text: str) -> None:
            self.emitter.stream(SpecialistToken, **names, text=text)

        is_heard = stream_is_heard(self.emitter.write, self.config)
        is_heard = is_heard or self.emitter.hooks.hears_tokens
        step = self.context.plan_step.id
        return Meter(
            self._account,
            step_scopes(self.limits, self.services, self.name, step),
            new_id=self.services.new_id,
            prices=self.services.prices,
            on_token=tell if is_heard else None,
            calls=Calls(
                emitter=self.emitter,
                config=self.config,
                about={"node": f"specialist_{self.name}", **names},
            )
            if self.emitter.is_heard
            else None,
        )

    @property
    def _account(self) -> Account:
        return self.services.accounts.of(self.services.journal, self.context.run_id)

    async def _begin_again(self, state: RetryCallState) -> None:
        """Account for a try that failed, before the next one."""
        result = _last_result(state)
        self._failures += 1
        await self._ended("failed", result.error)
        await self._transcript.restart()
        self.emitter.stream(SpecialistRetried, **self._names, error=result.error)

    @property
    def _about(self) -> dict[str, object]:
        """The fields of a record of the log."""
        return {"run_id": self.context.run_id, **self._names}

    @property
    def _names(self) -> dict[str, object]:
        return {
            "step_id": self.context.plan_step.id,
            "specialist": self.name,
            "attempt": self.number,
        }


class _Asked(Exception):  # noqa: N818 - it ends the tries, and is no error
    """A try ended with questions, which are on record."""

    def __init__(self, questions: list[Question]) -> None:
        self.questions = questions
        super().__init__()


class _CutOff(Exception):  # noqa: N818 - what it did is not known, so it is no error
    """The time of a try was over, and it must not be made again unasked."""

    def __init__(self, attempt: LedgerEntry) -> None:
        self.attempt = attempt
        super().__init__()


class _OnRecord(Exception):  # noqa: N818 - it ends the tries, and is no error
    """Somebody has recorded the result of the step meanwhile."""

    def __init__(self, result: SpecialistResult) -> None:
        self.result = result
        super().__init__()


def _failure(error: Exception) -> SpecialistResult:
    return SpecialistResult(
        status=ExecutionStatus.FAILED,
        error=describe(error),
        confidence=0.0,
        retry=can_pass(error),
    )


def _cannot_be_retried(result: SpecialistResult) -> bool:
    return result.status is not ExecutionStatus.FAILED or not result.retry


def _last_result(state: RetryCallState) -> SpecialistResult:
    if state.outcome is None:
        raise RuntimeError("a retry loop ended without a try")
    return state.outcome.result()
