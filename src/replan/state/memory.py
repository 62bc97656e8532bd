"""What models see of a conversation, as it is asked for, and the summary that outlives runs."""

import logging
from typing import ClassVar, Literal

from pydantic import Field

from replan.state.options import Options
from replan.values import Value

Mode = Literal["full", "window", "summary"]
"""All that was said, its newest messages, or a summary and what that does not cover."""


logger = logging.getLogger(__name__)


class MemoryOptions(Options):
    """What models see of what was said before; a field that is left out is as further out.

    From the outermost level: window and the numbers below, the Team, its Host or a Specialist, the
    yaml block of a step (with memory_ before each name), RunSettings.

    Attributes:
        mode: window shows the newest messages, summary a summary and every message that it does
            not cover, full all messages; window where nobody says.
        history_limit: Messages of a window, 10 where nobody says; with 0 all of them. In mode
            summary those that a new summary leaves as they are.
        summary_enabled: Whether summaries are written, in mode summary; they are where nobody says.
        summary_trigger_messages: So many new messages make a new summary due; 30 where nobody says.
        summary_max_tokens: The length of a summary at most; 512 where nobody says.
        summary_model_id: The name of the model that writes summaries; else the host's model does.
    """

    prefix: ClassVar[str] = "memory_"

    mode: Mode | None = None
    history_limit: int | None = None
    summary_enabled: bool | None = None
    summary_trigger_messages: int | None = Field(default=None, ge=1)
    summary_max_tokens: int | None = Field(default=None, ge=1)
    summary_model_id: str | None = Field(default=None, min_length=1)


BUILT_IN = MemoryOptions(
    mode="window", history_limit=10, summary_trigger_messages=30, summary_max_tokens=512
)
"""What holds where nobody says anything."""


class Summary(Value):
    """What stands for the beginning of a conversation.

    Attributes:
        text: What a model wrote of it.
        covered: The messages that it covers, without the caller's instructions at the beginning.
        last_covered_id: The id of the last of them.
    """

    text: str
    covered: int
    last_covered_id: str


def log_unused(options: MemoryOptions) -> None:
    """Log what is said of summaries where there will be none."""
    mode = options.mode or BUILT_IN.mode
    if options.summary_enabled and mode != "summary":
        logger.warning("summary_enabled has no effect", extra={"mode": mode})
