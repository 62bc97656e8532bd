"""What a run asks for, and options of memory and knowledge, level by level."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

from pydantic import (
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
