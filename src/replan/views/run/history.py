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
from replan.state.cuts import CUTS
from replan.state.person.answers import read_decision
from replan.state.questions import is_of_plan, short_key
from replan.views.cells import answer_text, correction_text, counted, cut, one_line, seconds
from replan.views.run.error_lines import same_error_before, short_error
from replan.views.run.given import knowledge_text, memory_text

if TYPE_CHECKING:
    from replan.log.rows import Request

LEAST_TOLD = 0.05
"""Seconds of a pause that is reported."""

_LONGEST_VALUE, _LONGEST_CALL = 60, 200  # cells

_ASKED = ("input_requested", "answer_received", "run_corrected")

_DECIDED = {"approve": "approved", "reject": "rejected", "edit": "changed"}
NO_NEWS = "The plan goes on."
"""What a rule says about a round that needs no judgement."""


def time_text(at: datetime, began: datetime) -> str:
    """A time as people here read it; with its date, unless that is the one of the beginning."""
    here = at.astimezone()
    is_same_day = here.date() == began.astimezone().date()
    return here.strftime("%H:%M:%S" if is_same_day else "%Y-%m-%d %H:%M:%S")


def history_lines(
    story: Story, step: int | None = None, *, has_failures: bool = False
) -> list[str]:
    """The lines of the history, in order; of a step only those that concern a person.

    With `has_failures`, also the attempts that came to nothing.
    """
    timed = list[tuple[datetime, str]]()
    if step is None:
        timed += [
            (each.ended, _resumed_text(each, story.began)) for each in story.pauses if each.ended
        ]
    steps = _Steps(has_failures=has_failures)
    in_requests = {key for request in story.run.requests for key in request.answers}
    for event in story.run.events:
        if event.at is None:
            continue
        lines = list(_event_lines(event, story, steps))
        if event.type == "answer_received" and short_key(str(event.details["key"])) in in_requests:
            continue
        if step is None or (event.type in _ASKED and event.details.get("step_id") == step):
            timed += [(event.at, line) for line in lines]
    for request in story.run.requests:
        own = request if step is None else _request_of_step(request, step, story)
        timed += [(request.at, line) for line in _request_lines(own, story)]
    if has_failures:
        timed += _failures(story)
    timed.sort(key=lambda each: each[0])
    return [f"{time_text(at, story.began)} {one_line(line)}" for at, line in timed]


def _failures(story: Story) -> Iterator[tuple[datetime, str]]:
    own = [(step.attempts, each) for step in story.steps for each in step.attempts]
    for attempts, attempt in own:
        each = attempt.entry
        # The end of an attempt that a kill cut off is unknown; its beginning is shown.
        at = each.ended_at or (None if attempt.running_at else each.started_at)
        if at is not None and attempt.outcome not in ("done", "waiting"):
            who = f"step {each.step_id} {each.specialist}, attempt {each.number}"
            began = "" if each.ended_at else " began;"
            error = same_error_before(attempt, attempts) or short_error(each.error)
            yield at, f"{who}{began or ':'} {attempt.told}{_after_colon(error)}"


def _request_of_step(request: Request, step: int, story: Story) -> Request:
    """The part of a request that answers the questions of a step."""
    asked = (e.details for e in story.run.events if e.type in _ASKED and "key" in e.details)
    keys = {short_key(str(each["key"])) for each in asked if each.get("step_id") == step}
    answers = {key: each for key, each in request.answers.items() if key in keys}
    return request.replace(kind="answer", answers=answers)


def _resumed_text(pause: Pause, began: datetime) -> str:
    ended = pause.ended or pause.began
    lasted = (ended - pause.began).total_seconds()
    by = f" by {one_line(pause.by)}" if pause.by else ""
    if pause.why == "killed":
        between = f"some time between {time_text(pause.began, began)} and {time_text(ended, began)}"
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
        if event.type == "answer_received":
            details = event.details
            self.deciding[details.get("step_id"), details.get("action")] = str(
                details.get("by") or ""
            )
        before = {str(step["id"]): step for step in self.outline.steps}
        self.outline = self.outline.after(event)
        changes = cast("Mapping[str, Any]", event.details.get("changes") or {})
        return changes_text(changes, before)

    def call(self, details: Mapping[str, Any]) -> Iterator[str]:
        """The outcome of a tool's call that a person decided about, or of each that failed."""
        approval, status = details.get("approval"), str(details.get("status"))
        if not approval and not (self.has_failures and status == "failed"):
            return
        # A job asks in its own words, so what approves its call is an answer.
        named = (self.deciding.get((details.get("step_id"), how)) for how in (approval, "answered"))
        by = one_line(next(filter(None, named), "a person"))
        how = [f"{'changed' if approval == 'edited' else approval} by {by}"] if approval else []
        how += {"rejected": [], "success": ["done"]}.get(
            status, [f"{status}{failure_text(details)}"]
        )
        yield f"{_who(details)}: {short_call_text(details)} {', '.join(how)}"

    def plan_text(self) -> str:
        """The plan in one line."""
        return "; ".join(map(_planned_text, self.outline.steps))


