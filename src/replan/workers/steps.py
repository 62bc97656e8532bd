"""Steps in a queue: work that a run sends to workers on other machines, and how they do it.

What they tell each other are notes of the run, encrypted where its storage is. A step is known by
its idempotency key, so one that is begun again is the same job; of two ends the first one counts.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from langgraph.errors import GraphBubbleUp
from pydantic import JsonValue

from replan.base.errors import LimitReachedError
from replan.base.failures import describe, is_busy, is_transient
from replan.base.values import restored
from replan.log.events.emitter import Emitter, Hooks
from replan.log.events.types import (
    BaseEvent,
    MemorySummary,
    MessageText,
    ModelCompleted,
    ModelInvoked,
)
from replan.log.labels import QUEUE
from replan.log.run_log import RunLog
from replan.log.transcript import Transcript
from replan.models.retries import tries_of
from replan.models.spending.deadline import was_cut_off
from replan.ports.ask_user import Waiting
from replan.ports.elsewhere import Refusal, StepJob, StepOutcome
from replan.ports.storage import Storage
from replan.runs.stopping import put_an_end_to
from replan.specialists.services import Services
from replan.specialists.steps.attempts import StepWork
from replan.specialists.steps.step_record import Asker
from replan.state.limits import TRIES
from replan.state.questions import Question
from replan.state.results import SpecialistResult, result_as_json
from replan.workers.queue import LEASE, NewJob, Queue

logger = logging.getLogger(__name__)

STEP = "step"  # the kind of these jobs

_LOOK = 0.2
_ASK_EACH = 10  # checks between two questions whether a worker has the job
_MOST_PUTS = 5
_GATHERED = 0.1


class _StepNotes(NamedTuple):
    """The notes of a step, in the log of its run."""

    log: RunLog
    run_id: str
    key: str

    def key_of(self, what: str) -> str:
        return f"elsewhere/{self.key}/{what}"

    async def write(self, what: str, value: JsonValue) -> JsonValue:
        return await self.log.note(self.run_id, self.key_of(what), value)

    async def read(self) -> Mapping[str, Any]:
        start = self.key_of("")
        rows = await self.log.notes(self.run_id, start)
        return {key.removeprefix(start): value for key, value in rows.items()}

    async def remove(self, what: str = "") -> None:
        await self.log.strike(self.run_id, self.key_of(what))


class QueuedSteps:
    """Gives steps to the workers of their queues, and waits for their outcome."""

    def __init__(self, queue: Queue, storage: Storage, digest: str) -> None:
        self._queue = queue
        self._storage = storage
        self._digest = digest

    async def make_attempt(
        self,
        queue: str,
        job: StepJob,
        on_event: Callable[[Any], None],
        on_begin: Callable[[], None],
    ) -> StepOutcome:
        """Have an attempt made, and wait for its end."""
        context = job.context
        step_notes = _StepNotes(self._storage.log, context.run_id, context.idempotency_key)
        record = await self._storage.runs.get(context.run_id)
        labels = record.labels if record is not None else {}
        lock = f"step:{context.run_id}:{context.idempotency_key}"
        ids: dict[str, JsonValue] = {"run_id": context.run_id, "key": context.idempotency_key}
        queue_job = NewJob.labelled(STEP, lock, self._digest, {**labels, QUEUE: queue}, ids)
        await self._clear(step_notes, queue_job, context.attempt)
        await step_notes.write("errand", job.model_dump(mode="json"))
        await self._queue.put(queue_job)
        try:
            return await self._await_end(step_notes, queue_job, on_event, on_begin)
        except asyncio.CancelledError:
            await step_notes.write("stop", value=True)
            await self._queue.cancel(queue_job.lock)
            raise

    async def _clear(self, step_notes: _StepNotes, job: NewJob, attempt: int) -> None:
        """Remove the notes of an earlier attempt; one that a killed run left at work continues."""
        notes = await step_notes.read()
        # Its worker reads so soon, or is taken for dead.
        while "stop" in notes and await self._queue.has(job.lock):  # noqa: ASYNC110 - in another process
            await asyncio.sleep(_LOOK)
        end = restored(StepOutcome, notes["end"]) if "end" in notes else None
        is_past = end is not None and end.attempt < attempt and not _is_success(end)
        if "stop" in notes or is_past:
            await step_notes.remove()

    async def _await_end(
        self,
        step_notes: _StepNotes,
        job: NewJob,
        on_event: Callable[[Any], None],
        on_begin: Callable[[], None],
    ) -> StepOutcome:
        looks = puts = 0
        while True:
            notes = await step_notes.read()
            if any(note.startswith("begun") for note in notes):
                on_begin()
            for what in [note for note in notes if note.startswith("event/")]:
                for event in notes[what]:
                    on_event(event)
                await step_notes.remove(what)
            if "end" in notes:
                return restored(StepOutcome, notes["end"])
            looks += 1
            if looks % _ASK_EACH == 0 and not await self._queue.has(job.lock):
                if puts == _MOST_PUTS:
                    problem = f"No worker brought it to an end; it was put there {1 + puts} times."
                    return StepOutcome(how="failed", error=problem, is_transient=False)
                puts += await self._queue.put(job)
            await asyncio.sleep(_LOOK)


class StepJobs:
    """Does the steps that runs have put into the queue; a worker has it."""

    def __init__(self, services: Services, log: RunLog, lease: float = LEASE) -> None:
        self._services = services
        self._log = log
        self._lease = lease

    async def do(self, run_id: str, key: str) -> None:
        """Make an attempt of a step, unless it has ended, is no longer needed, or others make it.

        Args:
            run_id: The run.
            key: The idempotency key of the step.
        """
        fetched_at, step_notes = self._services.clock(), _StepNotes(self._log, run_id, key)
        notes = await step_notes.read()
        if "errand" not in notes or "end" in notes or "stop" in notes:
            return
        job = restored(StepJob, notes["errand"])
        card = self._services.specialists[job.specialist].card
        begun = [note for note in notes if note.startswith("begun")]
        if begun and card.effects == "unsafe":
            problem = "its worker ended in the middle, and nobody knows what it did"
            end = StepOutcome(how="cut off", error=problem, attempt=job.context.attempt)
        elif await self._claim(step_notes, len(begun), fetched_at):
            end = await self._make_attempt(job, step_notes)
        else:
            return
        if end is not None:
            await step_notes.write("end", end.model_dump(mode="json"))

    async def _claim(
        self, step_notes: _StepNotes, earlier_begins: int, fetched_at: datetime
    ) -> bool:
        """Record that this worker begins; False if another one was first, or may have the job."""
        claim_id = self._services.new_id()
        first = await step_notes.write(
            f"begun/{earlier_begins}" if earlier_begins else "begun", claim_id
        )
        # Once the lease is over, another worker has the job, and takes this one for dead.
        is_late = self._services.clock() - fetched_at >= timedelta(seconds=self._lease)
        if first == claim_id and not is_late:
            return True
        extra = {"run_id": step_notes.run_id, "key": step_notes.key}
        logger.warning("a step is left to another worker", extra=extra)
        return False

    async def _make_attempt(self, job: StepJob, step_notes: _StepNotes) -> StepOutcome | None:
        """Make an attempt and record its events meanwhile; None if the run no longer needs it."""
        events = asyncio.Queue[BaseEvent]()
        making = asyncio.ensure_future(run_queued_step(job, self._services, events.put_nowait))
        try:
            while not making.done():
                await asyncio.wait({making}, timeout=_GATHERED)
                await self._record_events(step_notes, events)
                if not making.done() and await self._is_stopped(step_notes):
                    return None
            await self._record_events(step_notes, events)
            return making.result()
        finally:
            await put_an_end_to(making)

    async def _is_stopped(self, step_notes: _StepNotes) -> bool:
        name = step_notes.key_of("stop")
        return name in await self._log.notes(step_notes.run_id, name)

    async def _record_events(
        self, step_notes: _StepNotes, events: "asyncio.Queue[BaseEvent]"
    ) -> None:
        batch = list[JsonValue]()
        while not events.empty():
            batch.append(_event_as_json(events.get_nowait()))
        if batch:
            await step_notes.write(f"event/{self._services.new_id()}", batch)


def _is_success(end: StepOutcome) -> bool:
    """Whether it is a result that counts, which the run did not record before it was killed."""
    return end.how == "result" and not restored(SpecialistResult, end.result).is_failed


def _event_as_json(event: BaseEvent) -> JsonValue:
    """An event as JSON, with the texts that are left out of it elsewhere."""
    fields = event.model_dump(mode="json")
    if isinstance(event, ModelInvoked | MemorySummary):
        fields["prompt"] = [_message_json(message) for message in event.prompt]
    if isinstance(event, ModelCompleted | MemorySummary) and event.reply is not None:
        fields["reply"] = _message_json(event.reply)
    return fields


def _message_json(message: MessageText) -> JsonValue:
    return {"role": message.role, "text": message.text}


async def run_queued_step(
    job: StepJob, services: Services, tell: Callable[[BaseEvent], None]
) -> StepOutcome:
    """Make an attempt of a step of another process's run."""
    attempt = _step_work(job, services, tell)
    end = await _end_of(attempt)
    questions = tuple(attempt.asker.listed)
    meter = attempt.meter
    refusal = end.refusal or (Refusal.of(meter.refused) if meter.refused else None)
    return end.replace(
        asked=questions, used=meter.count, refusal=refusal, attempt=job.context.attempt
    )


