"""The output of a phase: the job after it, and whether the user is needed."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from pydantic import JsonValue

from replan.jobs.actions import Executor
from replan.jobs.job import COMMAND, CONFIRMATION, FailureCode, Job, JobPhase
from replan.jobs.phases.collector import InformationCollector
from replan.jobs.phases.job_turn import ProcessInput, ProgressTracker
from replan.jobs.phases.planning import Planner
from replan.jobs.sayings import joined, say
from replan.jobs.spec.job_spec import JobSpec


@dataclass(frozen=True, kw_only=True)
class Engine:
    """What the handlers of a job work with; each part can be replaced."""

    spec: JobSpec
    collector: InformationCollector  # knows what is needed, and asks for it
    tracker: ProgressTracker  # keeps a job from marking time
    planner: Planner
    executor: Executor
    clock: Callable[[], datetime]


@dataclass(frozen=True, kw_only=True)
class ProcessOutput:
    """The output of a phase."""

    job: Job  # the job after it
    next_phase: JobPhase  # the phase that comes next
    needs_user_interaction: bool = False  # whether the user is needed first
    user_prompt: str = ""  # what the user is told or asked
    execution_result: JsonValue = None


class PhaseHandler(ABC):
    """Does the work of a phase."""

    phase: JobPhase
    next_phase: JobPhase

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def can_handle(self, phase: JobPhase) -> bool:
        """Whether this is its phase."""
        return phase is self.phase

    def hears(self, job: Job, turn: ProcessInput) -> bool:
        """Whether the job takes the values of the message before this phase does its work."""
        return True

    @abstractmethod
    async def process(self, job: Job, turn: ProcessInput) -> ProcessOutput:
        """Do it, on a copy."""

    def get_next_phase(self, job: Job) -> JobPhase:
        """The phase that comes after it if all goes well."""
        return self.next_phase

    def get_required_info(self, job: Job) -> tuple[str, ...]:
        """The slots that the command of a job needs."""
        return self._engine.collector.get_required_info(job.command)


def go_on(job: Job, phase: JobPhase) -> ProcessOutput:
    """Continue with the next phase."""
    return ProcessOutput(job=job, next_phase=phase)


def ask(
    engine: Engine, job: Job, turn: ProcessInput, names: tuple[str, ...], text: str
) -> ProcessOutput:
    """Ask the user; the job fails if it asked too often without progress."""
    progressed = turn.progressed
    is_stuck = engine.tracker.is_stuck(job, progressed=progressed)
    if is_stuck and engine.tracker.detect_loop(job):
        called = joined([_called(engine.spec, name, job) for name in names], job.language)
        count = engine.tracker.max_asks
        return fail(job, "no_progress", say("no_progress", job.language, count=count, names=called))
    is_again = is_stuck and names == job.asked.names
    if is_again and names != (CONFIRMATION,) and not job.validation_errors:
        again = say("again", job.language, name=_called(engine.spec, names[0], job))
        text = f"{again} {text}"
    asked = engine.tracker.asking(job, names, progressed=progressed)
    job = job.replace(asked=asked).noted("asked", slots=names[:1])
    return ProcessOutput(
        job=job, next_phase=job.phase, needs_user_interaction=True, user_prompt=text
    )


def fail(job: Job, code: FailureCode, why: str) -> ProcessOutput:
    """End a job, with everything that it has collected."""
    job = job.replace(phase=JobPhase.FAILED, error=why, error_code=code)
    return failed(job.noted("ended", code))


def failed(job: Job) -> ProcessOutput:
    """Explain to the user why a job failed, and whether it can be resumed."""
    is_kept = job.error_code in ("no_progress", "corrections", "action")
    kept = f" {say('kept', job.language)}" if is_kept else ""
    return ProcessOutput(job=job, next_phase=job.phase, user_prompt=job.error + kept)


def too_many_corrections(engine: Engine, job: Job) -> ProcessOutput | None:
    """End a job whose values were changed too often."""
    most = engine.spec.max_corrections
    if job.corrections <= most:
        return None
    return fail(job, "corrections", say("corrections", job.language, count=most))


def _called(spec: JobSpec, name: str, job: Job) -> str:
    if name in (COMMAND, CONFIRMATION):
        return say(name, job.language)
    return spec.slot(name).called(job.language) if spec.knows(name) else name
