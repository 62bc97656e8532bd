"""The first view of a run: how it went, step by step, who decided what, and its outcome."""

import re
from collections.abc import Iterable, Iterator

from replan.base.errors import LimitReachedError
from replan.log.calls import Calls, calls_of
from replan.log.events.types import (
    ToolCompleted,
    ToolInvoked,
)
from replan.log.fold import Anomalies, HostCall
from replan.log.report import RunReport
from replan.log.step_reports import CUT_OFF, EARLY, WAITING, WORDS, AttemptReport, StepReport
from replan.plan.model import StepStatus
from replan.state.outcomes import cut_in_words
from replan.views.cells import (
    amount,
    columns,
    counted,
    day_and_time,
    folded,
    one_line,
    seconds,
)
from replan.views.event_lines import steering_text
from replan.views.run.history import LEAST_TOLD, history_lines, time_text, why_text
from replan.views.step_texts import waits_in_words

MARKS = {
    StepStatus.PENDING: "[ ]",
    StepStatus.EXECUTING: "[>]",
    StepStatus.COMPLETED: "[x]",
    StepStatus.FAILED: "[!]",
    StepStatus.SKIPPED: "[-]",
}
_NARROW, _WIDEST_NAME = 72, 18
# Other limits end what makes no calls in the middle of its work.
_NO_ROOM = re.compile(
    rf"{LimitReachedError.__name__}: The limit (max_cost|max_tokens|max_model_calls)="
)
_KILLED = "its process ended while it was at work, so nobody knows what it did"
_LOUD = ("failed", "unknown_outcome", "cancelled", "running")


def overview(report: RunReport, width: int) -> list[str]:
    """The lines of a run but for its answer; the rows of its steps are cut to the width."""
    plan = {_plan_title(report): _step_lines(report, width - 2)}
    parts = (plan | sections(report)).items()
    lines = [line for title, content in parts for line in _section(title, content)]
    return _folded([*head_lines(report), *lines], width)


def sections(report: RunReport) -> dict[str, list[str]]:
    """What is told of a run beside its head, its steps and its answer: lines by their heading."""
    return {
        "waits for": _waiting(report),
        "history": history_lines(report),
        "host": _host_lines(report),
        "warnings": [one_line(warning) for warning in report.warnings],
        "files": [one_line(f"{made.path} {made.title}") for made in report.artifacts],
    }


def _section(title: str, content: list[str]) -> list[str]:
    return ["", f"{title}:", *(f"  {line}" for line in content)] if content else []


def _folded(lines: list[str], width: int) -> list[str]:
    return [part for line in lines for part in (folded(line, width) if line else [""])]


def money(calls: Calls, currency: str = "") -> str:
    """The cost of calls in a few words: `-` if there were none, `unknown` without a price.

    It is what was charged: `at most` that, where some calls were charged in full, and `at least`
    that, where some have no price or no end; `about`, where both is so.
    """
    if not calls.calls and not calls.unfinished_calls:
        return "-"
    cost = calls.known_cost + calls.unfinished_cost
    is_more = bool(calls.unpriced_calls or (calls.unfinished_calls and not calls.unfinished_cost))
    if is_more and not cost:
        return "unknown"
    is_less = bool(calls.uncounted_cost or calls.unfinished_cost)
    signs = {(True, True): "about ", (True, False): "at least ", (False, True): "at most "}
    return f"{signs.get((is_more, is_less), '')}{amount(cost, currency)}"


def tokens(calls: Calls) -> str:
    """The tokens that calls were charged: `at most` this many if some were not counted."""
    most = "at most " if calls.uncounted_tokens else ""
    return f"{most}{calls.total_tokens + calls.uncounted_tokens:,}"


def usage_text(calls: Calls, currency: str = "", *, is_running: bool = False) -> str:
    """What calls took, in words."""
    ended = "not over yet" if is_running else "that never ended"
    cost = f"cost {money(calls, currency)}"
    if not calls.calls:
        most = f", {tokens(calls)} tokens" if calls.uncounted_tokens else ""
        open_ones = f"{counted(calls.unfinished_calls, 'model call')} {ended}{most}, {cost}"
        return open_ones if calls.unfinished_calls else "no model calls"
    known_cost = round(calls.known_cost - calls.uncounted_cost, 12)
    unknown = {
        f"{counted(calls.unfinished_calls, 'call')} {ended}": calls.unfinished_cost,
        f"{counted(calls.uncounted_calls, 'call')} with unknown tokens": calls.uncounted_cost,
    }
    parts = [f"at most {amount(cost)} for {which}" for which, cost in unknown.items() if cost]
    parts = [f"{amount(known_cost)} known", *parts] if parts else []
    if calls.unpriced_calls:
        parts.append(f"{counted(calls.unpriced_calls, 'call')} without a price")
    number = counted(calls.calls, "model call")
    more = f" and {calls.unfinished_calls} {ended}" if calls.unfinished_calls else ""
    breakdown = f" ({', '.join(parts)})" if parts else ""
    return f"{number}{more}, {tokens(calls)} tokens, {cost}{breakdown}"


