"""What a person decides on: what was said before a question, what it rests on, what failed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Literal

from pydantic import JsonValue

from replan.base.values import fields_in, text_or_json
from replan.log.events.types import (
    AnswerReceived,
    ApprovalRequested,
    InputRequested,
    ModelCompleted,
    SpecialistCompleted,
    ToolCompleted,
    ToolEvent,
)
from replan.log.report import RunReport
from replan.log.step_reports import AttemptReport, StepReport
from replan.plan.markdown.document import PlanDocument
from replan.plan.model import StepStatus
from replan.runs.reports import WholeReport
from replan.state.person.answers import is_in_doubt, read_verdict
from replan.state.questions import PLAN, Question, short_key
from replan.views.cells import counted, cut, day_and_time, one_line
from replan.views.event_lines import short_call_text
from replan.views.run.error_lines import error_of, repair_of, short_error
from replan.views.run.history import request_lines

_LONGEST_SAID, _LONGEST, _LONGEST_VALUE, _MOST = 1_200, 240, 300, 6
_CUT_OFF = ("unknown_outcome", "cancelled")


@dataclass(frozen=True, kw_only=True)
class Change:
    """An argument of a call, and what it was when a person was asked about such a call before."""

    name: str
    kind: Literal["same", "new", "changed", "removed", "default"]  # the last: the tool's own value
    value: JsonValue = None
    before: JsonValue = None


@dataclass(frozen=True, kw_only=True)
class Ground:
    """Something that the question rests on: the call of a tool, the result of another step."""

    what: str
    text: str
    step: int
    is_bad: bool = False


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What a person decides a question on."""

    asked_at: datetime | None = None  # when it was asked
    task: str = ""  # the step that asks, in the words of the plan
    does: str = ""  # what the tool does that is to be called, in its own words
    unsafe: tuple[str, ...] = ()  # the steps of a plan to approve that must not happen twice
    again: str = ""  # why work in doubt would fail in the same way again, and what to change
    equal: str = ""  # an equal call that another run made
    look: str = ""  # what to look for, where nobody knows whether it happened
    said: str = ""  # what the model said before it asked
    arguments: tuple[Change, ...] = ()  # those of the call
    before: str = ""  # what was asked before, and the answer; empty where nothing was
    grounds: tuple[Ground, ...] = ()  # the newest last
    answered: str = ""  # an answer that is on record, and that no process has taken yet
    left_out: int = 0  # grounds before these
    failed: tuple[Ground, ...] = ()  # the steps that failed so far


def replies_before(report: RunReport) -> Iterator[ModelCompleted]:
    """The replies that the open questions of a run came with: their texts are evidence."""
    for ask in report.pending_questions:
        if (reply := _reply_before(ask, report)) is not None:
            yield reply


def evidence_of(
    ask: Question, report: RunReport, texts: Mapping[str, str] = MappingProxyType({})
) -> Evidence:
    """Select what a question is decided on; `texts` are long texts of events by reference."""
    if isinstance(report, WholeReport):
        texts = {**report.texts, **texts}
    asked_before, step = _asked_before(ask, report), report.by_id.get(ask.step_id)
    grounds = [
        *_results_before(step, report),
        *_calls_before(ask, step),
        *_calls_cut_off(ask, step, report),
    ]
    return Evidence(
        asked_at=_asked_at(ask, report),
        task=one_line(step.step.description) if step else "",
        does=one_line(str(ask.fields.get("description", ""))),
        unsafe=_unsafe_steps(ask, report),
        again=_why_again(ask, step),
        equal=_equal_text(ask, report),
        look=_what_to_look_for(ask, step),
        said=_reply_text(_reply_before(ask, report), texts),
        arguments=(*_changes(ask, asked_before, report), *_defaults(ask)),
        before="" if asked_before is None else _before_text(ask, asked_before, report),
        grounds=tuple(grounds[-_MOST:]),
        answered=_answered(ask, report),
        left_out=max(0, len(grounds) - _MOST),
        failed=tuple(
            _ground_of(each, short_error(error_of(each)), is_bad=True)
            for each in report.of_status(StepStatus.FAILED)
        ),
    )


def _ground_of(step: StepReport, text: str, *, is_bad: bool) -> Ground:
    number = step.step.id
    what = f"step {number}, {one_line(step.step.description)}"
    return Ground(what=what, text=text, step=number, is_bad=is_bad)


