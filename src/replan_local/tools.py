"""What the keyless team can do, as tools that a model calls.

`query_tables`, `search_notes`, `calculate` and `write_report` work in the folders of the step in
whose name they are called; `local_tools` gives the same four for folders of your own.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from langchain_core.tools import BaseTool, StructuredTool

from replan.ports.run_context import Folders, folders_of_step
from replan_local.commands import Query, Search
from replan_local.expressions import calculated
from replan_local.querying import answer
from replan_local.report import write_report as written
from replan_local.searching import passages_on
from replan_local.tables import Tables


def local_tools(directory: Path | str, out: Path | str | None = None) -> tuple[BaseTool, ...]:
    """Return the four tools for a folder.

    Args:
        directory: The folder whose tables and notes may be read.
        out: Where reports are written; without it, in the folder.
    """
    folders = Folders(Path(directory), Path(out or directory))
    return _tools(lambda: folders)


def _tools(folders: Callable[[], Folders]) -> tuple[BaseTool, ...]:
    def query_tables(sql: str = "") -> str:
        """Query the CSV, Parquet and JSON files of the folder with one SELECT of DuckDB's SQL.

        Args:
            sql: The query; without it, the tables, their columns and their names in SQL are listed.
        """
        return answer(Query(sql=sql), Tables(folders().workspace))

    def search_notes(query: str, file: str = "", top: int = 3) -> str:
        """Find passages in the notes of the folder (txt, md, rst, html), quoted with file and line.

        Args:
            query: The words to look for; a passage with more of them comes first.
            file: Only in this file.
            top: At most so many passages.
        """
        return passages_on(Search(query=query, file=file, top=top), folders().workspace)

    def calculate(expression: str) -> str:
        """Compute exactly.

        Args:
            expression: Numbers with + - * / ^ ( ), and `12.5 % of 80`.
        """
        return calculated(expression, {})

    def write_report(title: str, text: str, *, idempotency_key: str = "") -> str:
        """Write a report file.

        Args:
            title: Its title.
            text: Its text in Markdown.
            idempotency_key: What tells this call from any other.
        """
        report = written(title, text, folders=folders(), key=idempotency_key or text)
        return f"**{report.title}**: written to `{report.path}`."

    make: Any = partial(StructuredTool.from_function, parse_docstring=True, handle_tool_error=True)
    readers = (query_tables, search_notes, calculate)
    return (*(make(reader, metadata={"effects": "pure"}) for reader in readers), make(write_report))


query_tables, search_notes, calculate, write_report = _tools(folders_of_step)