def used_text(report: RunReport) -> str:
    """What the calls of a run took, in words."""
    return usage_text(report.calls, report.currency, is_running=report.outcome == "running")


def head_lines(report: RunReport) -> list[str]:
    """How a run went: its outcome and the reason, the request, its time and cost, its labels."""
    why, goal = why_text(report), goal_text(report)
    return [
        f"run {one_line(report.run_id)}",
        f"{one_line(report.outcome)}{_counts(report)}",
        *([f"why: {why}"] if why else ()),
        *([f"goal: {goal}"] if goal else ()),
        *map(steering_text, report.steers),
        f"began {day_and_time(report.began)}, {duration_text(report)}",
        f"used {used_text(report)}",
        *(f"label: {one_line(f'{name}={value}')}" for name, value in report.labels.items()),
    ]


def duration_text(report: RunReport) -> str:
    """How long a run took, and how much of it was not work, or may have been none."""
    parts = {
        "{} at rest until a person answered": report.waited,
        "{} with nobody at work": report.idle,
        "killed, and not resumed for up to {}": report.unknown,
    }
    pauses = [what.format(seconds(value)) for what, value in parts.items() if value >= LEAST_TOLD]
    least, of_it = "at least " if report.is_killed else "", ", ".join(pauses)
    return f"took {least}{seconds(report.seconds)}{f' ({of_it})' if pauses else ''}"


def goal_text(report: RunReport) -> str:
    """The request of the run in one line."""
    return one_line(report.fold.request or report.title)


def remark_texts(remarks: Anomalies) -> list[str]:
    """The failures in spite of which a run continued, in words."""
    texts = {
        f"{counted(remarks.failed, 'tool call')} failed": remarks.failed,
        f"{counted(remarks.refused, 'tool call')} refused by a person": remarks.refused,
        f"{remarks.unusable} {'reply' if remarks.unusable == 1 else 'replies'} not usable": (
            remarks.unusable
        ),
    }
    return [each for each, number in texts.items() if number]


def remarks_of(report: RunReport) -> list[str]:
    """What a run continued in spite of, and what it did not do of what people asked, in words."""
    refused = [event.kind for event in report.fold.steered.values() if event.status == "refused"]
    asked = [f"{counted(refused.count(kind), kind)} refused" for kind in dict.fromkeys(refused)]
    return [*remark_texts(report.anomalies), *asked]


def _counts(report: RunReport) -> str:
    counts = step_counts(report)
    return f": {', '.join([*counts, *remarks_of(report)])}" if counts else ""


_TOLD = (StepStatus.EXECUTING, StepStatus.FAILED, StepStatus.SKIPPED)


def step_counts(report: RunReport) -> list[str]:
    """How many steps are done, failed and so on, in words; nothing where there are none."""
    if not report.steps:
        return []
    if report.is_planning:
        return [f"{counted(len(report.steps), 'step')} begun {EARLY}"]
    done = f"{report.count(StepStatus.COMPLETED)} of {counted(len(report.planned), 'step')} done"
    asking = sum(step.is_asking for step in report.planned)
    cut_off = 0 if report.is_over else sum(step.is_cut_off for step in report.planned)
    left, word = report.count(StepStatus.PENDING), "not done" if report.is_over else "pending"
    others = {WAITING: asking, CUT_OFF: cut_off, word: left - asking - cut_off}
    others |= {WORDS[status]: report.count(status) for status in _TOLD}
    return [done, *(f"{n} {number}" for number, n in others.items() if n)]


def _plan_title(report: RunReport) -> str:
    plan = report.plan
    if plan is None:
        return "steps"
    title = f" {one_line(plan.title)}" if plan.title else ""
    return f"plan{title}, version {plan.version}"


def _step_lines(report: RunReport, width: int) -> list[str]:
    if not report.steps:
        return []
    last = max(step.step.id for step in report.steps)
    rows = [step_cells(step, report, len(str(last))) for step in report.steps]
    has_cost = any(row[3] != "-" for row in rows)
    rows = [("", "began", "took", "cost", "who", "step"), *rows]
    left_out = [*([1] if width < _NARROW else []), *([] if has_cost else [3])]
    rows = [["" if at in left_out else cell for at, cell in enumerate(row)] for row in rows]
    heading, *lines = columns(rows, width, right=(2, 3), widest=_WIDEST_NAME)
    indent, cuts = " " * (len(str(last)) + 6), _cuts(report)
    shown = [heading]
    for step, line in zip(report.steps, lines, strict=True):
        notes = (*_notes(step), *cuts.get(step.step.id, ()))
        shown += [line, *(f"{indent}{note}" for note in notes)]
    return shown


