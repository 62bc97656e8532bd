"""The responses of agents and handlers: a text, and how to handle it."""

from collections.abc import AsyncIterator, Mapping
from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field, JsonValue

from replan.base.errors import StaleThreadError
from replan.base.failures import is_fatal_for_run
from replan.base.values import Value
from replan.pipelines.task import Task
from replan.state.pipeline.threads import MARK_OF_THREAD, SUB_THREAD

SKIP = "skip_bot_message_creation"
"""The entry of a response's meta that marks that its message exists already."""

UPDATE = "message_update"
"""The entry of a response's meta that names a message to change, in place of a new one."""


class MessageUpdate(Value):
    """A change of an existing message.

    Attributes:
        message_id: The message, of the thread or of a sub-thread of it.
        text: Its new text; None takes that of the response, and leaves it where that is empty.
        meta: Entries that are added to its meta.
    """

    message_id: str
    text: str | None = None
    meta: dict[str, JsonValue] = Field(default_factory=dict)


def ends_pipeline(error: Exception) -> bool:
    """Whether an error passes through every phase: no response has it as its failure."""
    return isinstance(error, StaleThreadError) or is_fatal_for_run(error)


def _one_name(path: str) -> str:
    before, _, name = path.partition(".")
    if before != "meta" or not name or "." in name or name in ("messages", MARK_OF_THREAD):
        raise ValueError(f"give meta and one name, such as meta.{SUB_THREAD}")
    return path


class SubThreadRequest(Value):
    """Requests an empty sub-thread in the message of a response.

    Attributes:
        meta_path: Where in the message it is.
        settings: Its settings in addition to the phase.
    """

    meta_path: Annotated[str, AfterValidator(_one_name)] = f"meta.{SUB_THREAD}"
    settings: dict[str, JsonValue] = Field(default_factory=dict)


class Response:
    """The outcome of a task.

    Attributes:
        text: What it says, without what streams.
        meta: What is to be done with it: `message_update`, `skip_bot_message_creation`, and JSON
            that the message of it keeps.
        next_tasks: What the main agent does next.
        phase_suggestion: The phase that follows, if the handler has not suggested one itself.
        sub_thread_request: Asks for a sub-thread in its message.
        failure: Why there is no text; None if there is one.
    """

    def __init__(
        self,
        text: str = "",
        *,
        meta: Mapping[str, Any] | None = None,
        phase_suggestion: str | None = None,
        sub_thread_request: SubThreadRequest | None = None,
        failure: Exception | None = None,
    ) -> None:
        self.text = text
        self.meta: dict[str, Any] = dict(meta or {})
        self.next_tasks: list[Task] = []
        self.phase_suggestion = phase_suggestion
        self.sub_thread_request = sub_thread_request
        self.failure = failure
        self._stream: AsyncIterator[str] | None = None

    def set_meta(self, meta: Mapping[str, Any]) -> Self:
        """Add entries to its meta."""
        self.meta.update(meta)
        return self

    def set_stream(self, stream: AsyncIterator[str]) -> Self:
        """Let its text come in pieces; only in the main thread."""
        self._stream = stream
        return self

    def add_next_task(self, task: Task) -> Self:
        """Let the main agent do a task after this one."""
        self.next_tasks.append(task)
        return self

    @property
    def is_stream(self) -> bool:
        """Whether its text has not arrived yet."""
        return self._stream is not None

    @property
    def is_failed(self) -> bool:
        """Whether the task failed."""
        return self.failure is not None

    @property
    def skips_message(self) -> bool:
        """Whether its message is there already."""
        return bool(self.meta.get(SKIP))

    @property
    def message_update(self) -> MessageUpdate | None:
        """The message that it changes, instead of a new one."""
        update = self.meta.get(UPDATE)
        return None if update is None else MessageUpdate.model_validate(update)

    @property
    def message_meta(self) -> dict[str, Any]:
        """The part of its meta that its message keeps."""
        return {key: value for key, value in self.meta.items() if key not in (SKIP, UPDATE)}

    async def pieces(self) -> AsyncIterator[str]:
        """Yield the pieces of its stream, and take them into its text."""
        stream, self._stream = self._stream, None
        if stream is not None:
            async for piece in stream:
                self.text += piece
                yield piece

    async def get_full_message(self) -> str:
        """Return its whole text, once all of it has arrived."""
        async for _ in self.pieces():
            pass
        return self.text
