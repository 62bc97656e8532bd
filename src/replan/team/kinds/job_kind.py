"""A specialist that is a job."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, cast

from pydantic import PlainValidator, ValidationInfo, WithJsonSchema

from replan.base.declared.part import Surroundings, field_error
from replan.base.errors import JobFileError
from replan.team.chats import Chats
from replan.team.fields.models import Model
from replan.team.kinds.member import Member

if TYPE_CHECKING:
    from replan.jobs.spec.job_spec import JobSpec
    from replan.ports.specialist_port import SpecialistPort


def job_spec(value: object, info: ValidationInfo) -> object:
    """Take a job spec, or the file of one; in a team file, relative to it."""
    from replan.jobs.spec.job_file import read_job_file
    from replan.jobs.spec.job_spec import JobSpec

    around = cast("Surroundings | None", info.context)
    if isinstance(value, JobSpec) and around is None:
        return value
    if not isinstance(value, str | Path):
        raise field_error(
            "wrong_type", "This is not a job.", "Give a JobSpec, or the name of a job file."
        )
    path = Path(value) if around is None else around.folder / value
    try:
        return read_job_file(path, imports=around is None or around.imports)
    except JobFileError as error:
        reason = f"The job cannot be used: {error}."
        raise field_error("bad_job", reason, "Correct the job file.") from error


# A type checker sees what Python gives.
if TYPE_CHECKING:
    JobField = JobSpec | Path | str
else:
    JobField = Annotated[Any, PlainValidator(job_spec), WithJsonSchema({"type": "string"})]


class JobMember(Member):
    """A specialist that is a job.

    Attributes:
        job: A JobSpec, or the path of a job file; in a team file relative to it. Its steps ask the
            user for what the job needs, and do it once.
        extraction_model: The model that reads what users say where rules do not understand it:
            a chat model or a name. Without it, rules read alone.
    """

    marks: ClassVar[tuple[str, ...]] = ("job",)

    job: JobField | None = None
    extraction_model: Model | None = None

    @property
    def most_turns(self) -> int:
        """The turns of a step at most. What its models said in them is kept."""
        return cast("JobSpec", self.job).max_turns

    def built(self, location: str, chats: Chats) -> "SpecialistPort":
        """Build what takes its turns."""
        from replan.jobs.job_api import ApiExecutor
        from replan.specialists.job import JobSpecialist

        model = self.extraction_model
        return JobSpecialist(
            # What it did is on record, so a step of it may always be sent again.
            card=self.card_with("keyed"),
            spec=cast("JobSpec", self.job),
            api=ApiExecutor(chats.environment),
            clock=chats.clock,
            chat=None if model is None else chats.of(model, f"{location}.extraction_model"),
        )
