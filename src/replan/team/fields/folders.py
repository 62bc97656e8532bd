"""Fields that are folders: of knowledge, of work, of files that steps make."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from pydantic import PlainValidator, ValidationInfo, WithJsonSchema

from replan.base.declared.part import field_error
from replan.team.fields.given import resolve, surroundings_of

if TYPE_CHECKING:
    from replan.ports.retriever import Retriever


def workspace(value: object, info: ValidationInfo) -> object:
    """Take a folder; in a file it is relative to the file, and must be there."""
    around = surroundings_of(info)
    if value is None or (around is None and isinstance(value, str | Path)):
        return around and around.workspace if value is None else Path(cast("str", value))
    if around is None or not isinstance(value, str):
        raise field_error("wrong_type", "This must be text.", "Write the name of a folder.")
    if not around.workspace.is_dir():
        fix = "Create it, or name another folder; the path is relative to the team file."
        raise field_error("no_folder", f"There is no folder '{around.workspace}'.", fix)
    return around.workspace


def knowledge(value: object, info: ValidationInfo) -> object:
    """Accept a folder or an object with a search; in a file, the name of one."""
    from replan.knowledge.folder import TENANT, FolderRetriever  # noqa: PLC0415 - rare

    around = surroundings_of(info)
    if isinstance(value, str | Path) and (around is None or not _is_reference(value)):
        folder = str(value if around is None else around.folder / value)
        if not folder.strip() or "\0" in folder:
            raise field_error("no_folder", "This is not a folder.", "Write the name of a folder.")
        if around is not None and TENANT not in folder and not Path(folder).is_dir():
            fix = "Create it, or name another; it is relative to the team file."
            raise field_error("no_folder", f"There is no folder '{folder}'.", fix)
        return FolderRetriever(Path(folder))
    if isinstance(value, dict):
        fix = "Write the name of a folder, or module:name of an object with a search."
        raise field_error("wrong_type", "This must be text.", fix)
    found: Any = resolve(value, around)
    is_imported = around is None or around.imports
    if isinstance(found, type) or (is_imported and not callable(getattr(found, "search", None))):
        reason = f"It is of type {type(found).__name__}, and has no search."
        raise field_error("no_retriever", reason, "Give a folder, or an object with a search.")
    return cast("object", found)


def _is_reference(value: object) -> bool:
    return re.fullmatch(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", str(value)) is not None


def out(value: object, info: ValidationInfo) -> object:
    """Take a folder, which need not be there; in a file it is relative to the file."""
    around = surroundings_of(info)
    if around is None and (value is None or isinstance(value, str | Path)):
        return None if value is None else Path(value)
    if value is not None and (not isinstance(value, str) or "\0" in value):
        raise field_error("wrong_type", "This must be text.", "Write the name of a folder.")
    if around is None or around.out is not None or value is None:
        return around and around.out
    return (around.folder / value).resolve()


# A type checker sees what Python gives; at run time no framework is imported for it.
if TYPE_CHECKING:
    Knowledge = Retriever | Path | str
    Workspace = Out = Path | str | None
else:
    Knowledge = Annotated[Any, PlainValidator(knowledge), WithJsonSchema({"type": "string"})]
    Workspace = Annotated[
        Path | None, PlainValidator(workspace), WithJsonSchema({"type": "string"})
    ]
    Out = Annotated[Path | None, PlainValidator(out), WithJsonSchema({"type": "string"})]
