"""One run, live and afterwards: its pages, and what of them changes while it continues."""

import hashlib
from typing import Any, cast

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from replan.plan.markdown.seal import unsealed
from replan.plan.model import StepStatus
from replan.runs.course.whole_run import with_texts
from replan.runs.log.run_event import RunEvent
from replan.server.problems import RefusedError
from replan.ui.drawn.graph import graph_of, step_states
from replan.ui.drawn.timeline import LEGEND, timeline_of
from replan.ui.drawn.tree import tree_of
from replan.ui.open_steps import is_drawn_whole, open_steps, steps_changed_by
from replan.ui.read_runs import Reading, event_numbered, find_record
from replan.ui.site import Site
from replan.ui.step_page import given_of, jobs_of, step_values, threads_of
from replan.views.run.history import history_lines
from replan.views.run.overview import (
    duration_text,
    goal_text,
    remark_texts,
    tool_counts,
    usage_text,
)
from replan.views.run.reasons import why_ended

TABS = {
    "plan": "Plan",
    "timeline": "Timeline",
    "steps": "Steps",
    "history": "History",
    "given": "Given and made",
}
STEP = "step"
"""The view of one step alone."""

_MANY = 100
"""Rows of a timeline that are drawn again twice a second."""

_HISTORY = ("model_", "tool_", "specialist_token")
"""What is not in the history."""


async def reading_of(site: Site, request: Request) -> Reading:
    """The run that an address names, as it is."""
    record = await find_record(site.served, request.path_params["run_id"], request.state.who)
    return await site.readings.of(record)


async def one_run(site: Site, request: Request) -> Response:
    """Show a run."""
    reading = await reading_of(site, request)
    tab = request.query_params.get("tab", "plan")
    if tab not in TABS:
        detail = f"There is no view '{tab[:40]}' of a run. There are: {', '.join(TABS)}."
        raise RefusedError(404, "unknown_view", detail)
    return site.page(request, "run", **run_values(reading, tab), **stage_values(reading, tab))


async def changes(site: Site, request: Request) -> Response:
    """Return what of a page has changed since the event that it knows."""
    asked, reading = request.query_params, await reading_of(site, request)
    if asked.get("boot") != site.boot:
        # The server was started again, maybe as another version.
        return Response(headers={"HX-Refresh": "true"})
    tab, settled, seen = (
        asked.get("tab", "plan"),
        *map(_number, (asked.get("settled"), asked.get("seq"))),
    )
    if tab not in (*TABS, STEP) or settled is None or seen is None:
        return Response(headers={"HX-Refresh": "true"})
    new = [each for each in reading.run.events if (each.seq or 0) > settled]
    redrawn = [each for each in new if is_drawn_whole(each, seen, reading.settled)]
    values: dict[str, Any] = {**run_values(reading, tab), "oob": True}
    values["is_marked_anew"] = asked.get("mark") != values["mark"]
    values["open_steps"] = open_steps(reading.story, asked.getlist("open"))
    if values["is_marked_anew"] or redrawn:
        # Where a graph is drawn already, the place that it has been scrolled to stays.
        is_drawn = tab == "plan" and not any(each.type == "plan_created" for each in redrawn)
        values |= {"whole": True, "is_drawn": is_drawn, **stage_values(reading, tab)}
    else:
        values |= {"whole": False, **_changed_parts(reading, tab, new)}
    return site.page(request, "changes", **values)


def _number(text: str | None) -> int | None:
    is_one = text and text.isascii() and text.isdigit() and len(text) < len("9" * 12)
    return int(text) if text and is_one else None


def _changed_parts(reading: Reading, tab: str, new: list[RunEvent]) -> dict[str, Any]:
    """The parts of a view that some events changed."""
    story = reading.story
    steps = steps_changed_by(story, new)
    values: dict[str, Any] = {
        "boxes": (),
        "branches": (),
        "rows": False,
        "stands": step_states(story),
    }
    if tab == "plan":
        values["boxes"] = [box for box in graph_of(story).boxes if box.step in steps]
    elif tab == "steps":
        values["branches"] = [each for each in tree_of(story) if each.step in steps]
    elif tab == "timeline" and new:
        values |= {"timeline": timeline_of(story), "legend": LEGEND, "rows": True}
    elif tab in ("history", "given") and any(not e.type.startswith(_HISTORY) for e in new):
        values |= {"whole": True, **stage_values(reading, tab)}
    return values