def evidence_lines(evidence: Evidence) -> list[str]:
    """All that a question is decided on, in lines; of its arguments, those that changed."""
    changed = (change for change in evidence.arguments if change.kind != "same")
    arguments = [f"  {argument_text(change)}" for change in changed]
    return [*arguments, *ground_lines(evidence), *failed_lines(evidence)]


def ground_lines(evidence: Evidence) -> list[str]:
    """What a question rests on, in lines."""
    said, left = cut(one_line(evidence.said), _LONGEST), evidence.left_out
    labelled = {
        "must not happen twice": "; ".join(evidence.unsafe),
        "asked before": evidence.before,
        "said before": said,
    }
    return [
        *(f"{label}: {text}" for label, text in labelled.items() if text),
        *(["rests on:"] if evidence.grounds else ()),
        *([f"  {counted(left, 'earlier one')}"] if left else ()),
        *(f"  {ground.what}: {ground.text}" for ground in evidence.grounds),
        *([evidence.equal] if evidence.equal else ()),
        *([f"look first whether it happened: {evidence.look}"] if evidence.look else ()),
        *([evidence.again] if evidence.again else ()),
    ]


def failed_lines(evidence: Evidence) -> list[str]:
    """The steps that failed so far, in lines."""
    failed = [f"  {ground.what}: {ground.text}" for ground in evidence.failed]
    return ["failed so far:", *failed] if failed else []


def argument_text(change: Change) -> str:
    """An argument in a line, and what became of it since such a call was asked about before."""
    before = f"before: {_shown(change.before)}"
    if change.kind == "removed":
        return f"{one_line(change.name)}: left out ({before})"
    notes = {"new": " (new)", "changed": f" ({before})", "default": " (the tool's default)"}
    return f"{one_line(change.name)}: {_shown(change.value)}{notes.get(change.kind, '')}"


def _shown(value: JsonValue) -> str:
    """A value in one line; of a long one, the beginning and what shows the rest."""
    text = one_line(text_or_json(value))
    if len(text) <= _LONGEST_VALUE:
        return text
    return f"{text[:_LONGEST_VALUE]}… ({len(text):,} characters; `replan show RUN --json` has all)"


def arguments_of_call(ask: Question) -> Mapping[str, JsonValue]:
    """The arguments of the call that is asked about; none where it is no call."""
    details = ask.fields
    return fields_in(details.get("arguments")) if "tool" in details else {}


def changeable_arguments(ask: Question) -> Mapping[str, JsonValue]:
    """What a person can change of the call that is asked about: the tool's defaults, too."""
    return {**arguments_of_call(ask), **fields_in(ask.fields.get("defaults"))}


def subject_text(ask: Question) -> str:
    """What a decision is about, in a line: the call, or the task; empty for a question."""
    details = ask.fields
    arguments, tool = arguments_of_call(ask), str(details.get("tool", ""))
    if ask.kind == "question" or not (tool or ask.kind == "unknown_outcome"):
        return ""
    is_step = not tool or tool == f"step {ask.step_id}"
    task = details.get("task") or arguments.get("task") or ""
    return one_line(str(task)) if is_step else short_call_text(tool, arguments)


def _why_again(ask: Question, step: StepReport | None) -> str:
    """Why a step that ran out of time would do so again, and what to change."""
    is_of_step = is_in_doubt(ask) and "tool" not in ask.fields
    repair = repair_of(step) if step and is_of_step else None
    return f"again, it would end as before: {repair.why}; {repair.fix}" if repair else ""


def _unsafe_steps(ask: Question, report: RunReport) -> tuple[str, ...]:
    steps = PlanDocument.recover(ask.text).plan.open_steps() if ask.kind == PLAN else ()
    unsafe = (step for step in steps if report.is_unsafe(step))
    return tuple(f"step {step.id}, {one_line(step.description)}" for step in unsafe)


def _equal_text(ask: Question, report: RunReport) -> str:
    """Which run made an equal call, when, and how that ended."""
    found = report.equal_calls.get(ask.key)
    if found is None:
        return ""
    at = f" at {day_and_time(found.at)}" if found.at else ""
    look = "look first whether it happened"
    ends = {
        "success": "it is done",
        "cancelled": f"it was cut off, so {look}",
        "": f"its end is not on record, so {look}",
    }
    ended = ends.get(found.status, f"it {found.status}")
    return f"run {found.run_id[:8]} made an equal call{at}: {ended}"


