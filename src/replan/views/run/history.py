"""What happened in a run apart from its steps: plans, judgements, questions, decisions, pauses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from difflib import SequenceMatcher
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from pydantic import JsonValue

from replan.base.errors import InputError
from replan.base.values import json_text, text_or_json
from replan.log.events import types as events
from replan.log.fold import HANDED_IN, Pause, Revision
from replan.log.reasons import Reported, why_ended
from replan.log.report import RunReport
from replan.plan.markdown.document import PlanDocument
from replan.plan.model import PlanStep, TaskPlan
from replan.state.person.answers import problem_in, read_decision, read_verdict
from replan.state.questions import PLAN, is_of_plan, short_key
from replan.views.cells import counted, cut, one_line, seconds
from replan.views.event_lines import (
    call_text,
    context_text,
    event_line,
    failure_text,
    short_call_text,
    who,
)
from replan.views.run.error_lines import same_error_before, short_error
from replan.views.step_texts import waits_in_words

if TYPE_CHECKING:
    from replan.log.rows import Fork, Request

_IN_LINE = {"id", "description", "assigned_to", "joined_by", "dependencies", "condition"}
_SAID_ELSEWHERE = {"created_at"}  # the revision says when


def lines_of(revision: Revision) -> list[str]:
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


def difference(before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    """Compare two texts, each line with its sign: what was removed is above what was added."""
    compared = SequenceMatcher(None, before, after, autojunk=False)
    for kind, start, end, first, last in compared.get_opcodes():
        same = kind == "equal"
        yield from (f"{'  ' if same else '- '}{line}" for line in before[start:end])
        yield from (f"+ {line}" for line in after[first:last] if not same)


def _lines(plan: TaskPlan) -> list[str]:
    title = [f"# {plan.title}"] if plan.title else []
    return [*title, *(line for step in plan.steps for line in step_lines(step))]


def step_lines(step: PlanStep) -> Iterator[str]:
    """A step as in a document, and below it its other fields."""
    waits = [f"({wait})" for wait in waits_in_words(step)]
    who = [f"@{name}" for name in step.specialists]
    yield " ".join([f"{step.id}.", *step.description.splitlines(), *who, *waits])
    rest = _IN_LINE | _SAID_ELSEWHERE
    for name, value in step.model_dump(mode="json", exclude=rest, exclude_defaults=True).items():
        yield from (f"   {line}" for line in f"{name}: {value}".splitlines())


LEAST_TOLD = 0.05
"""Seconds of a pause that is reported."""


_Asked = events.InputRequested | events.AnswerReceived | events.RunCorrected

_MOST_NEW = 3  # steps of an edit that are named
_LONGEST_CHANGE = 120

_DECIDED = {"approve": "approved", "reject": "rejected", "edit": "changed"}


def time_text(at: datetime, began: datetime) -> str:
    """A time as people here read it; with its date, unless that is the one of the beginning."""
    here = at.astimezone()
    is_same_day = here.date() == began.astimezone().date()
    return here.strftime("%H:%M:%S" if is_same_day else "%Y-%m-%d %H:%M:%S")


def why_text(report: RunReport, *, has_failures: bool = True) -> str:
    """Why a run ended, or has its status, with the times as people here read them."""
    when = partial(time_text, began=report.began)
    return why_ended(cast("Reported", report), when=when, has_failures=has_failures)


def history_lines(
    report: RunReport, step: int | None = None, *, has_failures: bool = False
) -> list[str]:
    """The history in lines; see `moments`."""
    return [" ".join(moment) for moment in moments(report, step, has_failures=has_failures)]


def moments(
    report: RunReport, step: int | None = None, *, has_failures: bool = False
) -> list[tuple[str, str]]:
    """The history, in order: when, and what; of a step only what concerns a person.

    With `has_failures`, also the attempts that came to nothing.
    """
    timed = list(_dated_lines(report, step, has_failures=has_failures))
    if step is None:
        resumed = ((pause.ended, _resumed_text(pause, report.began)) for pause in report.pauses)
        timed = [*((at, text) for at, text in resumed if at), *timed]
        timed += ((fork.at, _fork_text(fork, report.began)) for fork in report.forks)
    for request in report.requests:
        own_request = request if step is None else _request_of_step(request, step, report)
        timed += [(request.at, line) for line in request_lines(own_request, report)]
    timed += _untold_lines(report, step)
    if has_failures:
        timed += _failures(report)
    timed.sort(key=lambda dated_line: dated_line[0])
    return [(time_text(at, report.began), one_line(line)) for at, line in timed]


def _dated_lines(
    report: RunReport, step: int | None, *, has_failures: bool
) -> Iterator[tuple[datetime, str]]:
    """What is said about events; an answer of which there is a request is told by that."""
    decided = dict[Any, str]()
    in_requests = {key for request in report.requests for key in request.answers}
    for event in report.events:
        is_known = False
        if isinstance(event, events.AnswerReceived):
            decided[event.step_id, event.action] = event.by
            is_known = short_key(event.key) in in_requests
        is_own = step is None or (isinstance(event, _Asked) and event.step_id == step)
        if event.at is not None and is_own and not is_known:
            for line in _event_lines(event, report, decided, has_failures=has_failures):
                yield event.at, line


def _untold_lines(report: RunReport, step: int | None) -> Iterator[tuple[datetime, str]]:
    """What a graph that was called by its own methods did."""
    for each in report.untold:
        if step in (None, each.step_id):
            how = each.outcome if each.ended_at else "no end is on record"
            who = f"step {each.step_id} {each.specialist}, attempt {each.number}"
            told = f"{who}, in a call of the graph: {how}{_after_colon(short_error(each.error))}"
            yield each.ended_at or each.started_at, told
    if step is None and report.untold and report.is_over and report.fold.why_paused != "over":
        ends = [each.ended_at or each.started_at for each in report.untold]
        last = max([*ends, report.fold.last_at or report.began])
        yield last, f"over: {report.outcome}, in a call of the graph"


def _failures(report: RunReport) -> Iterator[tuple[datetime, str]]:
    attempts = (attempt for step in report.steps for attempt in step.attempts)
    for attempt in (each for each in attempts if each.entry not in report.untold):
        each = attempt.entry
        # The end of an attempt that a kill cut off is unknown; its beginning is shown.
        at = each.ended_at or (None if attempt.running_at else each.started_at)
        if at is not None and attempt.outcome not in ("done", "waiting"):
            who = f"step {each.step_id} {each.specialist}, attempt {each.number}"
            began = "" if each.ended_at else " began;"
            before = same_error_before(attempt, report.by_id[each.step_id].attempts)
            error = before or short_error(each.error)
            yield at, f"{who}{began or ':'} {attempt.outcome_text}{_after_colon(error)}"


def _request_of_step(request: Request, step: int, report: RunReport) -> Request:
    """The part of a request that answers the questions of a step."""
    asked = (event for event in report.events if isinstance(event, _Asked))
    step_events = (event for event in asked if not isinstance(event, events.RunCorrected))
    keys = {short_key(event.key) for event in step_events if event.step_id == step}
    answers = {key: answer for key, answer in request.answers.items() if key in keys}
    return request.replace(kind="answer", answers=answers)


def _resumed_text(pause: Pause, began: datetime) -> str:
    ended = pause.ended or pause.began
    lasted = (ended - pause.began).total_seconds()
    by = f" by {one_line(pause.by)}" if pause.by else ""
    if pause.why == "killed":
        between = f"some time between {time_text(pause.began, began)} and {time_text(ended, began)}"
        return f"resumed{by}, after its process had been killed, {between}"
    waited = lasted if pause.why == "waiting" else 0.0
    if pause.answered_at is not None:
        waited = (pause.answered_at - pause.began).total_seconds()
    parts = {"it waited for a person": waited, "nobody worked on it": lasted - waited}
    told = [f"{what} for {seconds(each)}" for what, each in parts.items() if each >= LEAST_TOLD]
    pauses = ", then ".join(told)
    return f"resumed{by}{f' ({pauses})' if told else ''}"


def _fork_text(fork: Fork, began: datetime) -> str:
    how = "rolled back" if fork.is_rollback else "forked"
    if fork.state_at is None:
        return f"{how} to its beginning"
    after = "before the end of any step" if fork.step_id is None else f"after step {fork.step_id}"
    return f"{how} to its state of {time_text(fork.state_at, began)}, {after}"


def _event_lines(
    event: events.Event, report: RunReport, decided: Mapping[Any, str], *, has_failures: bool
) -> Iterator[str]:
    """What is said about an event; `decided` has who decided, by step and decision."""
    match event:
        case events.PlanCreated() | events.PlanUpdated():
            revisions = (revision for revision in report.revisions if revision.seq == event.seq)
            yield from (line for revision in revisions for line in _revision_lines(revision))
        case events.ToolCompleted():
            if event.approval or (has_failures and event.status == "failed"):
                yield _call_line(event, decided)
        case _:
            if line := _line(event):
                yield line
    if isinstance(event, events.ApprovalRequested):
        yield from _shown_plan(event, report.revisions)


def _revision_lines(revision: Revision) -> Iterator[str]:
    """What happened to the plan, and who did it."""
    by, steps = one_line(revision.by), counted(len(revision.after.steps), "step")
    if revision.is_first:
        yield f"the plan was {'' if by.startswith(HANDED_IN) else 'made by '}{by}: {steps}"
        return
    yield f"{by} revised the plan, version {revision.version}{_after_colon(revision.why)}"
    if changed := "; ".join(_changed(revision)):
        yield f"changed: {changed}"


def _changed(revision: Revision) -> Iterator[str]:
    """The lines that a revision changed; a field of a step with the number of that."""
    numbers = {"+": "", "-": ""}
    for line in lines_of(revision):
        sign, text = line[:1], line[2:]
        is_field = text.startswith(" ")
        if not is_field:
            numbers |= dict.fromkeys(numbers if sign == " " else sign, text.partition(" ")[0])
        if sign != " ":
            what = f"{numbers[sign]} {text.strip()}" if is_field else text
            yield cut(f"{sign} {one_line(what)}", _LONGEST_CHANGE)


def _call_line(call: events.ToolCompleted, decided: Mapping[Any, str]) -> str:
    """The outcome of a tool's call that a person decided about, or that failed."""
    # A job asks in its own words, so what approves its call is an answer.
    named = (decided.get((call.step_id, how)) for how in (call.approval, "answered"))
    by = one_line(next(filter(None, named), "a person"))
    decision = "changed" if call.approval == "edited" else call.approval
    how = [f"{decision} by {by}"] if call.approval else []
    how += {"rejected": [], "success": ["done"]}.get(
        call.status, [f"{call.status}{_after_colon(failure_text(call))}"]
    )
    return f"{who(call)}: {short_call_text(call.tool, call.arguments)} {', '.join(how)}"


