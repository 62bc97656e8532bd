"""Prompts that are given as `{file: relative.md}`: files in the team file's folder, no others."""

from pathlib import Path
from typing import Any, cast

from replan.declared.surroundings import refused

LARGEST = 500_000


def prompt_text(given: object, folder: Path) -> object:
    """Return the text of a prompt; what is neither a text nor a file is given back as it is."""
    if not isinstance(given, dict):
        return given
    fields = cast("dict[str, Any]", given)
    name = fields.get("file")
    if not isinstance(name, str) or len(fields) != 1:
        fix = "Write the prompt itself, or {file: NAME.md} and nothing else."
        raise refused("bad_prompt", "This does not name a prompt file.", fix)
    text = _read(_inside(name, folder), name).strip()
    if not text:
        raise refused("bad_prompt", f"The prompt file '{name}' is empty.", "Write the prompt.")
    return text


def _inside(name: str, folder: Path) -> Path:
    try:
        path = (folder / name).resolve()
    except (OSError, RuntimeError, ValueError):
        path = None
    if path is None or not path.is_relative_to(folder):
        reason = f"The prompt file '{name}' is not in the folder of the team file."
        fix = "Put it next to or below the team file, and write its path relative to the file."
        raise refused("prompt_outside", reason, fix)
    return path


def _read(path: Path, name: str) -> str:
    try:
        if not path.is_file():
            fix = "Check the name; the path is relative to the team file."
            raise refused("no_prompt_file", f"There is no prompt file '{name}'.", fix)
        if path.stat().st_size > LARGEST:
            reason = f"The prompt file '{name}' is larger than {LARGEST:,} bytes."
            raise refused("bad_prompt", reason, "Keep prompts short.")
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        reason = f"The prompt file '{name}' is not UTF-8."
        raise refused("bad_prompt", reason, "Save it as UTF-8.") from None
    except OSError as error:
        reason = f"The prompt file '{name}' cannot be read: {error.strerror}."
        raise refused("bad_prompt", reason, "Check its name and its permissions.") from None
