"""Jobs that are stored by their ids, for callers that do not pass the job itself."""

from collections.abc import Sequence
from typing import Protocol

from replan.base.errors import JobError, mistake
from replan.jobs.job import Job, JobPhase
from replan.jobs.phases.collector import InformationCollector
from replan.jobs.phases.corrector import PhaseCorrector
from replan.jobs.processor import JobProcessor
from replan.jobs.spec.slot import ValidationIssue


class JobRepository(Protocol):
    """A store of jobs."""

    async def load(self, job_id: str) -> Job | None:
        """The job of an id; None if there is none."""
        ...

    async def save(self, job: Job) -> None:
        """Keep a job in place of the one with its id."""
        ...


class MemoryJobs:
    """Jobs in the memory of the process."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}

    async def load(self, job_id: str) -> Job | None:
        return self._jobs.get(job_id)

    async def save(self, job: Job) -> None:
        self._jobs[job.id] = job


class JobManager:
    """Manages jobs that are stored by their ids."""

    def __init__(self, processor: JobProcessor, jobs: JobRepository | None = None) -> None:
        """Prepare.

        Args:
            processor: Makes and processes the jobs.
            jobs: Where they are kept; by default in memory.
        """
        self._processor = processor
        self._jobs = MemoryJobs() if jobs is None else jobs
        self._corrector = PhaseCorrector()

    async def create_job(self, command: str, user_message: str) -> Job:
        """Create a job, process its first message, and store it."""
        job = self._processor.new_job(command)
        messages = [user_message] if user_message.strip() else []
        job = (await self._processor.process(job, messages)).job
        await self._jobs.save(job)
        return job

    async def get_job(self, job_id: str) -> Job:
        """The job of an id.

        Raises:
            JobError: There is none.
        """
        job = await self._jobs.load(job_id)
        if job is None:
            fix = "Hand over the job itself, or start a new one."
            raise JobError([mistake("job_id", job_id, "there is no such job", fix)])
        return job

    async def update_job(self, job: Job) -> None:
        """Store a changed job."""
        await self._jobs.save(job)

    async def transition_phase(self, job_id: str, new_phase: JobPhase) -> Job:
        """Put a job into a phase.

        Raises:
            JobError: There is no such job, or something is missing for the phase.
        """
        job = await self.get_job(job_id)
        is_ready, issues = self._corrector.validate_phase_prerequisites(job, new_phase)
        if not is_ready:
            fix = f"It belongs in {self._corrector.correct_phase(job)[0]}."
            raise JobError([mistake("phase", str(new_phase), "; ".join(issues), fix)])
        job = job.replace(phase=new_phase).noted("moved")
        await self._jobs.save(job)
        return job

    def validate_job_info(self, job: Job) -> Sequence[ValidationIssue]:
        """Wrong or missing values of a job."""
        collector: InformationCollector = self._processor.collector
        required = collector.get_required_info(job.command)
        return collector.validate_info(job.collected_info, required, job.language)