def _what_to_look_for(ask: Question, step: StepReport | None) -> str:
    """The call or the step that may have taken effect: when it began, and its key if it has one."""
    details = ask.fields
    if not is_in_doubt(ask):
        return ""
    tool, at = str(details.get("tool", "")), (ask.specialist, details.get("attempt"))
    who = f"step {ask.step_id}{ask.specialist and f' at @{ask.specialist}'}"
    what = short_call_text(tool, arguments_of_call(ask)) if tool else who
    entries = (attempt.entry for attempt in (step.attempts if step else ()))
    for entry in (entry for entry in entries if (entry.specialist, entry.number) == at):
        key = entry.idempotency_key and not tool and f", idempotency key {entry.idempotency_key}"
        return one_line(f"{what}, begun {day_and_time(entry.started_at)}{key or ''}")
    return one_line(what)


def _reply_before(ask: Question, report: RunReport) -> ModelCompleted | None:
    own = (
        event
        for event in reversed(report.events)
        if isinstance(event, ModelCompleted)
        and (event.step_id, event.specialist) == (ask.step_id, ask.specialist)
    )
    return next((event for event in own if event.reply is not None), None) if ask.step_id else None


def _asked_at(ask: Question, report: RunReport) -> datetime | None:
    if ask.kind != PLAN:
        return report.fold.asked_at.get(ask.key)
    asked = (event.at for event in reversed(report.events) if isinstance(event, ApprovalRequested))
    return next(asked, None)


def _answered(ask: Question, report: RunReport) -> str:
    request = report.answer_to(ask)
    if request is None:
        return ""
    own_request = request.replace(answers={ask.key: request.answers[ask.key]})
    return "; ".join(request_lines(own_request, report))


def _reply_text(event: ModelCompleted | None, texts: Mapping[str, str]) -> str:
    """The words of a reply, without the calls that it makes."""
    if event is None or event.reply is None:
        return ""
    text = f"\n{event.reply.text or texts.get(event.reply.ref, '')}"
    return text.partition("\n[calls ")[0].strip()[:_LONGEST_SAID]


def _asked_before(ask: Question, report: RunReport) -> InputRequested | None:
    """The newest such question before: of the step, else of any that wants to call the tool."""
    tool = str(ask.fields.get("tool", "")) if ask.is_decision else ""
    before = list[InputRequested]()
    for event in report.events:
        if isinstance(event, InputRequested) and event.key == ask.key:
            break
        if isinstance(event, InputRequested) and (event.kind, event.tool) == (ask.kind, tool):
            before.insert(0, event)
    at = ask.step_id, ask.specialist
    events_of_step = (event for event in before if (event.step_id, event.specialist) == at)
    return next(events_of_step, before[0] if before and tool else None)


def _before_text(ask: Question, request: InputRequested, report: RunReport) -> str:
    answers = [
        event
        for event in report.events
        if isinstance(event, AnswerReceived) and short_key(event.key) == short_key(request.key)
    ]
    what = (
        short_call_text(request.tool, request.arguments) if request.tool else one_line(request.text)
    )
    what = what if request.step_id == ask.step_id else f"at step {request.step_id}, {what}"
    if not answers:
        return cut(what, _LONGEST)
    last = answers[-1]
    by, text = (f" by {last.by}" if last.by else ""), (f": {last.text}" if last.text else "")
    refused = ", which the tool does not take" if "refused_edits" in ask.fields else ""
    return f"{cut(what, _LONGEST)}, {cut(one_line(f'{last.action}{by}{text}'), _LONGEST)}{refused}"


def _changes(
    ask: Question, asked_before: InputRequested | None, report: RunReport
) -> Iterator[Change]:
    now = arguments_of_call(ask)
    before: Mapping[str, JsonValue] = now
    if asked_before is not None:
        # An event has long arguments shortened, the state has them whole.
        stated = report.questions.get(asked_before.key)
        before = (stated and arguments_of_call(stated)) or asked_before.arguments
    for name, value in now.items():
        if name not in before:
            yield Change(name=name, kind="new", value=value)
        elif before[name] == value:
            yield Change(name=name, kind="same", value=value)
        else:
            yield Change(name=name, kind="changed", value=value, before=before[name])
    for name in before.keys() - now.keys():
        yield Change(name=name, kind="removed", before=before[name])


