"""A report of results: its text, and how it and its chart are written."""

import hashlib
import os
import re
import secrets
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

from replan.plan.model import Value
from replan.plan.statuses import excerpt
from replan.ports.folders import Folders
from replan.state.results import Artifact
from replan_local.answer_table import tables_in
from replan_local.chart import draw, table_to_draw
from replan_local.commands import Chart, Report
from replan_local.refusals import CannotAnswerError
from replan_local.searching import REPORT_MARK

_TITLE_LINE = re.compile(r"^(?:#{1,6}\s+(?P<heading>.+)|\*\*(?P<bold>[^*\n]+)\*\*.*)$")
_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_LONGEST_TITLE, _LONGEST_SLUG = 90, 40


class Section(Value):
    title: str  # what it is about
    text: str  # its text in Markdown


class Written(Value):
    text: str  # what is said about it
    artifacts: tuple[Artifact, ...] = ()  # the report, and its chart if there is one


def sections_of(inputs: Mapping[int, str]) -> tuple[Section, ...]:
    return tuple(
        Section(title=_section_title(text, step), text=text)
        for step, given in sorted(inputs.items())
        if (text := given.strip())
    )


def write_report(
    asked: Report, sections: Sequence[Section], *, folders: Folders, key: str, now: datetime
) -> Written:
    """Write a report and its chart; with the same title and key, the same files again."""
    names = ", ".join(each.title for each in sections)
    title = _one_line(asked.title or f"Report: {names}")
    # The name does not depend on the results: the same step writes the same file again.
    path = folders.out / f"{_stem(asked.title, key)}.md"
    # The chart before the report, which never shows a picture that is not there.
    charts, picture = _chart(asked.chart, sections, path.with_suffix(".svg"), folders)
    parts = [f"# {_inert(title)}", f"{now:%Y-%m-%d}", *([picture] if picture else [])]
    for number, part in enumerate(sections, start=1):
        parts += [f"## {number}. {_inert(part.title)}", _inert(part.text)]
    write_whole(path, "\n\n".join([*parts, REPORT_MARK]) + "\n")
    report = Artifact(path=_place(path, folders), title=title, media_type="text/markdown")
    told = f"**{title}**: written to `{report.path}`"
    told += f", with a chart in `{charts[0].path}`." if charts else f".\n\n{picture}"
    return Written(text=told.strip(), artifacts=(report, *charts))


def write_whole(path: Path, text: str) -> None:
    """Put the whole file in its place at once; whoever reads meanwhile sees the old one or this."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # Opened like any file, so that the umask says who may read it.
    temporary = path.with_name(f".report-{secrets.token_hex(8)}.tmp")
    try:
        with temporary.open("x", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _chart(
    shape: Chart, sections: Sequence[Section], path: Path, folders: Folders
) -> tuple[Sequence[Artifact], str]:
    """Draw a table of the results; return the file, and how the report shows it, or why not."""
    if not shape:
        return (), ""
    tables = [table for each in sections for table in tables_in(each.text, each.title)]
    try:
        table = table_to_draw(tables)
        write_whole(path, draw(table, shape))
    except CannotAnswerError as refusal:
        return (), str(refusal)
    title = f"Chart: {table.title}"
    picture = f"![{_inert(title).replace('[', '(').replace(']', ')')}]({path.name})"
    return [Artifact(path=_place(path, folders), title=title, media_type="image/svg+xml")], picture


def _inert(text: str) -> str:
    """Write tags and pictures as entities, so that HTML is shown and nothing is loaded."""
    return _TAG.sub("&lt;", text).replace("![", "&#33;[")


def _section_title(text: str, step: int) -> str:
    found = _TITLE_LINE.match(text.partition("\n")[0].strip())
    title = (found["heading"] or found["bold"]) if found else ""
    return _one_line(title) or f"Result of step {step}"


def _one_line(text: str) -> str:
    return excerpt(" ".join(text.replace("#", " ").split()), _LONGEST_TITLE)


def _stem(title: str, key: str) -> str:
    """A name of our own letters; its end is the work's own, so that no run meets another's file."""
    ascii_title = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode()
    slug = "-".join(re.findall(r"[a-z0-9]+", ascii_title.lower()))[:_LONGEST_SLUG].strip("-")
    return f"{slug or 'report'}-{hashlib.sha256(key.encode()).hexdigest()[:12]}"


def _place(path: Path, folders: Folders) -> str:
    """The file relative to the workspace, or its whole path where it lies outside."""
    full, root = path.resolve(), folders.workspace.resolve()
    return full.relative_to(root).as_posix() if full.is_relative_to(root) else str(full)
