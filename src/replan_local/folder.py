"""The files of a folder that a local specialist may read, and the one that a name means."""

import os
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from replan.plan.model import Value
from replan_local.refusals import CannotAnswerError, did_you_mean


class FolderFile(Value):
    """A file of the folder.

    Attributes:
        path: Where it is, with every link followed.
        name: Its path inside the folder, as people write it.
    """

    path: Path
    name: str


_File = TypeVar("_File", bound=FolderFile)


def files_below(
    directory: Path, suffixes: Collection[str], *, deepest: int, most: int
) -> tuple[FolderFile, ...]:
    """Find files by their endings, by name; links out of the folder and hidden files do not count.

    Args:
        directory: The folder.
        suffixes: The endings, in small letters.
        deepest: How many folders deep; folders that are links are not entered.
        most: How many files at most.
    """
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
    """Find the file that a name means: its path in the folder, or its bare name if only one has it.

    Args:
        named: The name.
        files: The files there are.
        kind: What they are, for example "table".

    Raises:
        CannotAnswerError: No file has this name, or several have it.
    """
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
