"""A task: the work of an agent, a handler or a unit, as data."""

from typing import ClassVar, Literal

from pydantic import Field, JsonValue

from replan.base.values import Value
from replan.pipelines.host_utils import HostUtils, host_utils
from replan.state.pipeline.threads import path_text

TaskType = Literal["message", "action"]
"""A message of a user, or something that the program does by itself."""

RETRY = "retry"
UI_ACTION = "_ui_action"


class Task(Value):
    """The work to do with a thread. Its name does not matter: the phase decides what runs.

    Attributes:
        name: Its name; `chat_pair` is answered with `meta["bot"]`.
        type: `message` for what a user said, `action` for what follows by itself.
        message: What to do, in words.
        meta: JSON for the handler: `sub_thread_path`, `original_query`, `placeholder_id`, and
            `_ui_action` with "retry" for what is done again.
        skip_user_message: Whether not to add the message to the thread.
        id: Unique; given where the task is stored.
    """

    TYPE_MESSAGE: ClassVar[TaskType] = "message"
    TYPE_ACTION: ClassVar[TaskType] = "action"

    name: str
    type: TaskType = "action"
    message: str = ""
    meta: dict[str, JsonValue] = Field(default_factory=dict)
    skip_user_message: bool = False
    id: str = ""

    @property
    def host_utils(self) -> HostUtils:
        """Outside parts: the repository, the adapter, the clock."""
        return host_utils()

    @property
    def sub_thread_path(self) -> str | None:
        """The path of the sub-thread that it is about, as text; None for the main thread."""
        path = self.meta.get("sub_thread_path")
        return None if path is None else path_text(path)

    @property
    def is_retry(self) -> bool:
        """Whether it is a repetition."""
        return self.meta.get(UI_ACTION) == RETRY

    @property
    def original_query(self) -> str:
        """The user's request, passed on from task to task."""
        return str(self.meta.get("original_query") or self.message)
