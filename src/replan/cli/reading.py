"""Read the plan document that the terminal was given; no framework is needed for it."""

from pathlib import Path

from replan.errors import InputError


def is_plan_path(task: str) -> bool:
    """Whether a task names a plan document; a request may end like a file name too."""
    if not task.casefold().endswith(".md") or "\n" in task:
        return False
    try:
        return Path(task).is_file() or len(task.split()) == 1
    except (OSError, ValueError):
        return False


def read_plan_text(path: Path) -> str:
    """Give a document as it is, line ends included.

    Raises:
        InputError: It is not there, or is no text.
    """
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError as error:
        raise InputError(f"There is no plan document '{path}'. Check the path.") from error
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"The plan document '{path}' cannot be read: {error}.") from error
