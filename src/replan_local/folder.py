"""The file of a folder that a name means."""

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from replan.texts.safe_folder import FolderFile
from replan_local.refusals import CannotAnswerError, did_you_mean

_File = TypeVar("_File", bound=FolderFile)


def find_file(named: str, files: Sequence[_File], kind: str) -> _File:
    """Find a file by its path in the folder, or by its bare name if only one has it."""
    wanted = named.removeprefix("./").casefold()
    same = [file for file in files if file.name.casefold() == wanted]
    same = same or [file for file in files if Path(file.name).name.casefold() == wanted]
    same = same or [file for file in files if Path(file.name).stem.casefold() == wanted]
    if len(same) == 1:
        return same[0]
    names = [file.name for file in files]
    if same:
        which = ", ".join(file.name for file in same)
        raise CannotAnswerError(f"'{named}' could be any of: {which}. Name one with its folder.")
    there = f"The {kind}s are: {', '.join(names)}." if names else f"It has no {kind} file."
    message = f"No {kind} file '{named}' in the folder. {there}{did_you_mean(named, names)}"
    raise CannotAnswerError(message)