def _step_work(job: StepJob, services: Services, tell: Callable[[BaseEvent], None]) -> StepWork:
    context, settings, run_id = job.context, job.settings, job.context.run_id

    def new(question: Question) -> Question:
        # Whether the run may ask more is said where the run is.
        return question.replace(asked_at=services.clock())

    transcript = Transcript(services.log, run_id, context.idempotency_key, job.on_doubt)
    transcript.attempt = context.attempt
    step_id, specialist = context.plan_step.id, job.specialist
    keeps_prompts = bool(settings.keep_prompts)
    hooks = Hooks().of(run_id)
    return StepWork(
        context=context,
        specialist=services.specialists[specialist],
        services=services,
        settings=settings,
        emitter=Emitter(tell, hooks, run_id, context.round, keeps_prompts=keeps_prompts),
        asker=Asker(step_id, specialist, known=job.questions, new=new),
        make_transcript=lambda: transcript,
        thread_id=job.thread_id,
    )


async def _end_of(attempt: StepWork) -> StepOutcome:
    try:
        result = await attempt.result(attempt.specialist.run)
    except Waiting:
        return StepOutcome(how="asked")
    except GraphBubbleUp:
        problem = "A graph interrupted itself, which cannot be answered from another process."
        fix = "Ask with replan.ask_user, or let the specialist have no queue."
        return StepOutcome(how="failed", error=f"{problem} {fix}", is_transient=False)
    except Exception as error:  # noqa: BLE001 - whatever it is, the run is told
        return _end_of_failure(error)
    if attempt.asker.asked:
        return StepOutcome(how="asked")
    return StepOutcome(how="result", result=result_as_json(result))


def _end_of_failure(error: Exception) -> StepOutcome:
    if isinstance(error, LimitReachedError):
        return StepOutcome(how="limit", refusal=Refusal.of(error))
    can_help = is_transient(error) and tries_of(error) < TRIES
    how = "cut off" if was_cut_off(error) else "failed"
    return StepOutcome(
        how=how, error=describe(error), is_transient=can_help, is_busy=is_busy(error)
    )