def _shown_plan(event: events.Event, revisions: Sequence[Revision]) -> Iterator[str]:
    """The plan that a person was shown, where it is another one than that of the run now."""
    before = [revision for revision in revisions if revision.seq < (event.seq or 0)]
    if before and len(before) < len(revisions):
        shown = "; ".join(next(step_lines(step)) for step in before[-1].after.steps)
        yield f"the plan that was shown: {shown}"


def _after_colon(text: object) -> str:
    return f": {one_line(str(text))}" if text else ""


def request_lines(request: Request, report: RunReport) -> Iterator[str]:
    """What a person asked of a run, or answered."""
    by, questions = one_line(request.by) or "somebody", report.questions
    if request.kind == "stop":
        yield f"{by} asked it to stop"
    if request.kind == "edit":
        new = _after_colon(_new_in(request, report))
        yield f"{by} edited version {request.version} of the plan{new}"
    if request.kind == "message":
        yield f"{by} said: {one_line(request.text)}"
    for key, answer in request.answers.items():
        kind = "plan" if is_of_plan(key) else questions[key].kind if key in questions else ""
        text_of = _TEXTS.get(kind, _answered_text)
        yield f"{by} {text_of(one_line(key), _without_fingerprint(answer))}"


def _new_in(request: Request, report: RunReport) -> str:
    """The steps of an edited document that the plan of the run does not have."""
    kept = {step.step.description for step in report.planned}
    steps = PlanDocument.recover(request.text).plan.steps
    new = [
        f"{step.id}. {one_line(step.description)}" for step in steps if step.description not in kept
    ]
    more = [counted(len(new) - _MOST_NEW, "more step")] if len(new) > _MOST_NEW else []
    return "; ".join([*new[:_MOST_NEW], *more])


