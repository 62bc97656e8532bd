"""Fields that are folders: of knowledge, of work, of files that steps make."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from pydantic import PlainValidator, ValidationInfo, WithJsonSchema

from replan.declared.fields import field_error
from replan.team.fields.given import resolve, surroundings_of

if TYPE_CHECKING:
    from replan.ports.retriever import Retriever


def workspace(given: object, info: ValidationInfo) -> object:
    """Take a folder; in a file it is relative to the file, and must be there."""
    around = surroundings_of(info)
    if given is None or (around is None and isinstance(given, str | Path)):
        return around and around.workspace if given is None else Path(cast("str", given))
    if around is None or not isinstance(given, str):
        raise field_error("wrong_type", "This must be text.", "Write the name of a folder.")
    if not around.workspace.is_dir():
        fix = "Create it, or name another folder; the path is relative to the team file."
        raise field_error("no_folder", f"There is no folder '{around.workspace}'.", fix)
    return around.workspace


def knowledge(given: object, info: ValidationInfo) -> object:
    """Accept a folder or an object with a search; in a file, the name of one."""
    from replan.adapters.knowledge.folder import TENANT, FolderRetriever  # noqa: PLC0415 - rare

    around = surroundings_of(info)
    if isinstance(given, str | Path) and (around is None or not _is_reference(given)):
        folder = str(given if around is None else around.folder / given)
        if not folder.strip() or "\0" in folder:
            raise field_error("no_folder", "This is not a folder.", "Write the name of a folder.")
        if around is not None and TENANT not in folder and not Path(folder).is_dir():
            fix = "Create it, or name another; it is relative to the team file."
            raise field_error("no_folder", f"There is no folder '{folder}'.", fix)
        return FolderRetriever(Path(folder))
    if isinstance(given, dict):
        fix = "Write the name of a folder, or module:name of an object with a search."
        raise field_error("wrong_type", "This must be text.", fix)
    found: Any = resolve(given, around)
    is_imported = around is None or around.imports
    if isinstance(found, type) or (is_imported and not callable(getattr(found, "search", None))):
        reason = f"It is of type {type(found).__name__}, and has no search."
        raise field_error("no_retriever", reason, "Give a folder, or an object with a search.")
    return cast("object", found)


def _is_reference(given: object) -> bool:
    return re.fullmatch(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", str(given)) is not None


def out(given: object, info: ValidationInfo) -> object:
    """Take a folder, which need not be there; in a file it is relative to the file."""
    around = surroundings_of(info)
    if around is None and (given is None or isinstance(given, str | Path)):
        return None if given is None else Path(given)
    if given is not None and (not isinstance(given, str) or "\0" in given):
        raise field_error("wrong_type", "This must be text.", "Write the name of a folder.")
    if around is None or around.out is not None or given is None:
        return around and around.out
    return (around.folder / given).resolve()


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
