"""Kinds of fields and checks that all that is declared has in common."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher, get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, LiteralString, TypeVar, cast

from pydantic import BeforeValidator, ValidationInfo
from pydantic_core import PydanticCustomError

Where = tuple[str | int, ...]
"""The keys and numbers that lead to a value."""

Effects = Literal["pure", "keyed", "unsafe"]
"""What a second run of the same work does to the outside.

- `pure`: nothing, it may run again whenever that is of use;
- `keyed`: nothing, because it hands an idempotency key on;
- `unsafe`: its effect again, so it is never silently run again.
"""

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What is around a file."""

    folder: Path  # the folder of the file; prompts and modules may be there
    imports: bool = True  # whether what the file names is imported, which runs its code


def field_error(code: LiteralString, reason: str, fix: str) -> PydanticCustomError:
    """Make the error that a check of a field raises; pydantic adds where the field is."""
    # The texts go in as values: braces in them are text.
    return PydanticCustomError(code, "{reason}", {"reason": reason, "fix": fix})


def field_path(where: Where) -> str:
    """Write a path as people do, as in `specialists[1].name`."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in where)
    return "".join(parts).removeprefix(".")


def did_you_mean(name: str, known: Iterable[str], else_: str) -> str:
    """Suggest the names that are closest to an unknown name."""
    near = get_close_matches(name, [*known])
    likeness = [SequenceMatcher(a=candidate, b=name).ratio() for candidate in near]
    nearest = [name for name, like in zip(near, likeness, strict=True) if like == likeness[0]]
    return f"Did you mean {' or '.join(nearest)}?" if nearest else else_


def name_like(
    pattern: str, reason: str, fix: str, reserved: Callable[[], Iterable[str]] = tuple
) -> Callable[[str], str]:
    def checked(name: str) -> str:
        if name in reserved() or not re.fullmatch(pattern, name):
            raise field_error("bad_name", reason, fix)
        return name

    return checked


def list_in(parts: object) -> Sequence[Any]:
    """The parts of a field that is a list; none of what is something else."""
    return cast("Sequence[Any]", parts if isinstance(parts, list | tuple) else ())


def fields_of(part: object) -> Mapping[str, Any]:
    """The fields of a part, in Python or in a file."""
    return cast("Any", part if isinstance(part, Mapping) else getattr(part, "__dict__", {}))


def row(value: object, info: ValidationInfo) -> object:
    """Refuse what is not a list; a text is a sequence, too."""
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        fix = f"Give a list: {info.field_name}=[...]; in a file begin each entry with '- '."
        raise field_error("wrong_type", "This is not a list.", fix)
    return cast("object", value)


def flag_or_names(value: object, info: ValidationInfo) -> object:
    """Refuse what is neither true, false nor a list of names."""
    is_list = isinstance(value, Sequence) and not isinstance(value, str | bytes)
    items = cast("Sequence[object]", value) if is_list else (None,)
    if isinstance(value, bool) or all(isinstance(item, str) for item in items):
        return cast("object", value)
    fix = f"Write true, or a list of names: {info.field_name}: [NAME]."
    raise field_error("wrong_type", "This is neither true nor a list of names.", fix)


# A type checker sees what Python gives.
if TYPE_CHECKING:
    Row = Sequence
    FlagOrNames = bool | Sequence[str]
else:
    Row = Annotated[Sequence[T], BeforeValidator(row)]
    FlagOrNames = Annotated[bool | Sequence[str], BeforeValidator(flag_or_names)]
