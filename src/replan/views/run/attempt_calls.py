"""The attempts of steps: which calls of models and tools they made, and the outcome of each."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from replan.base.texts.signs import harmless
from replan.events.types import (
    AnswerReceived,
    MemoryApplied,
    MemorySummary,
    ModelCompleted,
    ToolCompleted,
    ToolInvoked,
)
from replan.log.calls import calls_of
from replan.log.fold import CallEvent
from replan.log.report import RunReport
from replan.log.step_reports import AttemptReport, StepReport
from replan.plan.model import StepStatus
from replan.runs.reports import ThreadView, WholeReport
from replan.state.results import SpecialistResult
from replan.views.call_lines import call_text
from replan.views.cells import amount, counted, one_line, seconds
from replan.views.event_lines import Given, knowledge_text, lacking_lines, memory_text
from replan.views.run.history import LEAST_TOLD, history_lines, time_text
from replan.views.run.overview import attempt_line, incomplete_text, money
from replan.views.run.waits import waits_of


def step_record(report: WholeReport, number: int) -> dict[str, Any]:
    """The status of a step, and what it waited for, as JSON."""
    step = report.by_id[number]
    return {
        "step": number,
        "description": step.step.description,
        "status": step.status_text,
        "waits": [asdict(wait) for wait in waits_of(step, report)],
        "threads": [
            thread.model_dump(mode="json", exclude={"step_id"})
            for thread in report.threads
            if thread.step_id == number
        ],
    }


def step_lines(report: WholeReport, number: int) -> list[str]:
    """A step: its status, what it waited for, and what persons were asked and said."""
    step = report.by_id[number]
    planned, took = step.step, step.seconds
    after = f" (after {', '.join(map(str, planned.awaits))})" if planned.awaits else ""
    who = one_line(", ".join(step.specialists))
    tried = counted(len(step.attempts), "attempt")
    spent = (
        f", {tried}, took {seconds(took)}, cost {money(step.calls, report.currency)}"
        if took is not None
        else ""
    )
    waits = waits_of(step, report)
    over = [wait for wait in waits if wait.since is None and wait.seconds >= LEAST_TOLD]
    waited = [f"{seconds(wait.seconds)} {wait.what}" for wait in over]
    waiting = [f"{w.what} since {time_text(w.since, report.began)}" for w in waits if w.since]
    return [
        f"step {number} {who}: {one_line(planned.description)}{after}",
        f"{step.standing}{spent}",
        *([f"waited {', '.join(waited)}"] if waited else ()),
        *([f"waits {', '.join(waiting)}"] if waiting else ()),
        *history_lines(report, number),
        *_no_attempt_lines(step, report),
        *_thread_lines([thread for thread in report.threads if thread.step_id == number]),
        "",
    ]


def _thread_lines(threads: Iterable[ThreadView]) -> Iterator[str]:
    """The threads of a pipeline, as a tree: where each is, and its phases so far."""
    for thread in threads:
        replaced = ", replaced by a retry" if thread.is_replaced else ""
        error = f", failed: {one_line(thread.error)}" if thread.error else ""
        phases = one_line(" > ".join(thread.phases))
        who = f"thread of {one_line(thread.specialist)}" if not thread.depth else "sub-thread"
        how = f"{one_line(thread.phase)}, {counted(thread.messages, 'message')}{replaced}{error}"
        yield f"{'  ' * thread.depth}{who}: {how}{f' ({phases})' if phases else ''}"


def _no_attempt_lines(step: StepReport, report: RunReport) -> Iterator[str]:
    """Why a step has no attempt here, and its result before this run."""
    planned, origin = step.step, one_line(report.origin[:8])
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
    run: WholeReport, attempts: Sequence[AttemptReport], results: Iterable[SpecialistResult]
) -> dict[str, Any]:
    """Attempts and results as JSON, with whole texts."""
    return {
        "inputs": [each.model_dump(mode="json") for each in _given_events(run, attempts)],
        "attempts": [_record(attempt, run) for attempt in attempts],
        "results": [result.model_dump(mode="json") for result in results],
    }


def _record(view: AttemptReport, run: WholeReport) -> dict[str, Any]:
    calls = [whole_call(call, run).model_dump(mode="json") for call in view.calls]
    return {**view.record, "seconds": view.seconds, "cost": view.cost, "calls": calls}


def attempts_lines(
    run: WholeReport, attempts: Sequence[AttemptReport], results: Sequence[SpecialistResult]
) -> list[str]:
    """Attempts in lines, each with its calls, and the whole results below them."""
    lines = [line for each in _given_events(run, attempts) for line in given_lines(each, run)]
    lines += [line for attempt in attempts for line in attempt_lines(attempt, run)]
    lines += [line for result in results for line in ["", *result_lines(result, run)]]
    return lines


def given_lines(event: Given, run: WholeReport) -> Iterator[str]:
    """The parts of the conversation or the knowledge that were used, and those that were not."""
    at = f"{time_text(event.at, run.started_at)} " if event.at else ""
    who = f"step {event.step_id} {one_line(event.specialist)}"
    if isinstance(event, MemoryApplied):
        yield f"{at}{who} {memory_text(event)}"
        return
    yield f"{at}{who} {knowledge_text(event)}"
    yield from (f"  {line}" for line in lacking_lines(event))


def _given_events(run: WholeReport, attempts: Iterable[AttemptReport]) -> list[Given]:
    """The events about memory and knowledge, for the steps of some attempts."""
    attempted = {(attempt.entry.step_id, attempt.entry.specialist) for attempt in attempts}
    given = (event for event in run.events if isinstance(event, Given))
    return [event for event in given if (event.step_id, event.specialist) in attempted]


def attempt_lines(view: AttemptReport, run: WholeReport) -> Iterator[str]:
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


def _doubt_lines(view: AttemptReport, run: WholeReport) -> Iterator[str]:
    """What people said about an attempt in doubt."""
    of = view.entry.step_id, view.entry.specialist
    for event in run.events:
        if not isinstance(event, AnswerReceived) or event.kind != "unknown_outcome":
            continue
        if event.at is None or (event.step_id, event.specialist) != of:
            continue
        # Of the attempts before the answer, those that waited only asked.
        before = [
            attempt.entry.number
            for attempt in run.attempts_of(view.entry.step_id)
            if attempt.entry.specialist == of[1]
            and attempt.entry.started_at <= event.at
            and attempt.entry.outcome != "waiting"
        ]
        if before[-1:] == [view.entry.number]:
            by, text = one_line(event.by) or "a person", one_line(event.text or event.action)
            yield f"{time_text(event.at, run.started_at)} {by} said what became of it: {text}"


def result_lines(result: SpecialistResult, run: WholeReport) -> list[str]:
    """The whole result, and the cost of all its attempts."""
    used, name = result.usage, result.specialist_name
    tried = run.attempts_of(result.step_id)
    attempts_of_specialist = [attempt for attempt in tried if attempt.entry.specialist == name]
    # The result itself leaves out what attempts took that asked a person, or came before it.
    all_calls = calls_of(call for attempt in attempts_of_specialist for call in attempt.calls)
    number, sum_of = max((all_calls.calls, all_calls.total_tokens), (used.calls, used.total_tokens))
    tokens = f"{counted(number, 'model call')}, {counted(sum_of, 'token')}"
    tokens += (
        f" in {len(attempts_of_specialist)} attempts" if len(attempts_of_specialist) > 1 else ""
    )
    whole = f", {one_line(incomplete_text(result.cut))}" if result.cut else ""
    head = f"result of {one_line(result.specialist_name)}: {result.status.value}{whole}, {tokens}"
    error, text = one_line(result.error), harmless(result.text)
    error_lines = [error] if error and error != one_line(text) else []
    return [head, *(f"  {line}" for line in [*error_lines, *text.splitlines()])]


def call_lines(call: CallEvent, run: WholeReport, no_end: str = "not over") -> list[str]:
    """A call of a model or a tool: its input and output; or `no_end`."""
    call = whole_call(call, run)
    match call:
        case ToolCompleted():
            approval = f", {call.approval} by a person" if call.approval else ""
            how = f"{call.status}{approval}, {call.seconds:.2f} s"
            return [
                one_line(f"tool {call_text(call.tool, call.arguments)}: {how}"),
                *(f"  {line}" for line in harmless(call.result).splitlines()),
            ]
        case ToolInvoked():
            return [f"tool {call_text(call.tool, call.arguments)}: {no_end}"]
        case _:
            reads = ", reads knowledge" if call.node == "knowledge" else ""
            is_over = isinstance(call, ModelCompleted)
            how = call_usage_text(call, run.currency) if is_over else no_end
            return [f"model {one_line(call.model)}{reads}: {how}"]


def call_usage_text(call: ModelCompleted | MemorySummary, currency: str) -> str:
    """What the call of a model took, or why it failed."""
    if call.error:
        # A failed call of which its server may have done something is charged in full.
        charged = amount(call.cost or 0, currency)
        cost = f", charged {charged} in full: its cost is unknown" if call.cost else ""
        return f"failed, {call.seconds:.2f} s: {one_line(call.error)}{cost}"
    counts = [call.input_tokens, call.output_tokens]
    tokens = "tokens unknown" if None in counts else f"{counts[0]} in + {counts[1]} out tokens"
    cost = "cost unknown" if call.cost is None else f"cost {amount(call.cost, currency)}"
    return f"{tokens}, {cost}, {call.seconds:.2f} s"


def whole_call(call: CallEvent, run: WholeReport) -> CallEvent:
    """Return a call with its whole arguments and result, where they are still kept."""
    texts = {n: run.texts[ref] for n, ref in call.refs.items() if ref in run.texts}
    if "arguments" in texts:
        return call.replace(**{**texts, "arguments": json.loads(texts["arguments"])})
    return call.replace(**texts) if texts else call
