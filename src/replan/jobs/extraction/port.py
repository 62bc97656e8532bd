"""What finds values in messages, as the engine sees it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Literal, Protocol, cast

from pydantic import Field, JsonValue

from replan.base.values import Value
from replan.jobs.job import Job
from replan.jobs.spec.job_spec import JobSpec


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


MessageLike = str | Mapping[str, Any] | JobMessage | object
"""A text of the user, a mapping with role and content, or a message of LangChain."""

_ROLES = {"user": "user", "human": "user", "assistant": "assistant", "ai": "assistant"}
_LONGEST = 100_000


def messages_of(messages: Sequence[MessageLike]) -> tuple[JobMessage, ...]:
    """Read messages; those of neither the user nor the assistant are left out."""
    read = (
        _message(message) for message in ([messages] if isinstance(messages, str) else messages)
    )
    return tuple(message for message in read if message.role != "system")


def _message(message: object) -> JobMessage:
    if isinstance(message, JobMessage):
        return message
    if isinstance(message, str):
        return JobMessage(role="user", content=message[:_LONGEST])
    if isinstance(message, Mapping):
        fields = cast("Mapping[str, object]", message)
        role, content = fields.get("role"), fields.get("content")
    else:
        role = getattr(message, "role", None) or getattr(message, "type", None)
        content = getattr(message, "text", None) or getattr(message, "content", None)
    kind = cast("Any", _ROLES.get(str(role), "system"))
    return JobMessage(role=kind, content=_text(content)[:_LONGEST])


def _text(content: object) -> str:
    """The text of a message's content: a text, or content blocks."""
    if isinstance(content, str):
        return str(content)
    blocks = cast("Sequence[Any]", content) if isinstance(content, list | tuple) else ()
    fields = [cast("dict[str, object]", block) for block in blocks if isinstance(block, dict)]
    texts = [field_name.get("text") for field_name in fields]
    return "\n".join(text for text in texts if isinstance(text, str))
