"""The views of a step and its threads, and of what a run remembered, looked up and collected."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from replan.events.types import (
    Event,
    FactForgotten,
    FactRemembered,
    KnowledgeRetrieved,
    MemoryApplied,
    MemorySummary,
    WorkEvent,
)
from replan.log.kept_events import prompt_of
from replan.log.step_reports import StepReport
from replan.runs.reports import ThreadView, WholeReport
from replan.state.knowledge import Source
from replan.ui.drawn.graph import step_states
from replan.ui.drawn.tree import branch_of
from replan.views.event_lines import knowledge_text, memory_text
from replan.views.run.history import LEAST_TOLD, history_lines
from replan.views.run.waits import waits_of


@dataclass(frozen=True, kw_only=True)
class ThreadTree:
    """A thread, and those below it."""

    thread: ThreadView
    below: tuple["ThreadTree", ...] = ()


def threads_of(views: Iterable[ThreadView], step: int | None = None) -> tuple[ThreadTree, ...]:
    """Put threads into trees: each comes before its sub-threads, as `thread_views` returns them."""
    waiting: list[tuple[ThreadView, list[ThreadTree]]] = []
    roots = list[ThreadTree]()

    def close(depth: int) -> None:
        while waiting and waiting[-1][0].depth >= depth:
            view, below = waiting.pop()
            place = waiting[-1][1] if waiting else roots
            place.append(ThreadTree(thread=view, below=tuple(below)))

    for view in views:
        if step in (None, view.step_id):
            close(view.depth)
            waiting.append((view, []))
    close(0)
    return tuple(roots)


_Given = MemoryApplied | MemorySummary | KnowledgeRetrieved | FactRemembered | FactForgotten


def step_values(report: WholeReport, number: int) -> dict[str, Any]:
    """What the page of a step shows."""
    step = next(step for step in report.steps if step.step.id == number)
    step_events = (e for e in report.events if isinstance(e, WorkEvent) and e.step_id == number)
    return {
        "step": step,
        "standing": step_states(report)[number],
        "waits": [wait for wait in waits_of(step, report) if wait.seconds >= LEAST_TOLD],
        "moments": history_lines(report, number),
        "branch": branch_of(step, report),
        "results": [result for result in report.results if result.step_id == number],
        "threads": threads_of(report.threads, number),
        "given": given_of(step_events),
        "jobs": jobs_of(report, step),
    }


def given_of(events: Iterable[Event]) -> list[dict[str, Any]]:
    """What was remembered and looked up, and for whom."""
    return [_given_values(event) for event in events if isinstance(event, _Given)]


def _given_values(event: _Given) -> dict[str, Any]:
    lines: list[str] = []
    sources: Sequence[Source] = ()
    match event:
        case MemoryApplied():
            text = memory_text(event)
        case MemorySummary():
            text = event.error or f"a summary covers {event.covered} messages"
        case KnowledgeRetrieved():
            text, sources = knowledge_text(event), event.sources
            lines = [*event.skipped, *event.unused, *event.failed]
        case _:
            done = "remembered" if isinstance(event, FactRemembered) else "forgot"
            text = f"{done} fact {event.fact_id}: {event.text}"
    who = "host"
    if not isinstance(event, MemorySummary) and event.step_id is not None:
        who = f"step {event.step_id} {event.specialist}"
    return {
        "at": event.at,
        "who": who,
        "text": text,
        "lines": lines,
        "sources": sources,
        "seq": event.seq if prompt_of(event) else None,
    }


def jobs_of(run: WholeReport, step: StepReport | None = None) -> list[dict[str, Any]]:
    """The jobs of a run as forms: with their current questions, else their outcome."""
    outputs = [(result.step_id, result.output, False) for result in run.results]
    outputs += [(question.step_id, question.details, True) for question in run.pending_questions]
    forms = {
        number: form for number, value, is_open in outputs if (form := job_form(value, is_open))
    }
    number = None if step is None else step.step.id
    return [{"step": at, **form} for at, form in forms.items() if number in (None, at)]


def job_form(value: object, is_open: bool) -> dict[str, Any] | None:  # noqa: FBT001 - of the value
    """What a value says about a job: its phase while it asks, or the whole job at its end."""
    fields = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    collected = fields.get("collected", fields.get("collected_info"))
    missing = fields.get("missing", fields.get("missing_info"))
    if "phase" not in fields or not isinstance(collected, dict) or not isinstance(missing, list):
        return None
    states = {"completed": "done", "failed": "failed"}
    return {
        "type": str(fields.get("type", "job")),
        "command": str(fields.get("command", "")),
        "phase": str(fields["phase"]),
        "state": states.get(str(fields.get("status")), "waiting"),
        "collected": collected,
        "missing": missing,
        "problems": [str(problem) for problem in fields.get("problems") or () if problem],
        "turns": fields.get("turns", 0),
        "is_open": is_open,
    }
