"""What happened in a run apart from its steps: plans, judgements, questions, decisions, pauses."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

from pydantic import JsonValue

from replan.errors import InputError
from replan.runs.course.revisions import HANDED_IN
from replan.runs.course.story import Pause, Story
from replan.runs.log.outline import Outline
from replan.runs.log.run_event import RunEvent
from replan.state.person.answers import read_decision
from replan.state.questions import short_key
from replan.views.cells import answer_text, corrected, counted, cut, one_line, seconds
from replan.views.run.error_lines import same_before, short_error
from replan.views.run.given import knowledge_text, memory_text

if TYPE_CHECKING:
    from replan.ports.run_book import Request

LEAST_TOLD = 0.05
"""Seconds of a pause that is reported."""

_LONGEST_VALUE, _LONGEST_CALL = 60, 200  # cells

_ASKED = ("input_requested", "answer_given", "run_corrected")

_DECIDED = {"approve": "approved", "reject": "rejected", "edit": "changed"}
NO_NEWS = "The plan goes on."
"""What a rule says about a round that needs no judgement."""


def moment(at: datetime, began: datetime) -> str:
    """A time as people here read it; with its date, unless that is the one of the beginning."""
    here = at.astimezone()
    is_same_day = here.date() == began.astimezone().date()
    return here.strftime("%H:%M:%S" if is_same_day else "%Y-%m-%d %H:%M:%S")


def moments(story: Story, step: int | None = None, *, has_failures: bool = False) -> list[str]:
    """A line for each, in their order; of a step only those that concern a person.

    With `has_failures`, also the attempts that came to nothing.
    """
    told = list[tuple[datetime, str]]()
    if step is None:
        told += [(each.ended, _resumed(each, story.began)) for each in story.pauses if each.ended]
    steps = _Steps(has_failures=has_failures)
    in_requests = {key for request in story.run.requests for key in request.answers}
    for event in story.run.events:
        if event.at is None:
            continue
        lines = list(_of_event(event, story, steps))
        if event.type == "answer_given" and short_key(str(event.details["key"])) in in_requests:
            continue
        if step is None or (event.type in _ASKED and event.details.get("step_id") == step):
            told += [(event.at, line) for line in lines]
    for request in story.run.requests:
        own = request if step is None else _of_step(request, step, story)
        told += [(request.at, line) for line in _of_request(own, story)]
    if has_failures:
        told += _failures(story)
    told.sort(key=lambda each: each[0])
    return [f"{moment(at, story.began)} {one_line(line)}" for at, line in told]


def _failures(story: Story) -> Iterator[tuple[datetime, str]]:
    own = [(step.attempts, each) for step in story.steps for each in step.attempts]
    for attempts, attempt in own:
        each = attempt.entry
        # The end of an attempt that a kill cut off is unknown; its beginning is shown.
        at = each.ended_at or (None if attempt.running_at else each.started_at)
        if at is not None and attempt.outcome not in ("done", "waiting"):
            who = f"step {each.step_id} {each.specialist}, attempt {each.number}"
            began = "" if each.ended_at else " began;"
            error = same_before(attempt, attempts) or short_error(each.error)
            yield at, f"{who}{began or ':'} {attempt.told}{_behind(error)}"


def _of_step(request: Request, step: int, story: Story) -> Request:
    """What of a request answers the questions of a step."""
    asked = (e.details for e in story.run.events if e.type in _ASKED and "key" in e.details)
    keys = {short_key(str(each["key"])) for each in asked if each.get("step_id") == step}
    answers = {key: each for key, each in request.answers.items() if key in keys}
    return request.replace(kind="answer", answers=answers)


def _resumed(pause: Pause, began: datetime) -> str:
    ended = pause.ended or pause.began
    lasted = (ended - pause.began).total_seconds()
    by = f" by {one_line(pause.by)}" if pause.by else ""
    if pause.why == "killed":
        between = f"some time between {moment(pause.began, began)} and {moment(ended, began)}"
        return f"resumed{by}, after its process had been killed, {between}"
    what = "it waited for a person" if pause.why == "waiting" else "nobody worked on it"
    return f"resumed{by}{f' ({what} for {seconds(lasted)})' if lasted >= LEAST_TOLD else ''}"


@dataclass
class _Steps:
    """What is known about the steps of a plan while its events are read, one after another."""

    has_failures: bool
    outline: Outline = field(default_factory=Outline)
    deciding: dict[Any, str] = field(default_factory=dict[Any, str])  # who, by step and decision

    def follow(self, event: RunEvent) -> str:
        """Update the steps after an event; show what a revision did, after the given words."""
        if event.type == "answer_given":
            said = event.details
            self.deciding[said.get("step_id"), said.get("action")] = str(said.get("by") or "")
        before = {str(step["id"]): step for step in self.outline.steps}
        self.outline = self.outline.after(event)
        changes = cast("Mapping[str, Any]", event.details.get("changes") or {})
        return changes_text(changes, before)

    def call(self, said: Mapping[str, Any]) -> Iterator[str]:
        """The outcome of a tool's call that a person decided about, or of each that failed."""
        approval, status = said.get("approval"), str(said.get("status"))
        if not approval and not (self.has_failures and status == "failed"):
            return
        # A job asks in its own words, so what approves its call is an answer.
        named = (self.deciding.get((said.get("step_id"), how)) for how in (approval, "answered"))
        by = one_line(next(filter(None, named), "a person"))
        how = [f"{'changed' if approval == 'edited' else approval} by {by}"] if approval else []
        how += {"rejected": [], "success": ["done"]}.get(status, [f"{status}{failure_of(said)}"])
        yield f"{_who(said)}: {shown_call(said)} {', '.join(how)}"

    def told(self) -> str:
        """The plan in one line."""
        return "; ".join(map(_planned, self.outline.steps))


