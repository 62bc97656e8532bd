"""The content of a team's knowledge, as far as it can be counted."""

from collections.abc import Mapping
from os.path import normpath

from pydantic import JsonValue

from replan.base.errors import RetrievalError
from replan.knowledge.folder import FolderRetriever
from replan.views.cells import counted, one_line


def count_knowledge(knowledge: object) -> dict[str, JsonValue]:
    """Count the files and passages of a folder, and name what is left out."""
    if not isinstance(knowledge, FolderRetriever):
        return {"retriever": type(knowledge).__name__}
    try:
        files, passages, left_out = knowledge.looked_through()
    except RetrievalError as error:
        return {"folder": normpath(knowledge.folder), "error": str(error)}
    found: dict[str, JsonValue] = {"files": files, "passages": passages, "skipped": [*left_out]}
    return {"folder": normpath(knowledge.folder), **found}


def knowledge_lines(knowledge: Mapping[str, JsonValue]) -> list[str]:
    match knowledge:
        case {"retriever": name}:
            return [f"knowledge: searched by {name}"]
        case {"error": error}:
            return [f"knowledge: {one_line(str(error))}"]
        case {"files": int(files), "passages": int(passages), "skipped": list(left_out)}:
            size = f"{counted(files, 'file')}, {counted(passages, 'passage')}"
            head = f"knowledge: {knowledge['folder']}: {size}"
            return [head, *(f"  {one_line(str(each))}" for each in left_out)]
        case _:
            return []
