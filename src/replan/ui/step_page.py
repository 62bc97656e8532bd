"""The views of a step and its threads, and of what a run remembered, looked up and collected."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, cast

from replan.runs.course.story import StepStory, Story
from replan.runs.course.thread_views import ThreadView
from replan.runs.course.waits import waits_of
from replan.runs.course.whole_run import WholeRun
from replan.runs.log.run_event import RunEvent
from replan.ui.drawn.graph import step_states
from replan.ui.drawn.tree import branch_of, known_of
from replan.views.run.given import knowledge_text, memory_text
from replan.views.run.history import LEAST_TOLD, history_lines


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


_GIVEN = (
    "memory_applied",
    "memory_summary",
    "knowledge_retrieved",
    "fact_remembered",
    "fact_forgotten",
)


def step_values(story: Story, number: int) -> dict[str, Any]:
    """What the page of a step shows."""
    run = story.run
    step = next(each for each in story.steps if each.step.id == number)
    own = tuple(each for each in run.events if each.details.get("step_id") == number)
    return {
        "step": step,
        "standing": step_states(story)[number],
        "waits": [each for each in waits_of(step, story) if each.seconds >= LEAST_TOLD],
        "moments": history_lines(story, number),
        "branch": branch_of(step, known_of(story)),
        "results": [each for each in run.results if each.step_id == number],
        "threads": threads_of(run.threads, number),
        "given": given_of(own),
        "jobs": jobs_of(run, step),
    }


def given_of(events: Iterable[RunEvent]) -> list[dict[str, Any]]:
    """What was remembered and looked up, and for whom."""
    return [_given(each) for each in events if each.type in _GIVEN]


def _given(event: RunEvent) -> dict[str, Any]:
    details: dict[str, Any] = event.details
    step = details.get("step_id")
    lines: list[str] = []
    match event.type:
        case "memory_applied":
            text = memory_text(details)
        case "memory_summary":
            text = str(
                details.get("error") or f"a summary covers {details.get('covered')} messages"
            )
        case "knowledge_retrieved":
            text = knowledge_text(details)
            lines = [
                str(each) for n in ("skipped", "unused", "failed") for each in details.get(n, ())
            ]
        case kind:
            done = "remembered" if kind == "fact_remembered" else "forgot"
            text = f"{done} fact {details.get('fact_id')}: {details.get('text', '')}"
    return {
        "at": event.at,
        "who": "host" if step is None else f"step {step} {details.get('specialist', '')}",
        "text": text,
        "lines": lines,
        "sources": details.get("sources", ()),
        "seq": event.seq if details.get("prompt") else None,
    }


def jobs_of(run: WholeRun, step: StepStory | None = None) -> list[dict[str, Any]]:
    """The jobs of a run as forms: with their current questions, else their outcome."""
    outputs = [(each.step_id, each.output, False) for each in run.results]
    outputs += [(each.step_id, each.details, True) for each in run.pending_questions]
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
        "problems": [str(each) for each in fields.get("problems") or () if each],
        "turns": fields.get("turns", 0),
        "is_open": is_open,
    }
