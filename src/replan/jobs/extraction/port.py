"""What finds values in messages, as the engine sees it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Literal, Protocol

from pydantic import Field, JsonValue

from replan.jobs.job import Job
from replan.jobs.spec.job_spec import JobSpec
from replan.values import Value


class JobMessage(Value):
    """A message of the conversation about a job.

    Attributes:
        role: Who said it.
        content: Its text.
    """

    role: Literal["user", "assistant", "system"]
    content: str


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What is looked for in messages.

    Attributes:
        spec: The spec.
        job: The job as it is; what it asks for is in `asked`.
        said: The new messages of the user.
        messages: The whole conversation, as far as it is known.
        today: The day, to which words such as 'tomorrow' refer.
    """

    spec: JobSpec
    job: Job
    said: str
    messages: Sequence[JobMessage] = ()
    today: date

    @property
    def names(self) -> tuple[str, ...]:
        """The slots that may be filled."""
        return self.spec.slots_of(self.job.command)

    @property
    def asked(self) -> str:
        """What the open question is about: a slot, the command, the confirmation, or nothing."""
        return next(iter(self.job.asked.names), "")


class Extracted(Value):
    """What was found in messages; nothing of it is trusted.

    Attributes:
        command: The command that the user wants, as it was found.
        values: Values of slots by name, in any form.
        confirmed: Whether the user said yes or no; None if neither.
        cancelled: Whether the user wants to end the job.
        dropped: Names that were found and are not slots.
        trouble: Why the search failed in part, for operators.
    """

    command: str = ""
    values: dict[str, JsonValue] = Field(default_factory=dict)
    confirmed: bool | None = None
    cancelled: bool = False
    dropped: tuple[str, ...] = ()
    trouble: str = ""


class Extractor(Protocol):
    """Finds the command and the values of slots in messages."""

    async def extract(self, wanted: Wanted) -> Extracted:
        """Look through the new messages of the user."""
        ...
