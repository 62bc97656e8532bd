"""What is around a file that declares something: what its texts may name."""

from dataclasses import dataclass
from pathlib import Path
from typing import LiteralString

from pydantic_core import PydanticCustomError


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What is around a file."""

    folder: Path  # the folder of the file; prompts and modules may be there
    imports: bool = True  # whether what the file names is imported, which runs its code


def field_error(code: LiteralString, reason: str, fix: str) -> PydanticCustomError:
    """Make the error that a check of a field raises; pydantic adds where the field is."""
    # The texts go in as values: braces in them are text.
    return PydanticCustomError(code, "{reason}", {"reason": reason, "fix": fix})


def as_sentence(problem: str) -> str:
    """Write the problem of a `ConfigurationError` as mistakes are written."""
    return f"{problem[:1].upper()}{problem[1:].rstrip('.')}."


def folder_of(path: Path) -> Path:
    """The folder that a file is in, as the user names it."""
    return path.absolute().parent.resolve()
