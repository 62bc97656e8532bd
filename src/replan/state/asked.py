"""What a run asks for: its mistakes are reported together, and its JSON says what was set."""

from typing import TYPE_CHECKING, Any

from pydantic import (
    SerializationInfo,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
)

from replan.declared.mistakes import told_of
from replan.errors import SettingsError
from replan.values import Value


class Asked(Value):
    """The settings of a run; their JSON has only what was set, so that it restores the same."""

    if not TYPE_CHECKING:  # A type checker reads the fields.

        def __init__(self, **fields: Any) -> None:
            """Take the fields; what is wrong with them is reported as in a team file."""
            try:
                super().__init__(**fields)
            except ValidationError as error:
                if type(self).__init__ is not Asked.__init__:
                    raise  # a team tells its own mistakes
                raise SettingsError([*told_of(error, type(self))]) from None

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