def _answered_text(key: str, answer: JsonValue) -> str:
    text = text_or_json(answer)
    return f"answered {key}: {one_line(text)}"


def _decision_text(key: str, answer: JsonValue) -> str:
    try:
        decision = read_decision(answer)
    except InputError:
        return _answered_text(key, answer)
    what = "the plan" if key.startswith(PLAN) else key
    changed = decision.arguments and json_text(decision.arguments)
    return f"{_DECIDED[decision.action]} {what}{_after_colon(decision.reason or changed)}"


def _verdict_text(key: str, answer: JsonValue) -> str:
    verdict = read_verdict(answer)
    return _answered_text(key, answer if verdict is None else verdict.words)


_TEXTS = {"plan": _decision_text, "approval": _decision_text, "unknown_outcome": _verdict_text}


def _without_fingerprint(row: JsonValue) -> JsonValue:
    """An answer without its fingerprint."""
    return cast("dict[str, JsonValue]", row)["answer"] if isinstance(row, dict) else row


def _stopped_text(event: events.RunStopped) -> str:
    came = "imported, and its beginning is told where it came from; " if event.is_imported else ""
    if event.reason == "waiting":
        return f"{came}now it waits for a person"
    by = f" by {one_line(event.by)}" if event.by else ""
    return f"{came}stopped, {event.reason}{by}{_after_colon(event.error)}"


def _line(event: events.Event) -> str:
    """What is said about an event of the run; empty if nothing is."""
    match event:
        case events.ApprovalRequested():
            why = f"{_after_colon(event.reason)}{_after_colon(event.problem)}"
            return f"a person is asked to approve the plan{why}"
        case events.InputRequested():
            call = f" {call_text(event.tool, event.arguments)}" if event.tool else ""
            asked = f"{who(event)} asked ({short_key(event.key)})"
            return f"{asked}{_after_colon(problem_in(event.text))}{call}"
        case events.RunStopped():
            return _stopped_text(event)
        case events.TaskCompleted():
            return f"over: {event.outcome}"
        case events.MemorySummary() | events.MemoryApplied():
            return context_text(event)
        case _:
            return event_line(event)
