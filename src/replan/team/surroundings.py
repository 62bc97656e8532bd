"""What is around a team file: what its texts may name."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from replan.declared.surroundings import Surroundings


@dataclass(frozen=True, kw_only=True)
class TeamSurroundings(Surroundings):
    """What is around a team file.

    Attributes:
        workspace: The folder that specialists may read and write.
        out: The folder for the files that steps make; none: the workspace.
        models: The names under `models`.
        fallbacks: For those that have some, the names that are in their place.
    """

    workspace: Path
    out: Path | None = None
    models: frozenset[str] = frozenset()
    fallbacks: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
