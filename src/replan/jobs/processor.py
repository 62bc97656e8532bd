"""The engine of jobs: a job and the newest messages in, the next job and what to say out."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from pydantic import JsonValue

from replan.base.values import Value
from replan.jobs.actions import Executor
from replan.jobs.extraction.port import (
    Extracted,
    Extractor,
    JobMessage,
    MessageLike,
    Wanted,
    messages_of,
)
from replan.jobs.job import CONFIRMATION, Asked, Job, JobExecutionContext, JobPhase
from replan.jobs.job_reading import read_job
from replan.jobs.phases.collector import InformationCollector
from replan.jobs.phases.corrector import PhaseCorrector
from replan.jobs.phases.handlers import handlers_of
from replan.jobs.phases.job_turn import ProcessInput, ProgressTracker, hear, newest_user_text
from replan.jobs.phases.outputs import (
    Engine,
    PhaseHandler,
    ProcessOutput,
    fail,
    failed,
    go_on,
    too_many_corrections,
)
from replan.jobs.phases.planning import ItemPlanner, Planner, following_id
from replan.jobs.sayings import Language, is_acknowledgement, joined, language_of, say
from replan.jobs.spec.job_spec import JobSpec
from replan.jobs.views import shown_value

MOST_TRANSITIONS = 20
"""Phases that a job passes in one turn at most."""


class ProcessResult(Value):
    """The outcome of a turn.

    Attributes:
        next_phase: The phase of the job.
        response_message: What the user is told or asked.
        need_user_input: Whether the job waits for the user.
        is_completed: Whether the job is done.
        job: The job after the turn; pass it to the next turn.
    """

    next_phase: JobPhase
    response_message: str
    need_user_input: bool
    is_completed: bool
    job: Job


class JobProcessor:
    """Processes the jobs of a spec. It stores nothing between two calls."""

    def __init__(  # noqa: PLR0913 - each part can be replaced
        self,
        spec: JobSpec,
        *,
        extractor: Extractor,
        executor: Executor,
        clock: Callable[[], datetime],
        new_id: Callable[[], str],
        planner: Planner | None = None,
        corrector: PhaseCorrector | None = None,
        handlers: Callable[[Engine], Iterable[PhaseHandler]] = handlers_of,
    ) -> None:
        """Prepare; `job_processor` makes one with the usual parts.

        Args:
            spec: The spec.
            extractor: Finds values in messages.
            executor: Does actions.
            clock: Gives the time, with its zone.
            new_id: Gives the id of a new job.
            planner: Makes plans, if not one of all values.
            corrector: Corrects phases, if not by the usual rules.
            handlers: Makes the handlers of the phases.
        """
        self.spec = spec
        self._clock, self._new_id = clock, new_id
        self.collector = InformationCollector(spec, extractor)
        self._corrector = corrector or PhaseCorrector()
        self._engine = Engine(
            spec=spec,
            collector=self.collector,
            tracker=ProgressTracker(spec.max_asks),
            planner=planner or ItemPlanner(),
            executor=executor,
            clock=clock,
        )
        self._handlers = tuple(handlers(self._engine))

    def new_job(
        self,
        command: str = "",
        values: Mapping[str, JsonValue] | None = None,
        *,
        job_id: str | None = None,
        language: Language | None = None,
        context: JobExecutionContext | None = None,
    ) -> Job:
        """Make a job.

        Args:
            command: The command, if it is known. A spec with one command needs none.
            values: Values of slots that are known already. They are checked like those of a user.
            job_id: The id; by default a new one.
            language: The language of the user, if it is known.
            context: Data for the execution.

        Raises:
            JobError: The command or a name is unknown.
        """
        commands = self.spec.commands
        command = command or (commands[0].name if len(commands) == 1 else "")
        job = Job(
            id=job_id or self._new_id(),
            type=self.spec.name,
            version=self.spec.version,
            command=command,
            collected_info=dict(values or {}),
            language=language or self.spec.languages[0],
            context=context,
        )
        return read_job(job, self.spec).noted("started", command)

    def read(self, job: Job | Mapping[str, Any]) -> Job:
        """Read a job of this spec that comes from outside.

        Raises:
            JobError: It cannot be used; the error names every field.
        """
        return read_job(job, self.spec)

    async def process(
        self, job: Job | Mapping[str, Any], messages: Sequence[MessageLike] = ()
    ) -> ProcessResult:
        """Take one turn of a job; the given job is not changed.

        The phases follow each other until the user is needed or the job is over. What the user said
        since the assistant spoke last is new; the messages before it are context. A job that is
        completed or cancelled is followed by a new one; one that failed is taken up again.

        Args:
            job: The job, or what `to_dict` gave.
            messages: The conversation, or only its newest messages: texts of the user, mappings
                with role and content, or LangChain's messages.

        Raises:
            JobError: The job is not one of this spec.
        """
        job = read_job(job, self.spec)
        messages = messages_of(messages)
        message = newest_user_text(messages)
        if job.is_over and not message:
            return _result(failed(job))
        if job.phase is JobPhase.COMPLETED and is_acknowledgement(message):
            return _result(replace(failed(job), user_prompt=say("over", job.language)))
        job = self._begun(job, message)
        turn = ProcessInput(messages, message, await self._extract(job, message, messages))
        if turn.found.cancelled:
            return _result(fail(job, "cancelled", say("cancelled", job.language)))
        output = await self._through_phases(job, turn)
        return _result(self._with_understood(output, turn))

    async def _extract(self, job: Job, said: str, messages: Sequence[JobMessage]) -> Extracted:
        if not said:
            return Extracted()
        today = self._clock().date()
        wanted = Wanted(spec=self.spec, job=job, said=said, messages=messages, today=today)
        return await self.collector.extractor.extract(wanted)

    async def _through_phases(self, job: Job, turn: ProcessInput) -> ProcessOutput:
        for _ in range(MOST_TRANSITIONS):
            output = await self._in_phase(self._corrector.corrected(job), turn)
            job = output.job
            if output.needs_user_interaction or job.is_over:
                return output
            if output.next_phase is not job.phase:
                job = job.replace(phase=output.next_phase).noted("moved")
        return fail(job, "broken", f"The job passed {MOST_TRANSITIONS} phases in one turn.")

    async def _in_phase(self, job: Job, turn: ProcessInput) -> ProcessOutput:
        is_ready, issues = self._corrector.validate_phase_prerequisites(job, job.phase)
        handler = next(
            (handler for handler in self._handlers if handler.can_handle(job.phase)), None
        )
        if not is_ready or handler is None:
            why = "; ".join(issues) or f"Nothing handles the phase {job.phase}."
            return fail(job, "broken", why)
        if not turn.is_heard and handler.hears(job, turn):
            job = hear(self.spec, self._engine.tracker, job, turn)
            if (too_many := too_many_corrections(self._engine, job)) is not None:
                return too_many
            if self._corrector.correct_phase(job)[0].comes_before(job.phase):
                return go_on(job, job.phase)
        return await handler.process(job, turn)

    def _with_understood(self, output: ProcessOutput, turn: ProcessInput) -> ProcessOutput:
        """Say which values were understood, where the output does not show all of them."""
        job, spec = output.job, self.spec
        names = [name for name in turn.understood if name in job.collected_info]
        if not names or job.asked.names == (CONFIRMATION,):
            return output
        values = joined([shown_value(spec, job, name) for name in names], job.language)
        text = say("understood", job.language, values=values)
        return replace(output, user_prompt=f"{text}\n{output.user_prompt}")

    def _begun(self, job: Job, message: str) -> Job:
        """Begin a turn: a new job after one that is over, or one that failed taken up again."""
        language = job.language
        if message:
            language = language_of(message, self.spec.languages, language)
        if job.is_over and (job.phase is JobPhase.COMPLETED or job.error_code == "cancelled"):
            follows = following_id(job)
            job = self.new_job(job_id=follows, language=language, context=job.context)
        elif job.is_over:
            phase = JobPhase.INFORMATION_COLLECTION if job.command else JobPhase.INTENT_RECOGNITION
            # What an API refused may be given again; what it was asked for last is over.
            failed = (CONFIRMATION, *job.collected_info) if job.error_code == "action" else ()
            asked = Asked(names=failed or job.asked.names)
            job = job.replace(
                phase=phase, error="", error_code="", asked=asked, turns=0, corrections=0
            ).noted("started", "taken up again")
        return job.replace(turns=job.turns + 1, language=language)


def _result(output: ProcessOutput) -> ProcessResult:
    return ProcessResult(
        next_phase=output.job.phase,
        response_message=output.user_prompt,
        need_user_input=output.needs_user_interaction,
        is_completed=output.job.phase is JobPhase.COMPLETED,
        job=output.job,
    )
