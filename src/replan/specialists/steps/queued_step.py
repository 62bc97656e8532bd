"""A step that workers of another queue do: what they receive, and what its end means here."""

from contextlib import ExitStack
from typing import cast

from replan.base.errors import StepElsewhereError
from replan.base.values import adapter, restored
from replan.log.events.emitter import Emitter
from replan.log.events.types import Event
from replan.log.events.warnings import warnings_in
from replan.models.spending.meter import Meter
from replan.ports.ask_user import Waiting
from replan.ports.elsewhere import StepJob, StepOutcome, StepQueue
from replan.ports.run_context import here, using
from replan.specialists.steps.step_record import StepRecord
from replan.state.results import ExecutionContext, SpecialistResult


async def attempt_elsewhere(
    elsewhere: StepQueue, queue: str, context: ExecutionContext, record: StepRecord, meter: Meter
) -> SpecialistResult:
    """Let a worker of a queue make an attempt; its questions and errors are those of the step."""
    job = StepJob(
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
        end = await elsewhere.make_attempt(
            queue, job, lambda event: _report(event, emitter), in_queue.close
        )
    # What its tools did is this step's to keep, and to be asked about.
    await record.transcript().reread()
    refused = end.refusal and end.refusal.error
    meter.count_elsewhere(end.used, refused)
    _ask_again(end)
    match end.how:
        case "result":
            return restored(SpecialistResult, end.result)
        case "limit" if refused is not None:
            raise refused
        case _:
            raise StepElsewhereError(
                queue,
                end.error,
                is_transient=end.is_transient,
                is_busy=end.is_busy,
                is_cut_off=end.how == "cut off",
            )


def _report(event: object, emitter: Emitter) -> None:
    """Report an event of the other process as one of this run."""
    told = adapter(Event).validate_python(event)
    emitter.warnings.extend(text for text in warnings_in(told) if text not in emitter.warnings)
    emitter.pass_on(told)


def _ask_again(end: StepOutcome) -> None:
    """Ask here what the worker asked: return the known answers, and wait for the others."""
    asker, waiting = here().asker, cast("Waiting | None", None)
    if asker is None:
        raise RuntimeError("a step has somebody who asks")
    for question in end.asked:
        try:
            with using(place=question.place):
                asker.ask(question.text, question.kind, question.details, secret=question.secret)
        except Waiting as signal:
            waiting = signal
    if waiting is not None and end.how == "asked":
        raise waiting