def run_values(reading: Reading, tab: str) -> dict[str, Any]:
    """What is at the top of each page of a run."""
    run, story = reading.run, reading.story
    asks = ";".join(
        f"{each.key} {each.fingerprint} {each.problem}" for each in run.pending_questions
    )
    why, drawn = why_ended(story), run.plan.version if run.plan else 0
    parts = f"{run.outcome} {asks} {len(run.warnings)} {drawn} {why} {bool(run.answer)}"
    mark = hashlib.sha256(parts.encode("utf-8", "replace")).hexdigest()[:12]
    return {
        "run": run,
        "story": story,
        "doer": reading.doer,
        "tab": tab,
        "tabs": TABS,
        "seq": reading.seq,
        # What came since then is drawn again by the next look.
        "settled": reading.settled,
        "mark": mark,
        "pace": _poll_interval(reading, tab),
        "goal": goal_text(story),
        "why": why,
        "took": duration_text(story),
        "remarks": remark_texts(story.remarks),
        "used": usage_text(story.calls, is_running=run.outcome == "running"),
        "done": story.count(StepStatus.COMPLETED),
        "steps_at_work": story.count(StepStatus.EXECUTING),
        "total": len(story.planned),
        "oob": False,
    }


def _poll_interval(reading: Reading, tab: str) -> str:
    """How often a page asks for changes; empty once the run is over."""
    if not reading.is_at_work:
        return "" if reading.story.is_over else "2s"
    # A timeline is drawn again as a whole: all its bars move.
    is_large = tab == "timeline" and len(reading.story.steps) > _MANY
    return "2s" if is_large else "500ms"


def stage_values(reading: Reading, tab: str) -> dict[str, Any]:
    """What a view shows below the top."""
    story = reading.story
    values: dict[str, Any] = {"stands": step_states(story)}
    match tab:
        case "plan":
            values["graph"] = graph_of(story)
            values["document"] = unsealed(reading.run.plan.content) if reading.run.plan else ""
        case "timeline":
            values |= {"timeline": timeline_of(story), "legend": LEGEND}
        case "steps":
            values["branches"] = tree_of(story)
        case "history":
            happened = history_lines(story, has_failures=True)
            values |= {"moments": happened, "revisions": story.revisions[::-1]}
        case "given":
            values |= {"given": given_of(reading.run.events), "jobs": jobs_of(reading.run)}
            values["threads"] = threads_of(reading.run.threads)
            values["tools"] = tool_counts(story)
            values["results"] = sorted(reading.run.results, key=lambda each: each.step_id)
            values["titles"] = {each.step.id: each.step.description for each in story.steps}
        case _:  # of a step alone nothing is round it
            pass
    return values


async def step(site: Site, request: Request) -> Response:
    """Show a step: as a page, or as the part of one."""
    reading, number = await reading_of(site, request), request.path_params["step"]
    if not any(each.step.id == number for each in reading.story.steps):
        raise RefusedError(404, "unknown_step", f"There is no step {number} in this run.")
    values = run_values(reading, STEP) | step_values(reading.story, number)
    is_part = request.headers.get("hx-request") == "true"
    return site.page(request, "step_part" if is_part else "step", **values)


async def prompt(site: Site, request: Request) -> Response:
    """Show the prompt and the reply of a model's call."""
    reading = await reading_of(site, request)
    event = event_numbered(reading.run, request.path_params["seq"])
    own = tuple(e for e in reading.run.events if e.call_key == event.call_key and e.type in _MODELS)
    run = await with_texts(reading.run, site.served.storage, own or (event,))
    said = [_message(part, run.texts) for each in own for part in _list(each.details.get("prompt"))]
    replies = [each.details["reply"] for each in own if isinstance(each.details.get("reply"), dict)]
    values: dict[str, Any] = {
        "said": said,
        "replies": [_message(each, run.texts) for each in replies],
    }
    is_part = request.headers.get("hx-request") == "true"
    values |= run_values(reading, "steps") | {"event": event}
    return site.page(request, "prompt_part" if is_part else "prompt", **values)


_MODELS = ("model_invoked", "model_completed", "memory_summary")


def _list(value: object) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _message(part: Any, texts: dict[str, str]) -> dict[str, Any]:
    """A message, cut where a browser would suffer; the whole is one link away."""
    text = texts.get(str(part.get("ref")))
    longest = 100_000
    return {
        "role": str(part.get("role")),
        "ref": str(part.get("ref")),
        "text": None if text is None else text[:longest],
        "is_cut": text is not None and len(text) > longest,
    }


async def whole_text(site: Site, request: Request) -> Response:
    """Return a long text as it is, as plain text."""
    record = await find_record(site.served, request.path_params["run_id"], request.state.who)
    text = await site.served.storage.log.text(record.run_id, request.path_params["ref"])
    if text is None:
        detail = "This text is not there, or it was removed."
        raise RefusedError(404, "unknown_text", detail)
    return PlainTextResponse(text.encode("utf-8", "replace"))
