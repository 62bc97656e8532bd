"""A file that is not there yet, and that only this user reads."""

import os
from pathlib import Path

from replan.errors import InputError


def write_new(path: Path, text: str) -> None:
    """Write it.

    Raises:
        InputError: It is there already, or cannot be written.
    """
    try:
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        # Half a character of a user's name is written as JSON escapes it.
        with os.fdopen(number, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
    except FileExistsError as error:
        raise InputError(f"'{path}' exists already. Name another file.") from error
    except OSError as error:
        raise InputError(f"'{path}' cannot be written: {error.strerror}.") from error
