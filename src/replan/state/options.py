"""What a run asks for, and options of memory and knowledge, level by level."""

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar, cast

from pydantic import (
    Field,
    SerializationInfo,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
    model_validator,
)

from replan.base.declared.mistakes import mistakes_in
from replan.base.errors import SettingsError
from replan.base.values import Value


class SettingsPart(Value):
    """The settings of a run; their JSON has only what was set, so that it restores the same."""

    if not TYPE_CHECKING:  # A type checker reads the fields.

        def __init__(self, **fields: Any) -> None:
            """Take the fields; what is wrong with them is reported as in a team file."""
            try:
                super().__init__(**fields)
            except ValidationError as error:
                if type(self).__init__ is not SettingsPart.__init__:
                    raise  # a team tells its own mistakes
                raise SettingsError([*mistakes_in(error, type(self))]) from None

        # Else pydantic would call it for parts of others, which tell the mistakes themselves.
        __init__.__pydantic_base_init__ = True

    @model_serializer(mode="wrap")
    def _what_was_set(  # noqa: ANN202 - what it gives would be in the schema for the fields
        self, handler: SerializerFunctionWrapHandler, info: SerializationInfo
    ):
        written: dict[str, Any] = handler(self)
        if info.mode != "json":
            return written
        return {name: value for name, value in written.items() if name in self.model_fields_set}


class Options(SettingsPart):
    """Options of one kind; their names in a step, with a prefix, are accepted, too."""

    prefix: ClassVar[str] = ""
    """What is before each name in the yaml block of a step."""

    settings_only: ClassVar[frozenset[str]] = frozenset()
    """Options that no step may set."""

    @model_validator(mode="before")
    @classmethod
    def _without_prefix(cls, written: Any) -> Any:
        if not isinstance(written, Mapping):
            return written
        fields = cast("Mapping[str, Any]", written)
        return {str(name).removeprefix(cls.prefix): value for name, value in fields.items()}

    @property
    def given(self) -> dict[str, Any]:
        """The fields that are not left out."""
        return {name: value for name, value in self if value is not None}

    @classmethod
    def names_in_steps(cls) -> frozenset[str]:
        """The names of the options in the yaml block of a step."""
        return frozenset(cls.prefix + name for name in cls.model_fields.keys() - cls.settings_only)


Kind = TypeVar("Kind", bound=Options)


def joined(first: Kind, *inner: Kind) -> Kind:
    """The options of several levels, the innermost last."""
    set_options = {name: value for each in (first, *inner) for name, value in each.given.items()}
    return type(first)(**set_options)


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
