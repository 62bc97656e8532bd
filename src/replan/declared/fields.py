"""Kinds of fields and checks that all that is declared has in common."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import SequenceMatcher, get_close_matches
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, cast

from pydantic import BeforeValidator, ValidationInfo

from replan.declared.surroundings import refused

T = TypeVar("T")


def meant(name: str, known: Iterable[str], else_: str) -> str:
    """Name what is nearest to a name that is not known; all of them if several are as near."""
    near = get_close_matches(name, [*known])
    likeness = [SequenceMatcher(a=each, b=name).ratio() for each in near]
    nearest = [each for each, like in zip(near, likeness, strict=True) if like == likeness[0]]
    return f"Did you mean {' or '.join(nearest)}?" if nearest else else_


def name_like(
    pattern: str, reason: str, fix: str, taken: Callable[[], Iterable[str]] = tuple
) -> Callable[[str], str]:
    def checked(name: str) -> str:
        if name in taken() or not re.fullmatch(pattern, name):
            raise refused("bad_name", reason, fix)
        return name

    return checked


def listed(parts: object) -> Sequence[Any]:
    """The parts of a field that is a list; none of what is something else."""
    return cast("Sequence[Any]", parts if isinstance(parts, list | tuple) else ())


def fields_of(part: object) -> Mapping[str, Any]:
    """The fields of a part, in Python or in a file."""
    return cast("Any", part if isinstance(part, Mapping) else getattr(part, "__dict__", {}))


def row(given: object, info: ValidationInfo) -> object:
    """Refuse what is not a list; a text is a sequence, too."""
    if not isinstance(given, Sequence) or isinstance(given, str | bytes):
        fix = f"Give a list: {info.field_name}=[...]; in a file begin each entry with '- '."
        raise refused("wrong_type", "This is not a list.", fix)
    return cast("object", given)


# A type checker sees what Python gives.
if TYPE_CHECKING:
    Row = Sequence
else:
    Row = Annotated[Sequence[T], BeforeValidator(row)]
