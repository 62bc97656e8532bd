"""What happened in a run beside its steps: plans, judgements, questions, decisions, pauses."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

from pydantic import JsonValue

from replan.cli.views.cells import answer_told, corrected, counted, one_line, seconds
from replan.errors import InputError
from replan.runs.run_event import RunEvent
from replan.runs.story import Pause, Story
from replan.state.questions import read_decision

if TYPE_CHECKING:
    from replan.ports.run_book import Request

LEAST_TOLD = 0.05
"""Seconds of a pause that is told."""

_DECIDED = {"approve": "approved", "reject": "rejected", "edit": "changed"}


def moment(at: datetime) -> str:
    """A time of the day, as people here read it."""
    return at.astimezone().strftime("%H:%M:%S")


def moments(story: Story) -> list[str]:
    """A line for each, in their order."""
    pauses = {each.ended: each for each in story.pauses if each.ended}
    told = list[tuple[datetime, str]]()
    in_requests = {key for request in story.run.requests for key in request.answers}
    for event in story.run.events:
        if event.at is None:
            continue
        if event.type == "answer_given" and event.details["key"] in in_requests:
            continue
        if event.type == "run_resumed" and (pause := pauses.get(event.at)):
            by = f" by {one_line(said)}" if (said := str(event.details.get("by", ""))) else ""
            told.append((event.at, f"gone on with{by}{_after(pause, event.at)}"))
        told += [(event.at, line) for line in _of_event(event, story)]
    told += [(request.at, line) for request in story.run.requests for line in _of_request(request)]
    return [f"{moment(at)} {one_line(line)}" for at, line in sorted(told, key=lambda each: each[0])]


def _after(pause: Pause, ended: datetime) -> str:
    lasted = (ended - pause.began).total_seconds()
    if pause.why == "killed":
        between = f"some time between {moment(pause.began)} and {moment(ended)}"
        return f", after its process had ended without a word, {between}"
    what = "it waited for a person" if pause.why == "waiting" else "nobody worked on it"
    return f" ({what} for {seconds(lasted)})" if lasted >= LEAST_TOLD else ""


def _of_event(event: RunEvent, story: Story) -> Iterator[str]:
    said = cast("Mapping[str, Any]", event.details)
    if event.type == "plan_updated" and said.get("changes"):
        why = _why(event, story)
        yield f"{said.get('by')} revised the plan, version {said.get('version')}{why}"
        yield f"changed: {changes_told(said['changes'])}"
    elif event.type in _LINES and (line := _LINES[event.type](said)):
        yield line


def _behind(text: object) -> str:
    return f": {one_line(str(text))}" if text else ""


def _who(said: Mapping[str, Any]) -> str:
    step, name = said.get("step_id"), one_line(str(said.get("specialist") or said.get("node", "")))
    return name if step is None else f"step {step} {name}"


def _why(event: RunEvent, story: Story) -> str:
    plan, version = story.run.plan, event.details.get("version")
    own = [each for each in (plan.update_history if plan else ()) if each.version == version]
    return _behind(own[0].description) if own else ""


def changes_told(changes: Mapping[str, Any]) -> str:
    """What a revision did, by the numbers of steps."""
    added = [
        f"{each['step']['id']} ({each['step']['description']})" for each in changes.get("added", [])
    ]
    modified = [
        f"{step} ({', '.join(fields)})" for step, fields in changes.get("modified", {}).items()
    ]
    parts = {"added": added, "removed": changes.get("removed"), "modified": modified}
    told = [f"{name} {', '.join(map(str, each))}" for name, each in parts.items() if each]
    told += ["changed the order"] if changes.get("reordered") else []
    told += [f"title {changes['title']}"] if "title" in changes else []
    return one_line("; ".join(told))


def _of_request(request: Request) -> Iterator[str]:
    by = one_line(request.by) or "somebody"
    if request.kind == "stop":
        yield f"{by} asked it to stop"
    for key, answer in request.answers.items():
        yield f"{by} {_answered(key, _unbound(answer))}"


def _answered(key: str, answer: JsonValue) -> str:
    if key != "plan":
        text = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
        return f"answered {one_line(key)}: {one_line(text)}"
    try:
        decision = read_decision(answer)
    except InputError:
        return f"answered about the plan: {one_line(str(answer))}"
    return f"{_DECIDED[decision.action]} the plan{_behind(decision.reason)}"


def _unbound(row: JsonValue) -> JsonValue:
    """An answer without what it is bound to."""
    return cast("dict[str, JsonValue]", row)["answer"] if isinstance(row, dict) else row


def _stopped(said: Mapping[str, Any]) -> str:
    by = f" by {one_line(said['by'])}" if said.get("by") else ""
    return f"stopped, {said['why']}{by}{_behind(said.get('error'))}"


def _approved(said: Mapping[str, Any]) -> str:
    tool = one_line(said["tool"])
    return f"{_who(said)}: a person {said['approval']} {tool}" if said.get("approval") else ""


def _routed(said: Mapping[str, Any]) -> str:
    chosen = (f"step {step} to {name}" for step, name in said["chosen"].items())
    return f"given by the cards: {one_line(', '.join(chosen))}"


_LINES: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "plan_created": lambda said: f"the plan was made: {counted(said.get('steps', 0), 'step')}",
    "approval_requested": lambda said: (
        f"a person is asked to approve the plan{_behind(said.get('reason'))}"
    ),
    "input_requested": lambda said: (
        f"{_who(said)} asked ({said.get('key')}){_behind(said.get('question'))}"
    ),
    "answer_given": lambda said: answer_told(
        said["key"], said["action"], said.get("by", ""), said.get("text", "")
    ),
    "feedback_generated": lambda said: f"judged{_behind(said.get('feedback'))}",
    "limit_reached": lambda said: (
        f"limit reached: {said['limit']}={said['value']:g} ({one_line(said['scope'])})"
    ),
    "run_corrected": lambda said: corrected(
        said["action"], said["step_id"], said.get("by", ""), said.get("origin", "")
    ),
    "run_stopped": _stopped,
    "task_completed": lambda said: f"over: {said['outcome']}",
    "memory_summary": lambda said: (
        f"no summary was written{_behind(said['error'])}"
        if said["error"]
        else f"a summary covers {counted(said['covered'], 'message')}"
    ),
    "memory_applied": lambda said: (
        f"of the conversation {counted(said['shown'], 'message')} seen, "
        f"{said['summarised']} summarised, {said['left_out']} left out, {said['cut']} cut"
    ),
    "tool_completed": _approved,
    "steps_reopened": lambda said: f"runs again: {one_line(', '.join(map(str, said['reruns'])))}",
    "steps_routed": _routed,
    "reply_unreadable": lambda said: (
        f"unreadable reply of {said['node']}{_behind(said.get('complaint'))}"
    ),
}