def _defaults(ask: Question) -> Iterator[Change]:
    """What the tool takes by itself, where its model gave nothing."""
    for name, value in fields_in(ask.fields.get("defaults")).items():
        yield Change(name=name, kind="default", value=value)


def _results_before(step: StepReport | None, report: RunReport) -> Iterator[Ground]:
    for number in step.step.awaits if step else ():
        if (other := report.by_id.get(number)) is not None and not other.status.is_open:
            is_bad = other.status is StepStatus.FAILED
            text = f"failed: {error_of(other)}" if is_bad else _result(report, number)
            failed = "" if is_bad else _failed_calls(other)
            text = f"{cut(one_line(text), _LONGEST) or other.status_text}{failed}"
            yield _ground_of(other, text, is_bad=is_bad or bool(failed))


def _failed_calls(step: StepReport) -> str:
    """Which tools failed a step that is done in spite of that."""
    failed = [call for call in step.tools if getattr(call, "status", "") == "failed"]
    tools = ", ".join(dict.fromkeys(one_line(call.tool) for call in failed))
    return f" (in spite of {counted(len(failed), 'failed call')} of {tools})" if failed else ""


def _result(report: RunReport, step: int) -> str:
    ends = (e for e in reversed(report.events) if isinstance(e, SpecialistCompleted))
    live = next((event.text for event in ends if event.step_id == step), "")
    return live or report.by_id[step].step.result


def _calls_before(ask: Question, step: StepReport | None) -> Iterator[Ground]:
    calls = (call for call in (step.tools if step else ()) if isinstance(call, ToolCompleted))
    for call in calls:
        # What a person rejected stands where it was asked before.
        if call.specialist == ask.specialist and call.status not in ("rejected", "cancelled"):
            is_bad = call.status != "success"
            text = f"{f'{call.status}: ' if is_bad else ''}{call.result.removeprefix('Error: ')}"
            yield _ground_of_call(call, cut(one_line(text), _LONGEST), is_bad=is_bad)


def _ground_of_call(call: ToolEvent, text: str, *, is_bad: bool) -> Ground:
    what = short_call_text(call.tool, call.arguments)
    return Ground(what=what, text=text, step=call.step_id or 0, is_bad=is_bad)


def _calls_cut_off(ask: Question, step: StepReport | None, report: RunReport) -> Iterator[Ground]:
    """The calls of the step that may have taken effect, but for the one that is asked about."""
    for attempt in step.attempts if step else ():
        calls = attempt.calls if attempt.entry.specialist == ask.specialist else ()
        for call in (call for call in calls if isinstance(call, ToolEvent)):
            doubt = _doubt_about(call, report)
            if _is_cut_off(call, attempt, doubt) and not _is_about(ask, call):
                verdict = "" if doubt is None else _verdict_in(doubt, report)
                text = f"cut off: nobody knows whether it took effect{verdict}"
                yield _ground_of_call(call, text, is_bad=True)


def _is_cut_off(call: ToolEvent, attempt: AttemptReport, doubt: Question | None) -> bool:
    if isinstance(call, ToolCompleted):
        return call.status == "cancelled"
    # A call without an end may also be of a tool that asks, and is then called again.
    return doubt is not None or attempt.outcome in _CUT_OFF


def _is_about(ask: Question, call: ToolEvent) -> bool:
    """Whether a question is what became of a call."""
    details = ask.fields
    asked = ask.kind, ask.step_id, details.get("tool"), details.get("attempt")
    return asked == ("unknown_outcome", call.step_id, call.tool, call.attempt)


def _doubt_about(call: ToolEvent, report: RunReport) -> Question | None:
    return next(
        (question for question in report.questions.values() if _is_about(question, call)), None
    )


def _verdict_in(doubt: Question, report: RunReport) -> str:
    """What a person said of a call that was cut off; empty if nobody did."""
    verdict = None if doubt.answer is None else read_verdict(doubt.answer)
    if verdict is None:
        return ""
    answers = (event for event in report.events if isinstance(event, AnswerReceived))
    by = next((e.by for e in answers if short_key(e.key) == short_key(doubt.key)), "")
    return cut(one_line(f"; {by or 'a person'} said: {verdict.words}"), _LONGEST)