def _planned(step: Mapping[str, Any]) -> str:
    names = [f"@{each}" for each in (step.get("assigned_to"), *step.get("joined_by", ())) if each]
    after = ", ".join(map(str, step.get("dependencies", ())))
    waits = [f"(after {after})"] if after else []
    return " ".join([str(step["id"]), str(step.get("description", "")), *names, *waits])


def _of_event(event: RunEvent, story: Story, steps: _Steps) -> Iterator[str]:
    said = cast("Mapping[str, Any]", event.details)
    changed = steps.follow(event)
    if event.type == "input_requested":
        said = {**_call_shown(said, story), **said}
    if event.type == "plan_created":
        first = one_line(story.revisions[0].by)
        how = first if first.startswith(HANDED_IN) else f"made by {first}"
        yield f"the plan was {how}: {counted(said.get('steps', 0), 'step')}"
    elif event.type == "plan_updated" and said.get("changes"):
        version = said.get("version")
        for each in (one for one in story.revisions if one.version == version and not one.is_first):
            yield f"{one_line(each.by)} revised the plan, version {version}{_behind(each.why)}"
        yield f"changed: {changed}"
    elif event.type == "tool_completed":
        yield from steps.call(said)
    elif event.type in _LINES and (line := _LINES[event.type](said)):
        yield line
    if event.type == "approval_requested" and _is_revised(story, event) and steps.outline.steps:
        yield f"the plan that was shown: {steps.told()}"


def _is_revised(story: Story, shown: RunEvent) -> bool:
    """Whether the plan that a person was shown is another one than that of the run now."""
    later = (each for each in story.run.events if (each.seq or 0) > (shown.seq or 0))
    return any(each.type == "plan_updated" and each.details.get("changes") for each in later)


def _call_shown(said: Mapping[str, Any], story: Story) -> Mapping[str, Any]:
    """The call that a question is about, as it was shown; older events lack it."""
    asked = story.run.questions.get(str(said.get("key")))
    is_call = asked is not None and asked.kind == "approval" and isinstance(asked.details, dict)
    return cast("Mapping[str, Any]", asked.details) if asked and is_call else {}


def called(said: Mapping[str, Any]) -> str:
    """A tool with its arguments."""
    arguments: Mapping[str, Any] = said["arguments"]
    pairs = (f"{name}={json.dumps(each, ensure_ascii=False)}" for name, each in arguments.items())
    return one_line(f"{said['tool']}({', '.join(pairs)})")


def shown_call(said: Mapping[str, Any]) -> str:
    """A tool with its arguments, each of them shortened."""
    pairs = (f"{name}={_short(each)}" for name, each in said["arguments"].items())
    return one_line(f"{said['tool']}({cut(', '.join(pairs), _LONGEST_CALL)})")


def failure_of(said: Mapping[str, Any]) -> str:
    """Why a call of a tool failed, shortened; nothing of one that did not."""
    error = str(said.get("result", "")).removeprefix("Error: ")
    return cut(_behind(error), _LONGEST_CALL) if said.get("status") == "failed" else ""


def _behind(text: object) -> str:
    return f": {one_line(str(text))}" if text else ""


def _who(said: Mapping[str, Any]) -> str:
    step, name = said.get("step_id"), one_line(str(said.get("specialist") or said.get("node", "")))
    return name if step is None else f"step {step} {name}"


