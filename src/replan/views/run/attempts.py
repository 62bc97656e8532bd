"""The attempts of steps, as lines and as JSON: their calls, prompts, and whole results."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from replan.base.texts.signs import harmless
from replan.log.calls import calls_of
from replan.log.events.types import (
    AnswerReceived,
    Event,
    MemorySummary,
    MessageText,
    ModelCompleted,
    ModelInvoked,
)
from replan.log.kept_events import prompt_of, reply_of, with_whole_texts
from replan.log.report import RunReport
from replan.log.step_reports import AttemptReport, StepReport
from replan.plan.model import StepStatus
from replan.runs.reports import WholeReport
from replan.state.results import SpecialistResult
from replan.views.cells import counted, one_line, seconds
from replan.views.event_lines import Given, context_text, lacking_lines
from replan.views.run.branches import (
    Call,
    attempt_of,
    has_prompt,
    host_calls_of,
    thread_lines,
    tool_text,
)
from replan.views.run.history import LEAST_TOLD, history_lines, time_text
from replan.views.run.overview import attempt_line, incomplete_text, money
from replan.views.run.step_states import step_states, waits_of
from replan.views.step_texts import waits_in_words

GONE = "(not kept any more)"
NONE_KEPT = "No prompts and replies are kept of this: no model was called, or keep_prompts is off."
_WORDS = {"success": "done"}


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
    after = "".join(f" ({wait})" for wait in waits_in_words(planned))
    who, tried = one_line(", ".join(step.specialists)), counted(len(step.attempts), "attempt")
    spent = (
        f", {tried}, took {seconds(took)}, cost {money(step.calls, report.currency)}"
        if took is not None
        else ""
    )
    waits = waits_of(step, report)
    over = [wait for wait in waits if wait.since is None and wait.seconds >= LEAST_TOLD]
    waited = [f"{seconds(wait.seconds)} {wait.what}" for wait in over]
    waiting = [f"{w.what} since {time_text(w.since, report.began)}" for w in waits if w.since]
    state = f"waits {', '.join(waiting)}" if waiting else step_states(report)[number].text
    return [
        f"step {number} {who}: {one_line(planned.description)}{after}",
        f"{state}{spent}",
        *([f"waited {', '.join(waited)}"] if waited else ()),
        *history_lines(report, number),
        *_no_attempt_lines(step, report),
        *(f"{'  ' * depth}{line}" for depth, line in thread_lines(report.threads, number)),
        "",
    ]


def _no_attempt_lines(step: StepReport, report: RunReport) -> Iterator[str]:
    """Why a step has no attempt here, and its result before this run."""
    planned, origin = step.step, one_line(report.origin[:8])
    if step.attempts:
        return
    if planned.feedback:
        yield one_line(planned.feedback)
    if planned.status is StepStatus.COMPLETED:
        see = f"in run {origin}: replan show {origin} --step {planned.id}" if origin else ""
        yield f"it was done before this run began{f', {see}' if see else ''}"
        yield from _indented(planned.result or "", 2)


def attempts_record(
    run: WholeReport, attempts: Sequence[AttemptReport], results: Iterable[SpecialistResult]
) -> dict[str, Any]:
    """Attempts and results as JSON, with whole texts."""

    def record(attempt: AttemptReport) -> dict[str, Any]:
        calls = [
            with_whole_texts(call, run.texts).model_dump(mode="json") for call in attempt.calls
        ]
        more = {"seconds": attempt.seconds, "cost": attempt.cost, "calls": calls}
        return {**attempt.record, **more}

    return {
        "inputs": [event.model_dump(mode="json") for event in _given_to(attempts, run)],
        "attempts": [*map(record, attempts)],
        "results": [result.model_dump(mode="json") for result in results],
    }


def prompts_record(run: WholeReport, events: Iterable[Event]) -> dict[str, Any]:
    """The calls of models as JSON, with what they were sent and replied."""
    call_events = list(events)
    ends = {event.call_key: event for event in call_events if isinstance(event, ModelCompleted)}

    def record(call: ModelInvoked | MemorySummary) -> dict[str, Any]:
        # The only event of a summary reports its call and its end.
        end = call if isinstance(call, MemorySummary) else ends.get(call.call_key)
        reply = end and reply_of(end)
        answer = end and {**end.model_dump(mode="json"), "reply": reply and _message(reply, run)}
        prompt = [_message(part, run) for part in call.prompt]
        return {**call.model_dump(mode="json"), "prompt": prompt, "answer": answer}

    begun = (e for e in call_events if isinstance(e, ModelInvoked | MemorySummary))
    return {"calls": [record(event) for event in begun if prompt_of(event)]}


def attempts_lines(
    run: WholeReport,
    attempts: Sequence[AttemptReport],
    results: Sequence[SpecialistResult],
    *,
    has_host: bool = False,
    has_prompts: bool = False,
) -> list[str]:
    """Attempts in lines, each with its calls, and the whole results below them.

    Args:
        run: The run.
        attempts: The attempts that are shown.
        results: The results that are shown.
        has_host: Whether the calls of the host come first.
        has_prompts: Whether each call of a model has its prompt and its reply.
    """
    host = [*host_calls_of(run)] if has_host else []
    calls = [call for attempt in attempts for call in attempt_of(attempt, run).calls]
    if has_prompts and not any(map(has_prompt, [*host, *calls])):
        return [NONE_KEPT]
    lines = ["host"] if host else []
    lines += [f"  {line}" for call in host for line in call_lines(call, run, has_prompts)]
    lines += [line for event in _given_to(attempts, run) for line in given_lines(event, run)]
    lines += [line for attempt in attempts for line in attempt_lines(attempt, run, has_prompts)]
    return [*lines, *(line for result in results for line in ["", *result_lines(result, run)])]


def newest_of(attempts: Iterable[AttemptReport]) -> list[AttemptReport]:
    """The newest attempt at each specialist."""
    return [*{attempt.entry.specialist: attempt for attempt in attempts}.values()]


def given_lines(event: Given, run: WholeReport) -> Iterator[str]:
    """The parts of the conversation or the knowledge that were used, and those that were not."""
    at = f"{time_text(event.at, run.started_at)} " if event.at else ""
    yield f"{at}{context_text(event)}"
    yield from (f"  {line}" for line in lacking_lines(event))


def _given_to(attempts: Iterable[AttemptReport], run: WholeReport) -> list[Given]:
    """The events about memory and knowledge, for the steps of some attempts."""
    attempted = {(attempt.entry.step_id, attempt.entry.specialist) for attempt in attempts}
    events = (event for event in run.events if isinstance(event, Given))
    return [event for event in events if (event.step_id, event.specialist) in attempted]


def attempt_lines(
    attempt: AttemptReport,
    run: WholeReport,
    has_prompts: bool = False,  # noqa: FBT001, FBT002 - passed on
) -> Iterator[str]:
    """How an attempt ended, and each call below it."""
    entry = attempt.entry
    so_far = " so far" if attempt.running_at else ""
    took = "" if attempt.seconds is None else f" ({seconds(attempt.seconds)}{so_far})"
    who = f"step {entry.step_id} {one_line(entry.specialist)}"
    yield f"{time_text(entry.started_at, run.started_at)} {who}, {attempt_line(attempt)}{took}"
    yield from (f"  {line}" for line in _doubt_lines(attempt, run))
    for call in attempt_of(attempt, run).calls:
        yield from (f"  {line}" for line in call_lines(call, run, has_prompts))


def _doubt_lines(attempt: AttemptReport, run: WholeReport) -> Iterator[str]:
    """What people said about an attempt in doubt."""
    of = attempt.entry.step_id, attempt.entry.specialist
    answers = (event for event in run.events if isinstance(event, AnswerReceived))
    for event in (e for e in answers if e.kind == "unknown_outcome" and e.at):
        if (event.step_id, event.specialist) != of or event.at is None:
            continue
        # Of the attempts before the answer, those that waited only asked.
        before = [
            tried.entry.number
            for tried in run.attempts_of(of[0])
            if tried.entry.specialist == of[1]
            and tried.entry.started_at <= event.at
            and tried.entry.outcome != "waiting"
        ]
        if before[-1:] == [attempt.entry.number]:
            by, text = one_line(event.by) or "a person", one_line(event.text or event.action)
            yield f"{time_text(event.at, run.started_at)} {by} said what became of it: {text}"


def result_lines(result: SpecialistResult, run: WholeReport) -> list[str]:
    """The whole result, and the cost of all its attempts."""
    used, name = result.usage, result.specialist_name
    tried = [e for e in run.attempts_of(result.step_id) if e.entry.specialist == name]
    # The result itself leaves out what attempts took that asked a person, or came before it.
    calls = calls_of(call for attempt in tried for call in attempt.calls)
    number, tokens = max((calls.calls, calls.total_tokens), (used.calls, used.total_tokens))
    took = f"{counted(number, 'model call')}, {counted(tokens, 'token')}"
    took += f" in {len(tried)} attempts" if len(tried) > 1 else ""
    cut = f", {one_line(incomplete_text(result.cut))}" if result.cut else ""
    error, text = one_line(result.error), harmless(result.text)
    return [
        f"result of {one_line(name)}: {result_word(result)}{cut}, {took}",
        *([f"  {error}"] if error and error != one_line(text) else ()),
        *_indented(text, 2),
    ]


def result_word(result: SpecialistResult) -> str:
    """How a specialist ended its step, in a word."""
    return _WORDS.get(result.status.value, result.status.value)


def call_lines(call: Call, run: WholeReport, has_prompts: bool) -> Iterator[str]:  # noqa: FBT001 - passed on
    """A call of a model or a tool: how it ended, what it took, and its output."""
    kind, name = ("tool", tool_text(call, run)) if call.is_tool else ("model", call.name)
    error = f": {one_line(call.error)}" if call.error and not call.is_tool else ""
    took = call.took(run.currency)
    yield one_line(f"{kind} {name}: {call.text}{error}{took and f', {took}'}")
    yield from _indented(getattr(with_whole_texts(call.event, run.texts), "result", ""), 2)
    if has_prompts and has_prompt(call):
        for part in prompt_of(call.begun):
            yield from _message_lines(_message(part, run))
        reply = reply_of(call.event)
        if call.ended is not None:
            text = _message(reply, run)["text"] if reply else "(none)"
            yield from _message_lines({"role": "reply", "text": text})


def _message_lines(message: dict[str, str]) -> Iterator[str]:
    yield f"  {one_line(message['role'])}:"
    yield from _indented(message["text"], 4)


def _message(part: MessageText, run: WholeReport) -> dict[str, str]:
    return {"role": part.role, "text": run.texts.get(part.ref, GONE)}


def _indented(text: str, by: int) -> Iterator[str]:
    return (f"{' ' * by}{line}".rstrip() for line in harmless(text).splitlines())
