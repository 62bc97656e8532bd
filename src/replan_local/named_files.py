"""The file of a folder that a name means."""

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from replan.base.texts.files import FolderFile
from replan_local.refusals import CannotAnswerError, unknown

_File = TypeVar("_File", bound=FolderFile)


def find_file(named: str, files: Sequence[_File], kind: str) -> _File:
    """Find a file by its path in the folder, or by its bare name if only one has it."""
    wanted = named.removeprefix("./").casefold()
    same = [file for file in files if file.name.casefold() == wanted]
    same = same or [file for file in files if wanted in _short_names(file)]
    if len(same) == 1:
        return same[0]
    if not same:
        raise unknown(named, [file.name for file in files], f"{kind} file")
    which = ", ".join(file.name for file in same)
    raise CannotAnswerError(f"'{named}' could be any of: {which}. Name one with its folder.")


def _short_names(file: FolderFile) -> tuple[str, str]:
    path = Path(file.name.casefold())
    return path.name, path.stem