def _whom(said: Mapping[str, Any]) -> str:
    return "host" if said.get("step_id") is None else _who(said)


def changes_text(changes: Mapping[str, Any], before: Mapping[str, Mapping[str, Any]]) -> str:
    """The changes of a revision, by the numbers of steps; `before` has their old fields."""
    added = [
        f"{each['step']['id']} ({each['step']['description']})" for each in changes.get("added", [])
    ]
    modified = [
        f"{step} ({', '.join(_modified(fields, before.get(step, {})))})"
        for step, fields in changes.get("modified", {}).items()
    ]
    parts = {"added": added, "removed": changes.get("removed"), "modified": modified}
    told = [f"{name} {', '.join(map(str, each))}" for name, each in parts.items() if each]
    told += ["changed the order"] if changes.get("reordered") else []
    told += [f"title {changes['title']}"] if "title" in changes else []
    return one_line("; ".join(told))


def _modified(fields: Mapping[str, Any], before: Mapping[str, Any]) -> Iterator[str]:
    for name, value in fields.items():
        # The outline of a plan leaves out what few steps have: only the new value of that is shown.
        old = f"{_short(before[name])} -> " if name in before else ""
        yield f"{name}: {old}{_short(value)}"


def _short(value: object) -> str:
    return cut(json.dumps(value, ensure_ascii=False), _LONGEST_VALUE)


def _of_request(request: Request, story: Story) -> Iterator[str]:
    by, questions = one_line(request.by) or "somebody", story.run.questions
    if request.kind == "stop":
        yield f"{by} asked it to stop"
    for key, answer in request.answers.items():
        is_decision = key == "plan" or (key in questions and questions[key].kind == "approval")
        yield f"{by} {(_decided if is_decision else _answered)(one_line(key), _unbound(answer))}"


def _answered(key: str, answer: JsonValue) -> str:
    text = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
    return f"answered {key}: {one_line(text)}"


def _decided(key: str, answer: JsonValue) -> str:
    try:
        decision = read_decision(answer)
    except InputError:
        return _answered(key, answer)
    what = "the plan" if key == "plan" else key
    changed = decision.arguments and json.dumps(decision.arguments, ensure_ascii=False)
    return f"{_DECIDED[decision.action]} {what}{_behind(decision.reason or changed)}"


def _unbound(row: JsonValue) -> JsonValue:
    """An answer without its fingerprint."""
    return cast("dict[str, JsonValue]", row)["answer"] if isinstance(row, dict) else row


def _stopped(said: Mapping[str, Any]) -> str:
    by = f" by {one_line(said['by'])}" if said.get("by") else ""
    if said["why"] == "waiting":
        return "now it waits for a person"
    return f"stopped, {said['why']}{by}{_behind(said.get('error'))}"


def _routed(said: Mapping[str, Any]) -> str:
    chosen = (f"step {step} to {name}" for step, name in said["chosen"].items())
    return f"given by the cards: {one_line(', '.join(chosen))}"


_LINES: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "approval_requested": lambda said: (
        f"a person is asked to approve the plan{_behind(said.get('reason'))}"
        f"{_behind(said.get('problem'))}"
    ),
    "input_requested": lambda said: (
        f"{_who(said)} asked ({short_key(str(said.get('key')))}){_behind(said.get('question'))}"
        f"{f' {called(said)}' if 'tool' in said else ''}"
    ),
    "answer_given": lambda said: answer_text(
        short_key(said["key"]), said["action"], said.get("by", ""), said.get("text", "")
    ),
    "feedback_generated": lambda said: (
        f"judged: {one_line(str(said['feedback']))}"
        if said.get("feedback") not in (None, "", NO_NEWS)
        else ""
    ),
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
    "memory_applied": lambda said: f"{_whom(said)} {memory_text(said)}",
    "knowledge_retrieved": lambda said: f"{_whom(said)} {knowledge_text(said)}",
    "fact_remembered": lambda said: (
        f"{_who(said)} remembered fact {said['fact_id']}{_behind(said['text'])}"
    ),
    "fact_forgotten": lambda said: (
        f"{_who(said)} forgot fact {said['fact_id']}{_behind(said['text'])}"
    ),
    "phase_entered": lambda said: f"{_who(said)} entered the phase {one_line(said['phase'])}",
    "steps_reopened": lambda said: f"runs again: {one_line(', '.join(map(str, said['reruns'])))}",
    "steps_routed": _routed,
    "reply_unreadable": lambda said: (
        f"unreadable reply of {said['node']}{_behind(said.get('complaint'))}"
    ),
}
