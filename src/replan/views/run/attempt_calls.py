"""The attempts of steps: which calls of models and tools they made, and the outcome of each."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from replan.plan.model import StepStatus
from replan.runs.course.attempts import AttemptView, attempts_of
from replan.runs.course.story import StepStory, Story
from replan.runs.course.thread_views import ThreadView
from replan.runs.course.waits import waits_of
from replan.runs.course.whole_run import WholeRun
from replan.runs.log.call_counts import calls_of
from replan.runs.log.event_log import RunEvent
from replan.state.results import SpecialistResult
from replan.texts.signs import harmless
from replan.views.cells import counted, one_line, seconds
from replan.views.run.given import GIVEN, knowledge_text, lacking_lines, memory_text
from replan.views.run.history import LEAST_TOLD, call_text, history_lines, time_text
from replan.views.run.overview import attempt_line, incomplete_text, money


def step_record(story: Story, number: int) -> dict[str, Any]:
    """The status of a step, and what it waited for, as JSON."""
    step = _step_numbered(story, number)
    return {
        "step": number,
        "description": step.step.description,
        "status": step.status_text,
        "waits": [asdict(each) for each in waits_of(step, story)],
        "threads": [
            each.model_dump(mode="json", exclude={"step_id"})
            for each in story.run.threads
            if each.step_id == number
        ],
    }


def step_lines(story: Story, number: int) -> list[str]:
    """A step: its status, what it waited for, and what persons were asked and said."""
    step = _step_numbered(story, number)
    planned, took = step.step, step.seconds
    after = f" (after {', '.join(map(str, planned.awaits))})" if planned.awaits else ""
    who = one_line(", ".join(step.specialists))
    tried = counted(len(step.attempts), "attempt")
    spent = f", {tried}, took {seconds(took)}, cost {money(step.calls)}" if took is not None else ""
    waits = waits_of(step, story)
    over = [each for each in waits if each.since is None and each.seconds >= LEAST_TOLD]
    waited = [f"{seconds(each.seconds)} {each.what}" for each in over]
    waiting = [f"{w.what} since {time_text(w.since, story.began)}" for w in waits if w.since]
    return [
        f"step {number} {who}: {one_line(planned.description)}{after}",
        f"{step.status_text}{spent}",
        *([f"waited {', '.join(waited)}"] if waited else ()),
        *([f"waits {', '.join(waiting)}"] if waiting else ()),
        *history_lines(story, number),
        *_no_attempt_lines(step, story),
        *_thread_lines([each for each in story.run.threads if each.step_id == number]),
        "",
    ]


def _step_numbered(story: Story, number: int) -> StepStory:
    return next(each for each in story.steps if each.step.id == number)


def _thread_lines(threads: Iterable[ThreadView]) -> Iterator[str]:
    """The threads of a pipeline, as a tree: where each is, and its phases so far."""
    for each in threads:
        replaced = ", replaced by a retry" if each.is_replaced else ""
        error = f", failed: {one_line(each.error)}" if each.error else ""
        phases = one_line(" > ".join(each.phases))
        who = f"thread of {one_line(each.specialist)}" if not each.depth else "sub-thread"
        how = f"{one_line(each.phase)}, {counted(each.messages, 'message')}{replaced}{error}"
        yield f"{'  ' * each.depth}{who}: {how}{f' ({phases})' if phases else ''}"


def _no_attempt_lines(step: StepStory, story: Story) -> Iterator[str]:
    """Why a step has no attempt here, and its result before this run."""
    planned, origin = step.step, one_line(story.run.origin[:8])
    if step.attempts:
        return
    if planned.status is StepStatus.PENDING:
        yield "It was not attempted yet."
    if planned.feedback:
        yield one_line(planned.feedback)
    if planned.status is StepStatus.COMPLETED:
        see = f"in run {origin}: replan show {origin} --step {planned.id}" if origin else ""
        yield f"it was done before this run began{f', {see}' if see else ''}"
        yield from (f"  {line}" for line in harmless(planned.result or "").splitlines())


def attempts_record(
    run: WholeRun, attempts: Sequence[AttemptView], results: Iterable[SpecialistResult]
) -> dict[str, Any]:
    """Attempts and results as JSON, with whole texts."""
    return {
        "inputs": [
            {"type": each.type, "at": each.at and each.at.isoformat(), **each.details}
            for each in _given_events(run, attempts)
        ],
        "attempts": [_record(each, run) for each in attempts],
        "results": [each.model_dump(mode="json") for each in results],
    }


def _record(view: AttemptView, run: WholeRun) -> dict[str, Any]:
    entry = view.entry.model_dump(mode="json", exclude={"run_id"})
    calls = [
        {"type": each.type, "at": each.at and each.at.isoformat(), **whole_details(each, run)}
        for each in view.calls
    ]
    return {
        **entry,
        "outcome": view.outcome,
        "seconds": view.seconds,
        "cost": view.cost,
        "calls": calls,
    }


def attempts_lines(
    run: WholeRun, attempts: Sequence[AttemptView], results: Sequence[SpecialistResult]
) -> list[str]:
    """Attempts in lines, each with its calls, and the whole results below them."""
    lines = [line for each in _given_events(run, attempts) for line in given_lines(each, run)]
    lines += [line for each in attempts for line in attempt_lines(each, run)]
    lines += [line for each in results for line in ["", *result_lines(each, run)]]
    return lines


def given_lines(event: RunEvent, run: WholeRun) -> Iterator[str]:
    """The parts of the conversation or the knowledge that were used, and those that were not."""
    at, details = f"{time_text(event.at, run.started_at)} " if event.at else "", event.details
    who = f"step {details.get('step_id')} {one_line(str(details.get('specialist')))}"
    if event.type == "memory_applied":
        yield f"{at}{who} {memory_text(details)}"
        return
    yield f"{at}{who} {knowledge_text(details)}"
    yield from (f"  {line}" for line in lacking_lines(details))


def _given_events(run: WholeRun, attempts: Iterable[AttemptView]) -> list[RunEvent]:
    """The events about memory and knowledge, for the steps of some attempts."""
    own = {(each.entry.step_id, each.entry.specialist) for each in attempts}
    given = (event for event in run.events if event.type in GIVEN)
    return [e for e in given if (e.details.get("step_id"), e.details.get("specialist")) in own]


def attempt_lines(view: AttemptView, run: WholeRun) -> Iterator[str]:
    """How an attempt ended, and each call below it."""
    entry = view.entry
    so_far = " so far" if view.running_at else ""
    took = "" if view.seconds is None else f" ({seconds(view.seconds)}{so_far})"
    ended = attempt_line(view)
    who = f"step {entry.step_id} {one_line(entry.specialist)}"
    yield f"{time_text(entry.started_at, run.started_at)} {who}, {ended}{took}"
    yield from (f"  {line}" for line in _doubt_lines(view, run))
    no_end = "not over" if view.outcome == "running" else "cut off"
    for call in view.calls:
        yield from (f"  {line}" for line in call_lines(call, run, no_end))


def _doubt_lines(view: AttemptView, run: WholeRun) -> Iterator[str]:
    """What people said about an attempt in doubt."""
    of = view.entry.step_id, view.entry.specialist
    for event in run.events:
        details = event.details
        if (
            event.type != "answer_received"
            or details.get("kind") != "unknown_outcome"
            or event.at is None
        ):
            continue
        if (details.get("step_id"), details.get("specialist")) != of:
            continue
        # Of the attempts before the answer, those that waited only asked.
        before = [
            each.entry.number
            for each in attempts_of(run, view.entry.step_id)
            if each.entry.specialist == of[1]
            and each.entry.started_at <= event.at
            and each.entry.outcome != "waiting"
        ]
        if before[-1:] == [view.entry.number]:
            by = one_line(str(details.get("by") or "")) or "a person"
            text = one_line(str(details.get("text") or details.get("action")))
            yield f"{time_text(event.at, run.started_at)} {by} said what became of it: {text}"


def result_lines(result: SpecialistResult, run: WholeRun) -> list[str]:
    """The whole result, and the cost of all its attempts."""
    used, name = result.usage, result.specialist_name
    tried = attempts_of(run, result.step_id)
    own = [each for each in tried if each.entry.specialist == name]
    # The result itself leaves out what attempts took that asked a person, or came before it.
    all_calls = calls_of(call for each in own for call in each.calls)
    number, sum_of = max((all_calls.number, all_calls.tokens), (used.calls, used.total_tokens))
    tokens = f"{counted(number, 'model call')}, {counted(sum_of, 'token')}"
    tokens += f" in {len(own)} attempts" if len(own) > 1 else ""
    whole = f", {one_line(incomplete_text(result.cut))}" if result.cut else ""
    head = f"result of {one_line(result.specialist_name)}: {result.status.value}{whole}, {tokens}"
    error, text = one_line(result.error), harmless(result.text)
    error_lines = [error] if error and error != one_line(text) else []
    return [head, *(f"  {line}" for line in [*error_lines, *text.splitlines()])]


def call_lines(call: RunEvent, run: WholeRun, no_end: str = "not over") -> list[str]:
    """A call of a model or a tool: its input and output; or `no_end`."""
    details = whole_details(call, run)
    match call.type:
        case "tool_completed":
            approval = f", {details['approval']} by a person" if details.get("approval") else ""
            how = f"{details['status']}{approval}, {details['seconds']:.2f} s"
            return [
                one_line(f"tool {call_text(details)}: {how}"),
                *(f"  {line}" for line in harmless(str(details["result"])).splitlines()),
            ]
        case "tool_invoked":
            return [f"tool {call_text(details)}: {no_end}"]
        case "model_completed":
            return [f"{_model(details)}: {usage_text(details)}"]
        case _:
            return [f"{_model(details)}: {no_end}"]


def _model(details: Mapping[str, Any]) -> str:
    reads = ", reads knowledge" if details.get("node") == "knowledge" else ""
    return f"model {one_line(str(details['model']))}{reads}"


def usage_text(details: Mapping[str, Any]) -> str:
    """What the call of a model took, or why it failed."""
    if details["error"]:
        # A failed call of which its server may have done something is charged in full.
        cost = details.get("cost")
        charged = f", charged {cost:.4g} in full: its cost is unknown" if cost else ""
        return f"failed, {details['seconds']:.2f} s: {one_line(str(details['error']))}{charged}"
    counts = [details["input_tokens"], details["output_tokens"]]
    tokens = "tokens unknown" if None in counts else f"{counts[0]} in + {counts[1]} out tokens"
    cost = "cost unknown" if details["cost"] is None else f"cost {details['cost']:.4g}"
    return f"{tokens}, {cost}, {details['seconds']:.2f} s"


def whole_details(call: RunEvent, run: WholeRun) -> dict[str, Any]:
    """The details of a call with its whole arguments and result, where they are still kept."""
    details: dict[str, Any] = dict(call.details)
    if (arguments := run.texts.get(str(details.get("arguments_ref")))) is not None:
        details["arguments"] = json.loads(arguments)
    if (result := run.texts.get(str(details.get("result_ref")))) is not None:
        details["result"] = result
    return details
