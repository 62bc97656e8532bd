"""A file that only this user reads: what an export writes, or a pipe gets in its place."""

import os
import sys
from pathlib import Path

from replan.base.errors import InputError


def check_output(path: Path | None) -> None:
    """Refuse an export that would be printed.

    Raises:
        InputError: No file is named, and nobody but a person reads the output.
    """
    if path is None and sys.stdout.isatty():
        raise InputError(
            "An export is not printed on a terminal. Name a file with -o FILE, or use a pipe."
        )


def write_out(
    path: Path | None, text: str, wrote: str = "wrote", *, force: bool | None = None
) -> None:
    """Write an export to a pipe, or to a file and say so; see `write_new`."""
    if path is None:
        sys.stdout.write(text)
    else:
        write_new(path, text, force=force)
        sys.stdout.write(f"{wrote} {path}\n")


def write_new(path: Path, text: str, *, force: bool | None = None) -> None:
    """Write a file that is not there yet.

    Args:
        path: The file.
        text: What it is to hold.
        force: Whether it may be there; None where nobody can ask for that.

    Raises:
        InputError: It is there already, or cannot be written.
    """
    try:
        other = os.O_TRUNC if force else os.O_EXCL
        number = os.open(path, os.O_WRONLY | os.O_CREAT | other, 0o600)
        # Half a character of a user's name is written as JSON escapes it.
        with os.fdopen(number, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
    except FileExistsError as error:
        how = "" if force is None else ", or overwrite it with --force"
        raise InputError(f"'{path}' exists already. Name another file{how}.") from error
    except FileNotFoundError as error:
        raise InputError(
            f"'{path}' cannot be written: there is no such folder. Create it first."
        ) from error
    except OSError as error:
        raise InputError(f"'{path}' cannot be written: {error.strerror}.") from error
