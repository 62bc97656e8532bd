"""The one retry loop of a step: every try is on record, timed, counted and told."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from itertools import count

from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import merge_configs, var_child_runnable_config
from langgraph.errors import GraphBubbleUp
from tenacity import AsyncRetrying, RetryCallState, retry_if_result, stop_after_attempt
from tenacity.wait import wait_exponential_jitter

from replan.errors import LimitReachedError
from replan.events.emitter import Emitter
from replan.events.types import SpecialistInvoked, SpecialistRetried, SpecialistToken
from replan.nodes.meter import KEPT_FOR_ANSWER, Meter
from replan.ports.failures import can_pass, describe
from replan.ports.journal import Attempt
from replan.ports.services import Services
from replan.ports.specialist import SpecialistPort
from replan.prompts.budget import within_budget
from replan.state.limits import Limits
from replan.state.results import ExecutionContext, ExecutionStatus, SpecialistResult
from replan.state.usage import TokenCount

GRACE = 1.0
"""Seconds that a try which ran out of time has to end by itself before it is abandoned."""

LONGEST_RESULT = 200_000
"""Characters of a result that the state keeps; what is larger belongs into a file."""

LONGEST_ERROR = 2_000
"""Characters of an error that the state keeps."""


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
    """

    specialist: SpecialistPort
    context: ExecutionContext
    limits: Limits
    services: Services
    emitter: Emitter
    config: RunnableConfig
    used: TokenCount = field(default_factory=TokenCount)

    async def run(self) -> SpecialistResult | None:
        """Try until the step succeeds, cannot be helped, or has no try left.

        Returns:
            The result; none if the run has no model call left for it, so that it was not done.
        """
        step = self.context.plan_step
        retries = self.limits.step_retries if step.max_retries is None else step.max_retries
        loop = AsyncRetrying(
            retry=retry_if_result(_can_be_retried),
            stop=stop_after_attempt(retries + 1),
            wait=wait_exponential_jitter(
                multiplier=self.services.retry_wait, jitter=self.services.retry_wait, max=30
            ),
            before_sleep=self._tell_retry,
            retry_error_callback=_last_result,
        )
        numbers = count(1)

        async def next_try() -> SpecialistResult:
            return await self._one(next(numbers))

        try:
            result: SpecialistResult = await loop(next_try)
        except LimitReachedError as error:
            if self.used == TokenCount():
                return None
            # What was begun must be accounted for, though it could not be ended.
            result = self._completed(_failure(error), next(numbers) - 1, 0.0)
        result = result.replace(usage=self.used)
        # On record before anybody sees it: LangGraph writes a node's update in the background.
        last = self.context.replace(attempt=result.retry_count + 1)
        await self.services.journal.finished(
            attempt_of(last, self.name, self.services), result, self.services.clock()
        )
        return result

    async def _one(self, number: int) -> SpecialistResult:
        """Make one try; everything but a question to the user and a cancellation is a result."""
        context = self.context.replace(attempt=number)
        await self.emitter.emit(
            SpecialistInvoked, **self._names(number), task=context.task_description
        )
        await self.services.journal.started(attempt_of(context, self.name, self.services))
        meter = self._meter(number)
        started = time.monotonic()
        try:
            result = await self._within_time(lambda: self._call(context, meter))
        except (GraphBubbleUp, LimitReachedError):
            raise
        except Exception as error:  # noqa: BLE001 - foreign code; its failure is a result
            result = _failure(error)
        finally:
            self.used += meter.count
        return self._completed(result, number, time.monotonic() - started)

    @property
    def name(self) -> str:
        """The specialist's name."""
        return self.specialist.card.name

    async def _call(self, context: ExecutionContext, meter: Meter) -> SpecialistResult:
        config = merge_configs(self.config, {"callbacks": [meter]})
        # What runs without being handed the configuration finds it here.
        token = var_child_runnable_config.set(config)
        try:
            return SpecialistResult.model_validate(await self.specialist.run(context, config))
        except SystemExit as error:
            raise RuntimeError(f"it tried to end the process (exit {error.code})") from error
        except (Exception, asyncio.CancelledError, KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:
            raise RuntimeError(describe(error)) from error
        finally:
            var_child_runnable_config.reset(token)

    async def _within_time(
        self, work: Callable[[], Awaitable[SpecialistResult]]
    ) -> SpecialistResult:
        """Wait as long as the step may take, and not much longer for one that will not stop."""
        seconds = self.context.plan_step.timeout or self.limits.step_timeout
        task = asyncio.ensure_future(work())
        try:
            await asyncio.wait({task}, timeout=seconds)
        finally:
            in_time = task.done()
            if not in_time:
                await _stop(task)
        if not in_time:
            raise TimeoutError(f"no answer within {seconds:g} s")
        if task.cancelled():
            raise RuntimeError("it cancelled itself")
        return task.result()

    def _completed(self, result: SpecialistResult, number: int, seconds: float) -> SpecialistResult:
        """Fill in what the specialist left out, and cut what is too long to be kept."""
        failed = result.status is ExecutionStatus.FAILED
        if len(result.text) > LONGEST_RESULT:
            text = within_budget(result.text, LONGEST_RESULT)
            result = result.replace(result=AIMessage(text, id=result.result and result.result.id))
        return result.replace(
            specialist_name=self.name,
            step_id=self.context.plan_step.id,
            round=self.context.round,
            retry_count=number - 1,
            duration=result.duration or seconds,
            confidence=0.0 if failed else result.confidence,
            error=within_budget(
                result.error or (result.text or "no reason given" if failed else ""),
                LONGEST_ERROR,
            ),
        )

    def _meter(self, number: int) -> Meter:
        def tell(text: str) -> None:
            self.emitter.stream(SpecialistToken, **self._names(number), text=text)

        return Meter(
            self.services.journal,
            self.context.run_id,
            self.limits.max_model_calls,
            kept=KEPT_FOR_ANSWER,
            on_token=tell,
        )

    async def _tell_retry(self, state: RetryCallState) -> None:
        result = _last_result(state)
        await self.emitter.emit(
            SpecialistRetried, **self._names(state.attempt_number), error=result.error
        )

    def _names(self, number: int) -> dict[str, object]:
        return {
            "step_id": self.context.plan_step.id,
            "specialist": self.name,
            "attempt": number,
        }


async def _stop(task: asyncio.Future[SpecialistResult]) -> None:
    """Cancel a task; one that will not stop is abandoned, and what it says later is not heard."""
    task.cancel()
    task.add_done_callback(lambda late: late.cancelled() or late.exception())
    await asyncio.wait({task}, timeout=GRACE)


def _failure(error: Exception) -> SpecialistResult:
    return SpecialistResult(
        status=ExecutionStatus.FAILED,
        error=describe(error),
        confidence=0.0,
        retry=can_pass(error),
    )


def attempt_of(context: ExecutionContext, specialist: str, services: Services) -> Attempt:
    """The journal's row of a try."""
    return Attempt(
        run_id=context.run_id,
        step_id=context.plan_step.id,
        specialist=specialist,
        number=context.attempt,
        key=context.idempotency_key,
        started_at=services.clock(),
    )


def _can_be_retried(result: SpecialistResult) -> bool:
    return result.status is ExecutionStatus.FAILED and result.retry


def _last_result(state: RetryCallState) -> SpecialistResult:
    if state.outcome is None:
        raise RuntimeError("a retry loop ended without a try")
    return state.outcome.result()
