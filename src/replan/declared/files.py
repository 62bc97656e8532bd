"""Read the text of a file that declares something."""

from pathlib import Path
from typing import NoReturn

from replan.errors import DeclaredFileError, FieldMistake

LARGEST = 200_000


def text_of(path: Path, error: type[DeclaredFileError], fix_of_none: str) -> str:
    """Read a file as text.

    Args:
        path: The file.
        error: How mistakes are reported.
        fix_of_none: What to do if there is no such file.

    Raises:
        DeclaredFileError: It is not there, too large, or no UTF-8.
    """

    def refuse(code: str, reason: str, fix: str, line: int = 1) -> NoReturn:
        mistake = FieldMistake(line=line, column=1, code=code, reason=reason, fix=fix)
        raise error(path, [mistake]) from None

    try:
        if not path.is_file():
            refuse("unreadable", "There is no such file.", fix_of_none)
        content = path.read_bytes() if path.stat().st_size <= LARGEST else None
    except OSError as problem:
        reason = f"The file cannot be read: {problem.strerror}."
        refuse("unreadable", reason, "Check its name and its permissions.")
    if content is None:
        fix = "Keep long prompts in separate files."
        refuse("too_large", f"The file is larger than {LARGEST:,} bytes.", fix)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = content[: problem.start].count(b"\n") + 1
        refuse("not_utf8", "The file is not UTF-8.", "Save it as UTF-8.", line)
