"""The files of a folder that may be read: no link leads out of it."""

import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderFile:
    path: Path  # where it is, with every link followed
    name: str  # its path inside the folder, as people write it


def files_below(
    directory: Path, suffixes: Collection[str], *, deepest: int, most: int
) -> tuple[FolderFile, ...]:
    """Find files by their endings; links out of the folder and hidden files do not count."""
    root = directory.resolve()
    begins = len(os.path.join(root, ""))  # noqa: PTH118 - a path of pathlib takes longer
    found: list[FolderFile] = []
    for entry in _walk(str(root), suffixes, deepest):
        path = Path(entry.path)
        if entry.is_symlink():
            path = path.resolve()
            if not path.is_relative_to(root):
                continue
        found.append(FolderFile(path=path, name=entry.path[begins:].replace(os.sep, "/")))
        if len(found) == most:
            break
    return tuple(found)


def _walk(folder: str, suffixes: Collection[str], depth: int) -> Iterator["os.DirEntry[str]"]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:  # Not ours to read, or gone meanwhile: as if it were empty.
        return
    for entry in entries:
        if entry.name.startswith("."):
            continue
        if entry.is_dir(follow_symlinks=False):
            if depth > 1:
                yield from _walk(entry.path, suffixes, depth - 1)
        elif entry.is_file() and _ending(entry.name) in suffixes:
            yield entry


def _ending(name: str) -> str:
    return name[name.rfind(".") :].casefold()