def _planned_text(step: Mapping[str, Any]) -> str:
    names = [f"@{each}" for each in (step.get("assigned_to"), *step.get("joined_by", ())) if each]
    after = ", ".join(map(str, step.get("dependencies", ())))
    waits = [f"(after {after})"] if after else []
    return " ".join([str(step["id"]), str(step.get("description", "")), *names, *waits])


def _event_lines(event: RunEvent, story: Story, steps: _Steps) -> Iterator[str]:
    details = cast("Mapping[str, Any]", event.details)
    changed = steps.follow(event)
    if event.type == "input_requested":
        details = {**_call_shown(details, story), **details}
    if event.type == "plan_created":
        first = one_line(story.revisions[0].by)
        how = first if first.startswith(HANDED_IN) else f"made by {first}"
        yield f"the plan was {how}: {counted(details.get('steps', 0), 'step')}"
    elif event.type == "plan_updated" and details.get("changes"):
        version = details.get("version")
        for each in (one for one in story.revisions if one.version == version and not one.is_first):
            yield f"{one_line(each.by)} revised the plan, version {version}{_after_colon(each.why)}"
        yield f"changed: {changed}"
    elif event.type == "tool_completed":
        yield from steps.call(details)
    elif event.type in _LINES and (line := _LINES[event.type](details)):
        yield line
    if event.type == "approval_requested" and _is_revised(story, event) and steps.outline.steps:
        yield f"the plan that was shown: {steps.plan_text()}"


def _is_revised(story: Story, shown: RunEvent) -> bool:
    """Whether the plan that a person was shown is another one than that of the run now."""
    later = (each for each in story.run.events if (each.seq or 0) > (shown.seq or 0))
    return any(each.type == "plan_updated" and each.details.get("changes") for each in later)


def _call_shown(details: Mapping[str, Any], story: Story) -> Mapping[str, Any]:
    """The call that a question is about, as it was shown."""
    asked = story.run.questions.get(str(details.get("key")))
    is_call = asked is not None and asked.kind == "approval" and isinstance(asked.details, dict)
    return cast("Mapping[str, Any]", asked.details) if asked and is_call else {}


def call_text(details: Mapping[str, Any]) -> str:
    """A tool with its arguments."""
    arguments: Mapping[str, Any] = details["arguments"]
    pairs = (f"{name}={json.dumps(each, ensure_ascii=False)}" for name, each in arguments.items())
    return one_line(f"{details['tool']}({', '.join(pairs)})")


def short_call_text(details: Mapping[str, Any]) -> str:
    """A tool with its arguments, each of them shortened."""
    pairs = (f"{name}={_short(each)}" for name, each in details["arguments"].items())
    return one_line(f"{details['tool']}({cut(', '.join(pairs), _LONGEST_CALL)})")


def failure_text(details: Mapping[str, Any]) -> str:
    """Why a call of a tool failed, shortened; nothing of one that did not."""
    error = str(details.get("result", "")).removeprefix("Error: ")
    return cut(_after_colon(error), _LONGEST_CALL) if details.get("status") == "failed" else ""


def _after_colon(text: object) -> str:
    return f": {one_line(str(text))}" if text else ""


def _who(details: Mapping[str, Any]) -> str:
    step, name = (
        details.get("step_id"),
        one_line(str(details.get("specialist") or details.get("node", ""))),
    )
    return name if step is None else f"step {step} {name}"


def _whom(details: Mapping[str, Any]) -> str:
    return "host" if details.get("step_id") is None else _who(details)


def changes_text(changes: Mapping[str, Any], before: Mapping[str, Mapping[str, Any]]) -> str:
    """The changes of a revision, by the numbers of steps; `before` has their old fields."""
    added = [
        f"{each['step']['id']} ({each['step']['description']})" for each in changes.get("added", [])
    ]
    modified = [
        f"{step} ({', '.join(_modified_fields(fields, before.get(step, {})))})"
        for step, fields in changes.get("modified", {}).items()
    ]
    parts = {"added": added, "removed": changes.get("removed"), "modified": modified}
    texts = [f"{name} {', '.join(map(str, each))}" for name, each in parts.items() if each]
    texts += ["changed the order"] if changes.get("reordered") else []
    texts += [f"title {changes['title']}"] if "title" in changes else []
    return one_line("; ".join(texts))


