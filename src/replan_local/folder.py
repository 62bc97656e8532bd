"""The files of a folder that a local specialist may read, and the one that a name means."""

import os
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from replan.plan.model import Value
from replan_local.refusals import CannotAnswerError, did_you_mean


class FolderFile(Value):
    path: Path  # where it is, with every link followed
    name: str  # its path inside the folder, as people write it


_File = TypeVar("_File", bound=FolderFile)


def files_below(
    directory: Path, suffixes: Collection[str], *, deepest: int, most: int
) -> tuple[FolderFile, ...]:
    """Find files by their endings; links out of the folder and hidden files do not count."""
    root = directory.resolve()
    found: list[FolderFile] = []
    for path in _walk(root, suffixes, deepest):
        target = path.resolve()
        if not target.is_relative_to(root):
            continue
        found.append(FolderFile(path=target, name=path.relative_to(root).as_posix()))
        if len(found) == most:
            break
    return tuple(found)


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
        message = f"'{named}' could be any of: {which}. Name one with its folder."
        raise CannotAnswerError(message)
    there = f"The {kind}s are: {', '.join(names)}." if names else f"It has no {kind} file."
    message = f"No {kind} file '{named}' in the folder. {there}{did_you_mean(named, names)}"
    raise CannotAnswerError(message)


def _walk(folder: Path, suffixes: Collection[str], depth: int) -> Iterator[Path]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:  # Not ours to read, or gone meanwhile: as if it were empty.
        return
    for entry in entries:
        if entry.name.startswith("."):
            continue
        if entry.is_dir(follow_symlinks=False):
            if depth > 1:
                yield from _walk(Path(entry.path), suffixes, depth - 1)
        elif entry.is_file() and Path(entry.name).suffix.casefold() in suffixes:
            yield Path(entry.path)
