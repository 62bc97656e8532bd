"""The text of a file that declares something, and the JSON schema that it keeps."""

from pathlib import Path
from typing import Any, NoReturn, cast

from pydantic import BaseModel

from replan.base.errors import DeclaredFileError, mistake

LARGEST = 200_000


def read_text(path: Path, error: type[DeclaredFileError], fix_of_none: str) -> str:
    """Read a file as text.

    Args:
        path: The file.
        error: How mistakes are reported.
        fix_of_none: What to do if there is no such file.

    Raises:
        DeclaredFileError: It is not there, too large, or no UTF-8.
    """

    def refuse(code: str, reason: str, fix: str, line: int = 1) -> NoReturn:
        raise error(path, [mistake("", None, reason, fix, code, line, 1)]) from None

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


_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_NONE = {"type": "null"}


def file_schema(kind: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) that files of a kind keep."""
    schema = kind.model_json_schema()
    for definition in (schema, *schema["$defs"].values()):
        for field in definition.get("properties", {}).values():
            _without_none(field)
    return {"$schema": _DIALECT, **schema}


def _without_none(field: dict[str, Any]) -> None:
    if field.get("default", ...) is None:
        del field["default"]
    kinds = cast("list[dict[str, Any]]", field.get("anyOf", []))
    if _NONE in kinds:
        left = [kind for kind in kinds if kind != _NONE]
        del field["anyOf"]
        field.update(left[0] if len(left) == 1 else {"anyOf": left})


def folder_of(path: Path) -> Path:
    """The folder that a file is in, as the user names it."""
    return path.absolute().parent.resolve()
