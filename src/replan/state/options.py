"""Options of memory and knowledge, by level; a field that is left out is open."""

from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar, cast

from pydantic import model_validator

from replan.state.asked import Asked


class Options(Asked):
    """Options of one kind; their names in a step, with a prefix, are accepted, too."""

    prefix: ClassVar[str] = ""
    """What is before each name in the yaml block of a step."""

    settings_only: ClassVar[frozenset[str]] = frozenset()
    """Options that no step may set."""

    @model_validator(mode="before")
    @classmethod
    def _without_prefix(cls, given: Any) -> Any:
        if not isinstance(given, Mapping):
            return given
        fields = cast("Mapping[str, Any]", given)
        return {str(name).removeprefix(cls.prefix): value for name, value in fields.items()}

    @property
    def said(self) -> dict[str, Any]:
        """The fields that are not left out."""
        return {name: value for name, value in self if value is not None}

    @classmethod
    def names_in_steps(cls) -> frozenset[str]:
        """The names of the options in the yaml block of a step."""
        return frozenset(cls.prefix + name for name in cls.model_fields.keys() - cls.settings_only)


Kind = TypeVar("Kind", bound=Options)


def joined(first: Kind, *inner: Kind) -> Kind:
    """The options of several levels, the innermost last."""
    said = {name: value for each in (first, *inner) for name, value in each.said.items()}
    return type(first)(**said)
