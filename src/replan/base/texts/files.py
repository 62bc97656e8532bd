"""Files that are written whole, and files of a folder that may be read: no link leads out of it."""

import os
import secrets
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from replan.base.texts.signs import visible


def replace_file(path: Path, content: bytes) -> None:
    """Put a whole new file in place of an old one, or raise and leave the old one as it is.

    A link in its place is replaced, not followed.
    """
    # Opened like any file, so that the umask says who may read it.
    beside = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        with beside.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            beside.chmod(path.stat().st_mode)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderFile:
    path: Path  # where it is, with every link followed
    name: str  # its path inside the folder, as people write it


@dataclass(frozen=True, slots=True)
class FoundFiles:
    files: tuple[FolderFile, ...]
    left_out: tuple[str, ...]  # what was not looked into, a sentence each


def files_below(
    directory: Path, suffixes: Collection[str], *, deepest: int, most: int
) -> FoundFiles:
    """Find files by their endings; links out of the folder and hidden files do not count."""
    root = directory.resolve()
    begins = len(os.path.join(root, ""))  # noqa: PTH118 - a path of pathlib takes longer
    found: list[FolderFile] = []
    left_out: list[str] = []
    for entry in _walk(str(root), suffixes, deepest):
        if isinstance(entry, _Closed):
            left_out.append(f"{_name(entry.path[begins:]) or '.'}/ is left out: {entry.reason}.")
            continue
        path = Path(entry.path)
        if entry.is_symlink():
            path = path.resolve()
            if not path.is_relative_to(root):
                continue
        if len(found) == most:
            left_out.append(f"All files but the first {most:,} are left out.")
            break
        found.append(FolderFile(path=path, name=_name(entry.path[begins:])))
    return FoundFiles(tuple(found), tuple(left_out))


@dataclass(frozen=True, slots=True)
class _Closed:
    """A folder that is not looked into."""

    path: str
    reason: str


def _walk(
    folder: str, suffixes: Collection[str], depth: int
) -> Iterator["os.DirEntry[str] | _Closed"]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except FileNotFoundError:  # Gone meanwhile.
        return
    except OSError as error:
        yield _Closed(folder, f"it cannot be read: {error.strerror or error}")
        return
    for entry in entries:
        if entry.name.startswith("."):
            continue
        if entry.is_dir(follow_symlinks=False):
            if depth > 1:
                yield from _walk(entry.path, suffixes, depth - 1)
            else:
                yield _Closed(entry.path, "it lies too deep")
        elif entry.is_file() and _ending(entry.name) in suffixes:
            yield entry


def _name(path: str) -> str:
    """Write a path inside the folder; what is not text, or not seen, is written as numbers."""
    name = visible(path.replace(os.sep, "/"))
    return name if name.isascii() else os.fsencode(name).decode(errors="backslashreplace")


def _ending(name: str) -> str:
    return name[name.rfind(".") :].casefold()
