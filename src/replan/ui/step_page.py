"""What is to be seen of a step, and of what a run remembered, looked up and collected."""

from collections.abc import Iterable
from typing import Any, cast

from replan.cli.views.given import knowledge_told, memory_told
from replan.cli.views.history import LEAST_TOLD, moments
from replan.runs.run_event import RunEvent
from replan.runs.story import StepStory, Story
from replan.runs.waits import waits_of
from replan.runs.whole_run import WholeRun
from replan.ui.drawn.graph import standings
from replan.ui.drawn.threads import threads_of
from replan.ui.drawn.tree import tree_of

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
        "standing": standings(story)[number],
        "waits": [each for each in waits_of(step, story) if each.seconds >= LEAST_TOLD],
        "moments": moments(story, number),
        "branch": next(each for each in tree_of(story) if each.step == number),
        "results": [each for each in run.results if each.step_id == number],
        "threads": threads_of(run.threads, number),
        "given": given_of(own),
        "jobs": jobs_of(run, step),
    }


def given_of(events: Iterable[RunEvent]) -> list[dict[str, Any]]:
    """What was remembered and looked up, and for whom."""
    return [_given(each) for each in events if each.type in _GIVEN]


def _given(event: RunEvent) -> dict[str, Any]:
    said: dict[str, Any] = event.details
    step = said.get("step_id")
    lines: list[str] = []
    match event.type:
        case "memory_applied":
            told = memory_told(said)
        case "memory_summary":
            told = str(said.get("error") or f"a summary covers {said.get('covered')} messages")
        case "knowledge_retrieved":
            told = knowledge_told(said)
            lines = [
                str(each) for n in ("left_out", "unused", "failed") for each in said.get(n, ())
            ]
        case kind:
            done = "remembered" if kind == "fact_remembered" else "forgot"
            told = f"{done} fact {said.get('fact_id')}: {said.get('text', '')}"
    return {
        "at": event.at,
        "who": "host" if step is None else f"step {step} {said.get('specialist', '')}",
        "told": told,
        "lines": lines,
        "sources": said.get("sources", ()),
        "seq": event.seq if said.get("prompt") else None,
    }


def jobs_of(run: WholeRun, step: StepStory | None = None) -> list[dict[str, Any]]:
    """The jobs of a run as forms: the one that asks now, else the one that it came to."""
    forms: dict[Any, dict[str, Any]] = {}
    for result in run.results:
        if (view := _job_in(result.output)) is not None:
            forms[result.step_id] = {"step": result.step_id, "is_open": False, **view}
    for ask in run.waiting:
        if (view := _job_in(ask.details)) is not None:
            forms[ask.step_id] = {"step": ask.step_id, "is_open": True, **view}
    return [each for each in forms.values() if step is None or each["step"] == step.step.id]


def _job_in(value: object) -> dict[str, Any] | None:
    """What a value tells of a job, if it is one."""
    if not isinstance(value, dict):
        return None
    fields = cast("dict[str, Any]", value)
    return fields if "collected_info" in fields or "slots" in fields else None
