"""What stands around a team file: what its texts may name."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, LiteralString

from pydantic_core import PydanticCustomError

from replan.errors import ConfigurationError

OFFLINE = "offline"
"""The name of the built-in model."""

if TYPE_CHECKING:
    from replan.ports.specialist import SpecialistPort


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What stands around a team file.

    Attributes:
        folder: The folder of the file; prompts and modules may stand there.
        workspace: The folder that specialists may read and write.
        out: Where the local team leaves its reports; none: in the workspace.
        models: The names under `models`.
        imports: Whether what the file names is imported, which runs its code.
    """

    folder: Path
    workspace: Path
    out: Path | None = None
    models: frozenset[str] = frozenset()
    imports: bool = True

    @cached_property
    def local_team(self) -> Mapping[str, "SpecialistPort"]:
        """The members of the built-in local team, by name.

        Raises:
            ConfigurationError: What they need is not installed.
        """
        from replan.specialists.local import local_specialists  # noqa: PLC0415 - only who asks pays

        return {port.card.name: port for port in local_specialists(self.workspace, self.out)}

    def member(self, name: str) -> "SpecialistPort | None":
        """Give a member of the local team; none if there is none, or nobody can say."""
        with suppress(ConfigurationError):
            return self.local_team.get(name)
        return None


def refused(code: LiteralString, reason: str, mend: str) -> PydanticCustomError:
    """Make the error that a check of a field raises; pydantic adds where the field is."""
    # The texts go in as values: braces in them are text.
    return PydanticCustomError(code, "{reason}", {"reason": reason, "mend": mend})


def as_sentence(problem: str) -> str:
    """Write the problem of a `ConfigurationError` as mistakes are written."""
    return f"{problem[:1].upper()}{problem[1:].rstrip('.')}."


def folder_of(path: Path) -> Path:
    """The folder that a team file stands in, as the user names it."""
    return path.absolute().parent.resolve()
