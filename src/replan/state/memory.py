"""Options for what models see of a conversation, and the summary that outlives runs."""

import logging
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from replan.base.values import Value
from replan.state.options import Options

Mode = Literal["full", "window", "summary"]
"""The whole conversation, its newest messages, or a summary and the messages after it."""


logger = logging.getLogger(__name__)


class MemoryOptions(Options):
    """What models see of the earlier conversation; omitted fields come from the level outside.

    From the outermost level: window and the numbers below, the Team, its Host or a Specialist, the
    yaml block of a step (with memory_ before each name), RunSettings.

    Attributes:
        mode: Models see the newest messages (window), a summary and every message that it does
            not cover (summary), or all messages (full). The default is window.
        history_limit: The messages of a window, by default 10; 0 means all. In mode summary, the
            messages that a new summary does not cover yet.
        summary_enabled: Whether summaries are written in mode summary; by default they are.
        summary_trigger_messages: After how many new messages a summary is due; by default 30.
        summary_max_tokens: The maximum length of a summary, approximately; by default 512.
        summary_model_id: The name of the model that writes summaries; by default the host's model.
    """

    prefix: ClassVar[str] = "memory_"

    mode: Mode | None = None
    history_limit: int | None = None
    summary_enabled: bool | None = None
    summary_trigger_messages: int | None = Field(default=None, ge=1)
    summary_max_tokens: int | None = Field(default=None, ge=1)
    summary_model_id: str | None = Field(default=None, min_length=1)

    if TYPE_CHECKING:  # pydantic makes it for what is frozen.

        def __hash__(self) -> int: ...


BUILT_IN = MemoryOptions(
    mode="window", history_limit=10, summary_trigger_messages=30, summary_max_tokens=512
)
"""The defaults."""


class Summary(Value):
    """The summary of the beginning of a conversation.

    Attributes:
        text: The text that a model wrote.
        covered: The messages that it covers, without the caller's instructions at the beginning.
        last_covered_id: The id of the last of them.
    """

    text: str
    covered: int
    last_covered_id: str


def log_unused(options: MemoryOptions) -> None:
    """Log what is said about summaries where there will be none."""
    mode = options.mode or BUILT_IN.mode
    if options.summary_enabled and mode != "summary":
        logger.warning("summary_enabled has no effect", extra={"mode": mode})
