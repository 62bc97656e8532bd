"""The stateless flow: the job travels in the metadata between a client and a server."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ConfigDict, Field, JsonValue

from replan.base.errors import JobError, UsageError, mistake
from replan.base.failures import describe, is_fatal_for_run
from replan.base.values import Value, adapter
from replan.jobs.extraction.port import JobMessage, MessageLike
from replan.jobs.job import Job, JobPhase
from replan.jobs.job_book import JobManager
from replan.jobs.processor import JobProcessor


class JobContext(Value):
    """Where the job of a client is.

    Attributes:
        job: The job.
        job_id: Its id, where a server keeps jobs.
    """

    job: dict[str, JsonValue] | None = Field(default=None, exclude_if=lambda job: job is None)
    job_id: str | None = Field(default=None, exclude_if=lambda name: name is None)


class JobMetadata(Value):
    """What travels with the messages (`ListingMetadata` in the design that jobs come from).

    Attributes:
        command: The command of the job.
        plan: A copy of its plan.
        context: The job.
    """

    model_config = ConfigDict(extra="ignore")

    command: str = ""
    plan: dict[str, JsonValue] | None = None
    context: JobContext = Field(default_factory=JobContext)

    def to_dict(self) -> dict[str, Any]:
        """Return the metadata as JSON, without empty parts of the context."""
        return self.model_dump(mode="json")


class FlowOutput(Value):
    """The output of the flow.

    Attributes:
        message: What the user is told or asked.
        metadata: What the client keeps, and hands to the next turn.
        error: Why the turn failed; empty if it did not.
    """

    message: JobMessage
    metadata: JobMetadata
    error: str = ""


async def run_flow(
    processor: JobProcessor,
    metadata: JobMetadata | Mapping[str, Any] | None,
    messages: Sequence[MessageLike],
    jobs: JobManager | None = None,
) -> FlowOutput:
    """Take a turn of the job in the metadata, or of a new one. Nothing is stored here.

    A turn that fails gives a failed job. What is no failure of the job is raised, and leaves the
    job as it was, so that the same turn can be taken again.

    Args:
        processor: Processes the job.
        metadata: The metadata from the last turn; None at the beginning.
        messages: The conversation, or its newest messages.
        jobs: The stored jobs, if the metadata may name one by its id. A job in the metadata takes
            precedence over the stored one.

    Raises:
        JobError: The job in the metadata cannot be used, or no job has its id.
        UsageError: What the caller has given to the turn is wrong.
        LimitReachedError: A limit of the run is reached.
        StorageError: A storage that the turn needs cannot be used.
    """
    job_metadata = adapter(JobMetadata).validate_python(metadata or {})
    job = await _job_in(job_metadata, processor, jobs)
    try:
        result = await processor.process(job, messages)
    except Exception as error:
        if is_fatal_for_run(error) or isinstance(error, UsageError):
            raise
        why = describe(error)
        failed = job.replace(phase=JobPhase.FAILED, error=why, error_code="broken")
        return await _output(failed.noted("ended", "broken"), why, jobs, why)
    return await _output(result.job, result.response_message, jobs)


def get_job_from_metadata(metadata: JobMetadata) -> Mapping[str, Any] | None:
    """The job in the metadata; None if there is none."""
    return metadata.context.job


async def _job_in(metadata: JobMetadata, processor: JobProcessor, jobs: JobManager | None) -> Job:
    found = get_job_from_metadata(metadata)
    if found is not None:
        return processor.read(found)
    if (job_id := metadata.context.job_id) is not None:
        if jobs is None:
            fix = "Hand over the job itself, or leave job_id out to begin a new one."
            raise JobError([mistake("job_id", job_id, "no jobs are kept here", fix)])
        return await jobs.get_job(job_id)
    return processor.new_job(metadata.command)


async def _output(job: Job, text: str, jobs: JobManager | None, error: str = "") -> FlowOutput:
    if jobs is not None:
        await jobs.update_job(job)
    plan = None if job.plan is None else job.plan.model_dump(mode="json")
    context = JobContext(job=job.to_dict(), job_id=None if jobs is None else job.id)
    return FlowOutput(
        message=JobMessage(role="assistant", content=text),
        metadata=JobMetadata(command=job.command, plan=plan, context=context),
        error=error,
    )
