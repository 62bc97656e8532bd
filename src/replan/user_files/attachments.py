"""Files that go with a task, read from the paths given at the terminal."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from replan.errors import InputError
from replan.runs.asked.attached import block_of, largest_of

_FIX = "Put it into a folder that the specialists may read, and name that with --dir."


def attached(paths: Iterable[Path]) -> list[dict[str, Any]]:
    """Read files into content blocks of LangChain: texts, pictures and PDFs."""
    return [_block(path) for path in paths]


def _block(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            held = file.read(largest_of(path.name) + 1)
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise InputError(f"--file {path} cannot be read: {why}. Name a file.") from error
    return block_of(path.name, held, f"--file {path}", _FIX)
