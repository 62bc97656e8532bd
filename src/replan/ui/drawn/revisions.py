"""The revisions of a plan, each as a difference of lines, with who made it and why."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import SequenceMatcher
from typing import Any, Literal, cast

from pydantic import JsonValue

from replan.plan.model import TaskPlan
from replan.runs.course.story import Story
from replan.runs.log.outline import Outline
from replan.runs.log.run_event import RunEvent

_REVISING = ("plan_created", "plan_updated")


@dataclass(frozen=True, kw_only=True)
class Line:
    """A line of a difference."""

    kind: Literal["same", "added", "removed"]
    text: str


@dataclass(frozen=True, kw_only=True)
class Revision:
    """What became of a plan at once."""

    version: int
    at: datetime | None
    by: str  # model, person or rule; empty for the first plan
    why: str
    lines: tuple[Line, ...]
    is_first: bool = False


def revisions_of(story: Story) -> list[Revision]:
    """Give the revisions of a run's plan, the first plan before all others."""
    reasons = _reasons(story.run.plan)
    outline, found = Outline(), list[Revision]()
    for event in story.run.events:
        before = _lines(outline)
        outline = outline.after(event)
        if _revises(event):
            version = int(cast("Any", event.details.get("version")) or 0)
            is_first = event.type == "plan_created"
            found.append(
                Revision(
                    version=version,
                    at=event.at,
                    by="" if is_first else str(event.details.get("by", "")),
                    why=reasons.get(version, ""),
                    lines=tuple(difference([] if is_first else before, _lines(outline))),
                    is_first=is_first,
                )
            )
    return found


def changed_steps(events: Sequence[RunEvent]) -> dict[int, int]:
    """The steps that revisions added or changed, each with the version that did it last."""
    changed = dict[int, int]()
    for event in events:
        if event.type == "plan_updated" and (said := event.details.get("changes")):
            changes = cast("Mapping[str, Any]", said)
            version = int(cast("Any", event.details.get("version")) or 0)
            numbers = [int(each["step"]["id"]) for each in changes.get("added", ())]
            numbers += [int(each) for each in changes.get("modified", {})]
            changed |= dict.fromkeys(numbers, version)
    return changed


def difference(before: Sequence[str], after: Sequence[str]) -> Iterator[Line]:
    """Compare two texts line by line: what was removed stands above what was added."""
    compared = SequenceMatcher(None, before, after, autojunk=False)
    for kind, start, end, first, last in compared.get_opcodes():
        if kind == "equal":
            yield from (Line(kind="same", text=each) for each in before[start:end])
        else:
            yield from (Line(kind="removed", text=each) for each in before[start:end])
            yield from (Line(kind="added", text=each) for each in after[first:last])


def _revises(event: RunEvent) -> bool:
    return event.type in _REVISING and bool(
        event.type == "plan_created" or event.details.get("changes")
    )


def _reasons(plan: TaskPlan | None) -> dict[int, str]:
    return {each.version: each.description for each in (plan.update_history if plan else ())}


def _lines(outline: Outline) -> list[str]:
    title = [f"# {outline.title}"] if outline.title else []
    return [*title, *(line for step in outline.steps for line in _step_lines(step))]


def _step_lines(step: Mapping[str, JsonValue]) -> Iterator[str]:
    """A step as a document has it, and below it what else is known of its fields."""
    fields: dict[str, Any] = {**step}
    number, text = fields.pop("id", 0), str(fields.pop("description", ""))
    names = [fields.pop("assigned_to", ""), *(fields.pop("joined_by", None) or ())]
    fields.pop("created_at", None)  # the revision says when
    after = ", ".join(map(str, fields.pop("dependencies", None) or ()))
    condition: Mapping[str, Any] = fields.pop("condition", None) or {}
    waits = [f"(after {after})"] if after else []
    waits += [f"(if {condition['step']} {condition['outcome']})"] if condition else []
    who = [f"@{each}" for each in names if each]
    yield " ".join([f"{number}.", *text.splitlines(), *who, *waits])
    for name, value in fields.items():
        told = f"{name}: {value}" if value else ""
        for line in told.splitlines():
            yield f"   {line}"
