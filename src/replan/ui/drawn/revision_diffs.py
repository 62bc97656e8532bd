"""The revisions of a plan, each as a difference of lines."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, Literal

from pydantic import JsonValue

from replan.log.fold import Outline, Revision
from replan.log.report import RunReport


@dataclass(frozen=True, kw_only=True)
class Line:
    """A line of a difference."""

    kind: Literal["same", "added", "removed"]
    text: str


def lines_of(revision: Revision) -> list[Line]:
    """What a revision changed, as a difference of lines."""
    before = [] if revision.is_first else _lines(revision.before)
    return [*difference(before, _lines(revision.after))]


def changed_steps(report: RunReport) -> dict[int, str]:
    """What revisions did last to steps that are in the plan, such as `added in version 2`."""
    changed, planned = dict[int, str](), {step.step.id for step in report.planned}
    for revision in report.revisions:
        where = f"in version {revision.version} by {revision.by}"
        modified = map(int, revision.changes.get("modified") or ())
        changed |= dict.fromkeys(modified, f"changed {where}")
        added = (int(one["step"]["id"]) for one in revision.changes.get("added") or ())
        changed |= dict.fromkeys(added, f"added {where}")
    return {step: text for step, text in changed.items() if step in planned}


def difference(before: Sequence[str], after: Sequence[str]) -> Iterator[Line]:
    """Compare two texts line by line: what was removed is above what was added."""
    compared = SequenceMatcher(None, before, after, autojunk=False)
    for kind, start, end, first, last in compared.get_opcodes():
        if kind == "equal":
            yield from (Line(kind="same", text=line) for line in before[start:end])
        else:
            yield from (Line(kind="removed", text=line) for line in before[start:end])
            yield from (Line(kind="added", text=line) for line in after[first:last])


def _lines(outline: Outline) -> list[str]:
    title = [f"# {outline.title}"] if outline.title else []
    return [*title, *(line for step in outline.steps for line in _step_lines(step))]


def _step_lines(step: Mapping[str, JsonValue]) -> Iterator[str]:
    """A step as in a document, and below it its other fields."""
    fields: dict[str, Any] = {**step}
    number, text = fields.pop("id", 0), str(fields.pop("description", ""))
    names = [fields.pop("assigned_to", ""), *(fields.pop("joined_by", None) or ())]
    fields.pop("created_at", None)  # the revision says when
    after = ", ".join(map(str, fields.pop("dependencies", None) or ()))
    condition: Mapping[str, Any] = fields.pop("condition", None) or {}
    waits = [f"(after {after})"] if after else []
    waits += [f"(if {condition['step']} {condition['outcome']})"] if condition else []
    who = [f"@{name}" for name in names if name]
    yield " ".join([f"{number}.", *text.splitlines(), *who, *waits])
    for name, value in fields.items():
        line_text = f"{name}: {value}" if value else ""
        for line in line_text.splitlines():
            yield f"   {line}"
