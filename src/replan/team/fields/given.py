"""What a field is given: in Python the thing itself, in a file the name of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from pydantic import ValidationInfo

from replan.base.declared.part import Surroundings, field_error
from replan.base.declared.references import import_object, stand_in
from replan.ports.built_in import comes_with_replan


@dataclass(frozen=True, kw_only=True)
class TeamSurroundings(Surroundings):
    """What is around a team file."""

    workspace: Path  # the folder that specialists may read and write
    out: Path | None = None  # the folder for the files that steps make; none: the workspace
    models: frozenset[str] = frozenset()  # the names under `models`
    # For those that have some, the names that are in their place.
    fallbacks: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])


def surroundings_of(info: ValidationInfo) -> TeamSurroundings | None:
    """What is around the file that is read; None in Python."""
    return cast("TeamSurroundings | None", info.context)


def resolve(value: object, around: Surroundings | None) -> object:
    """Return what a file names; in Python it is what is given."""
    if around is None:
        return value
    if not isinstance(value, str):
        raise field_error("wrong_type", "This must be text.", "Write module:function.")
    if comes_with_replan(value):
        return import_object(value, None)
    return import_object(value, around.folder) if around.imports else stand_in(value, around.folder)


def is_left_alone(value: object, around: Surroundings | None) -> bool:
    """Whether a file names something that is not imported, so that its name alone is known."""
    return around is not None and not around.imports and not comes_with_replan(str(value))
