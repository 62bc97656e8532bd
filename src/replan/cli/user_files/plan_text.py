"""Read the plan document of a command, without importing a framework."""

from pathlib import Path

from replan.base.errors import InputError
from replan.base.texts.bounds import PLAN

_MOST_BYTES = 4 * PLAN.characters  # no character of UTF-8 has more bytes


def is_plan_path(task: str) -> bool:
    """Whether a task names a plan document; a request may end like a file name too."""
    return _names_file(task, ".md")


def is_team_path(task: str) -> bool:
    """Whether a task names a team file."""
    return _names_file(task, ".yaml", ".yml")


def is_other_file(task: str) -> bool:
    """Whether a task is the path of a file that is neither, such as `plan.txt`."""
    is_known = is_plan_path(task) or is_team_path(task)
    return not is_known and Path(task).suffix != "" and _is_file(task)


def _is_file(task: str) -> bool:
    try:
        return Path(task).is_file()
    except (OSError, ValueError):
        return False


def _names_file(task: str, *endings: str) -> bool:
    if not task.casefold().endswith(endings) or "\n" in task:
        return False
    return len(task.split()) == 1 or _is_file(task)


def read_plan_text(path: Path) -> str:
    """Return a document as it is, line ends included."""
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise InputError(
                f"The plan document '{path}' has more than {_MOST_BYTES:,} bytes, and a plan at "
                f"most {PLAN.characters:,} characters. Keep long data in separate files."
            )
        text = content.decode("utf-8")
    except FileNotFoundError as error:
        raise InputError(f"There is no plan document '{path}'. Check the path.") from error
    except UnicodeDecodeError as error:
        problem = "it is not text in UTF-8. Save it as that"
        raise InputError(f"The plan document '{path}' cannot be read: {problem}.") from error
    except OSError as error:
        raise InputError(f"The plan document '{path}' cannot be read: {error}.") from error
    if not text.strip():
        fix = "Write a line for each step: - [ ] 1. What to do @SPECIALIST"
        raise InputError(f"The plan document '{path}' is empty. {fix}")
    return text