def _modified_fields(fields: Mapping[str, Any], before: Mapping[str, Any]) -> Iterator[str]:
    for name, value in fields.items():
        # The outline of a plan leaves out what few steps have: only the new value of that is shown.
        old = f"{_short(before[name])} -> " if name in before else ""
        yield f"{name}: {old}{_short(value)}"


def _short(value: object) -> str:
    return cut(json.dumps(value, ensure_ascii=False), _LONGEST_VALUE)


def _request_lines(request: Request, story: Story) -> Iterator[str]:
    by, questions = one_line(request.by) or "somebody", story.run.questions
    if request.kind == "stop":
        yield f"{by} asked it to stop"
    for key, answer in request.answers.items():
        is_decision = is_of_plan(key) or (key in questions and questions[key].kind == "approval")
        text_of = _decision_text if is_decision else _answered_text
        yield f"{by} {text_of(one_line(key), _without_fingerprint(answer))}"


def _answered_text(key: str, answer: JsonValue) -> str:
    text = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
    return f"answered {key}: {one_line(text)}"


def _decision_text(key: str, answer: JsonValue) -> str:
    try:
        decision = read_decision(answer)
    except InputError:
        return _answered_text(key, answer)
    what = "the plan" if is_of_plan(key) else key
    changed = decision.arguments and json.dumps(decision.arguments, ensure_ascii=False)
    return f"{_DECIDED[decision.action]} {what}{_after_colon(decision.reason or changed)}"


def _without_fingerprint(row: JsonValue) -> JsonValue:
    """An answer without its fingerprint."""
    return cast("dict[str, JsonValue]", row)["answer"] if isinstance(row, dict) else row


def _stopped_text(details: Mapping[str, Any]) -> str:
    by = f" by {one_line(details['by'])}" if details.get("by") else ""
    if details["reason"] == "waiting":
        return "now it waits for a person"
    return f"stopped, {details['reason']}{by}{_after_colon(details.get('error'))}"


def _routed_text(details: Mapping[str, Any]) -> str:
    chosen = (f"step {step} to {name}" for step, name in details["assignments"].items())
    return f"given by the cards: {one_line(', '.join(chosen))}"


_LINES: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "approval_requested": lambda details: (
        f"a person is asked to approve the plan{_after_colon(details.get('reason'))}"
        f"{_after_colon(details.get('problem'))}"
    ),
    "input_requested": lambda details: (
        f"{_who(details)} asked ({short_key(str(details.get('key')))})"
        f"{_after_colon(details.get('question'))}"
        f"{f' {call_text(details)}' if 'tool' in details else ''}"
    ),
    "answer_received": lambda details: answer_text(
        short_key(details["key"]), details["action"], details.get("by", ""), details.get("text", "")
    ),
    "feedback_generated": lambda details: (
        f"judged: {one_line(str(details['feedback']))}"
        if details.get("feedback") not in (None, "", NO_NEWS)
        else ""
    ),
    "limit_reached": lambda details: (
        CUTS.get(details["limit"])
        or f"limit reached: {details['limit']}={details['value']:g} ({one_line(details['scope'])})"
    ),
    "run_corrected": lambda details: correction_text(
        details["action"], details["step_id"], details.get("by", ""), details.get("origin", "")
    ),
    "run_stopped": _stopped_text,
    "task_completed": lambda details: f"over: {details['outcome']}",
    "memory_summary": lambda details: (
        f"no summary was written{_after_colon(details['error'])}"
        if details["error"]
        else f"a summary covers {counted(details['covered'], 'message')}"
    ),
    "memory_applied": lambda details: f"{_whom(details)} {memory_text(details)}",
    "knowledge_retrieved": lambda details: f"{_whom(details)} {knowledge_text(details)}",
    "fact_remembered": lambda details: (
        f"{_who(details)} remembered fact {details['fact_id']}{_after_colon(details['text'])}"
    ),
    "fact_forgotten": lambda details: (
        f"{_who(details)} forgot fact {details['fact_id']}{_after_colon(details['text'])}"
    ),
    "phase_entered": lambda details: (
        f"{_who(details)} entered the phase {one_line(details['phase'])}"
    ),
    "steps_invalidated": lambda details: (
        f"runs again: {one_line(', '.join(map(str, details['reruns'])))}"
    ),
    "steps_routed": _routed_text,
    "reply_parse_failed": lambda details: (
        f"unreadable reply of {details['node']}{_after_colon(details.get('problem'))}"
    ),
}