def step_cells(report: StepReport, run: RunReport, digits: int = 0) -> tuple[str, ...]:
    """A step as the cells of a row: its status and number, times, cost, who, and what."""
    step, took = report.step, report.seconds
    options = [*waits_in_words(step), *(["optional"] if step.optional else ())]
    options += ["ask first"] if step.ask_first else []
    more = f" ({'; '.join(options)})" if options else ""
    return (
        f"{mark_of(report)} {step.id:>{digits}}.",
        time_text(report.began, run.began) if report.began else "-",
        "-" if took is None else seconds(took),
        money(report.calls, run.currency),
        one_line(", ".join(report.specialists)) or "-",
        f"{one_line(step.description)}{more}",
    )


def mark_of(report: StepReport) -> str:
    """The status of a step, in one sign."""
    return "[?]" if report.is_asking else MARKS[report.status]


def _notes(report: StepReport) -> Iterator[str]:
    """Lines about what is unusual in a step: bad attempts, its tools, its feedback."""
    has_several = len(report.specialists) > 1
    for attempt in report.attempts:
        if attempt.outcome in _LOUD:
            line = f"{attempt_line(attempt)}{_idle(attempt)}"
            yield f"{one_line(attempt.entry.specialist)}, {line}" if has_several else line
    if report.removed or report.is_early:
        yield report.removed or EARLY
    if tools := report.tools:
        is_running = any(attempt.outcome == "running" for attempt in report.attempts)
        no_end = "not over" if is_running else "cut off"
        yield f"tools: {', '.join(_tool_counts(tools, no_end))}"
    if feedback := one_line(report.step.feedback):
        errors = [one_line(attempt.entry.error) for attempt in report.attempts]
        if feedback not in errors:
            yield f"{report.step.status.value}: {feedback}"


def _idle(attempt: AttemptReport) -> str:
    """What an attempt did that found no room for its first call."""
    lasted = attempt.seconds or 0.0
    if not _NO_ROOM.match(attempt.entry.error) or attempt.calls or lasted < LEAST_TOLD:
        return ""
    return f" It waited {seconds(lasted)} for room, and made no call."


def _cuts(report: RunReport) -> dict[int, list[str]]:
    """What says that a result is incomplete, by step."""
    cuts = dict[int, list[str]]()
    for (step, name), cut_off in report.fold.cuts.items():
        if cut_off:
            cuts.setdefault(step, []).append(one_line(f"{name}, {incomplete_text(cut_off)}"))
    return cuts


def incomplete_text(why: str) -> str:
    """That a result was cut, and why."""
    return f"incomplete: {cut_in_words(why)}"


def attempt_line(attempt: AttemptReport) -> str:
    """How an attempt ended, in one line."""
    entry = attempt.entry
    error = f": {one_line(entry.error)}" if entry.error else ""
    killed = f": {_KILLED}" if attempt.outcome == "unknown_outcome" else ""
    return f"attempt {entry.number}: {attempt.outcome_text}{killed}{error}"


def _tool_counts(
    calls: Iterable[ToolInvoked | ToolCompleted], no_end: str = "cut off"
) -> Iterator[str]:
    by_name = dict[str, list[str]]()
    for call in calls:
        end = call.status if isinstance(call, ToolCompleted) else no_end
        by_name.setdefault(one_line(call.tool), []).append(end)
    for name, ends in by_name.items():
        bad = [end for end in dict.fromkeys(ends) if end != "success"]
        failures = ", ".join(f"{ends.count(end)} {end}" for end in bad)
        yield f"{name} x{len(ends)}{f' ({failures})' if failures else ''}"


def tool_counts(report: RunReport) -> list[str]:
    """The calls of tools in a run, by name: those of its steps, and those of the host."""
    host_tools = (call for call in report.host_calls if isinstance(call, ToolCompleted))
    return [*_tool_counts([*host_tools, *(call for step in report.steps for call in step.tools)])]


def _waiting(report: RunReport) -> list[str]:
    if not report.pending_questions:
        return []
    from replan.views.run.evidence import evidence_of  # noqa: PLC0415 - imports LangGraph
    from replan.views.run.open_asks import pending_lines  # noqa: PLC0415 - the same

    asks = report.pending_questions
    return pending_lines(asks, [evidence_of(ask, report) for ask in asks])


def _host_lines(report: RunReport) -> list[str]:
    """The calls of the host by node."""
    by_node = dict[str, list[HostCall]]()
    for event in report.host_calls:
        by_node.setdefault(event.node, []).append(event)
    lines = list[str]()
    for node, events in by_node.items():
        calls = calls_of(events)
        used = usage_text(calls, report.currency)
        tools = [call for call in events if isinstance(call, ToolCompleted)]
        tools_text = f"; tools: {', '.join(_tool_counts(tools))}" if tools else ""
        lines.append(f"{one_line(node)}: {used}, {seconds(calls.seconds)}{tools_text}")
    return lines
