"""A step that workers of another queue do: what they receive, and what its end means here.

In the worker, the attempt is the same as in the run's process, made of the job of the queue.
"""

from collections.abc import Callable
from contextlib import ExitStack
from typing import cast

from langgraph.errors import GraphBubbleUp
from pydantic import TypeAdapter

from replan.errors import LimitReachedError, StepElsewhereError
from replan.events.emitter import Emitter, Hooks
from replan.events.types import BaseEvent, Event
from replan.failures import can_pass, describe
from replan.log.transcript import Transcript
from replan.models.retries import tries_of
from replan.plan.preview import TRIES
from replan.ports.ask_user import Waiting
from replan.ports.context import here, using
from replan.ports.elsewhere import Elsewhere, StepEnd, StepErrand
from replan.services import Services
from replan.spending.deadline import was_cut_off
from replan.spending.meter import Meter
from replan.state.questions import Question
from replan.state.results import ExecutionContext, SpecialistResult, result_as_json
from replan.steps.attempt import Attempt
from replan.steps.step_record import Asker, StepRecord
from replan.values import restored

_EVENT = TypeAdapter[Event](Event)


async def done_elsewhere(
    elsewhere: Elsewhere, queue: str, context: ExecutionContext, record: StepRecord, meter: Meter
) -> SpecialistResult:
    """Let a worker of a queue make an attempt; its questions and errors are those of the step."""
    errand = StepErrand(
        context=context,
        specialist=record.specialist,
        settings=record.board.settings,
        on_doubt=record.on_doubt,
        questions=record.questions,
        thread_id=record.thread_id,
    )
    emitter = record.emitter
    meter.spends_elsewhere()
    # The time in the queue does not count as time of the step.
    with ExitStack() as in_queue:
        in_queue.enter_context(meter.waiting.running())
        end = await elsewhere.done(
            queue, errand, lambda event: _report(event, emitter), in_queue.close
        )
    meter.count_elsewhere(end.used)
    _ask_again(end)
    match end.how:
        case "result":
            return restored(SpecialistResult, end.result)
        case "limit":
            raise LimitReachedError(*end.limit)
        case _:
            raise StepElsewhereError(
                queue, end.error, can_pass=end.can_pass, is_cut_off=end.how == "cut off"
            )


def _report(event: object, emitter: Emitter) -> None:
    """Report an event of the other process as one of this run."""
    emitter.pass_on(_EVENT.validate_python(event))


def _ask_again(end: StepEnd) -> None:
    """Ask here what the worker asked: return the known answers, and wait for the others."""
    asker, waiting = here().asker, cast("Waiting | None", None)
    if asker is None:
        raise RuntimeError("a step has somebody who asks")
    for asked in end.asked:
        try:
            with using(place=asked.place):
                asker.ask(asked.text, asked.kind, asked.details, secret=asked.secret)
        except Waiting as signal:
            waiting = signal
    if waiting is not None and end.how == "asked":
        raise waiting


async def done_for_another(
    errand: StepErrand, services: Services, tell: Callable[[BaseEvent], None]
) -> StepEnd:
    """Make an attempt of a step of another process's run."""
    attempt = _attempt(errand, services, tell)
    end = await _end_of(attempt)
    asked = tuple(attempt.asker.listed)
    return end.replace(asked=asked, used=attempt.meter.count, attempt=errand.context.attempt)


def _attempt(errand: StepErrand, services: Services, tell: Callable[[BaseEvent], None]) -> Attempt:
    context, settings, run_id = errand.context, errand.settings, errand.context.run_id

    def new(question: Question) -> Question:
        # Whether the run may ask more is said where the run is.
        return question.replace(asked_at=services.clock())

    transcript = Transcript(services.log, run_id, context.idempotency_key, errand.on_doubt)
    transcript.attempt = context.attempt
    step_id, specialist = context.plan_step.id, errand.specialist
    keeps_prompts = bool(settings.keep_prompts)
    hooks = Hooks().of(run_id)
    return Attempt(
        context=context,
        specialist=services.specialists[specialist],
        services=services,
        settings=settings,
        emitter=Emitter(tell, hooks, run_id, context.round, keeps_prompts=keeps_prompts),
        asker=Asker(step_id, specialist, known=errand.questions, new=new),
        make_transcript=lambda: transcript,
        thread_id=errand.thread_id,
    )


async def _end_of(attempt: Attempt) -> StepEnd:
    meter = attempt.meter
    try:
        result = await attempt.result(attempt.specialist.run)
    except Waiting:
        return StepEnd(how="asked")
    except GraphBubbleUp:
        told = "A graph interrupted itself, which cannot be answered from another process."
        fix = "Ask with replan.ask_user, or let the specialist have no queue."
        return StepEnd(how="failed", error=f"{told} {fix}", can_pass=False)
    except Exception as error:  # noqa: BLE001 - whatever it is, the run is told
        return _end_of_failure(error, meter)
    if attempt.asker.asked:
        return StepEnd(how="asked")
    if meter.refused is not None and result.is_failed:
        return _end_of_failure(meter.refused, meter)
    return StepEnd(how="result", result=result_as_json(result))


def _end_of_failure(error: Exception, meter: Meter) -> StepEnd:
    limit = error if isinstance(error, LimitReachedError) else meter.refused
    if limit is not None:
        return StepEnd(how="limit", limit=(limit.limit, limit.value, limit.scope))
    can_help = can_pass(error) and tries_of(error) < TRIES
    how = "cut off" if was_cut_off(error) else "failed"
    return StepEnd(how=how, error=describe(error), can_pass=can_help)
