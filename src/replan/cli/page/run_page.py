"""One run, live and afterwards: its pages, and what of them changes while it continues."""

from collections.abc import Iterator, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from replan.cli.page.plan_graph import graph_of
from replan.cli.page.read_runs import Reading, event_numbered, find_record
from replan.cli.page.shown import ask_fingerprint
from replan.cli.page.site import Site
from replan.cli.page.step_page import (
    given_in,
    is_drawn_whole,
    jobs_of,
    open_steps,
    step_values,
    steps_changed_by,
)
from replan.log.events.types import (
    Event,
    MemorySummary,
    MessageText,
    ModelCompleted,
    ModelInvoked,
)
from replan.log.kept_events import prompt_of, reply_of
from replan.plan.markdown.seal import unsealed
from replan.plan.model import StepStatus
from replan.runs.reports import WholeReport, with_texts
from replan.server.problems import RefusedError
from replan.state.questions import fingerprint_of
from replan.views.run.branches import branches_of, thread_lines
from replan.views.run.compared import compared
from replan.views.run.evidence import evidence_of
from replan.views.run.history import moments, why_text
from replan.views.run.overview import (
    duration_text,
    goal_text,
    remarks_of,
    step_counts,
    tool_counts,
    used_text,
)
from replan.views.run.step_states import step_states
from replan.views.run.timeline import LEGEND, timeline_of

TABS = {
    "plan": "Plan",
    "timeline": "Timeline",
    "steps": "Steps",
    "history": "History",
    "given": "Inputs and outputs",
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
    tab, report = asked.get("tab", "plan"), reading.run
    settled, seen = _number(asked.get("settled")), _number(asked.get("seq"))
    if tab not in (*TABS, STEP) or settled is None or seen is None:
        return Response(headers={"HX-Refresh": "true"})
    new = [event for event in report.events if (event.seq or 0) > settled]
    redrawn = [event for event in new if is_drawn_whole(event, seen, reading.settled)]
    values: dict[str, Any] = {**run_values(reading, tab), "oob": True}
    is_anew, steps = asked.get("mark") != values["mark"], steps_changed_by(report, new)
    is_told = tab in ("history", "given") and any(not e.type.startswith(_HISTORY) for e in new)
    is_whole = bool(is_anew or redrawn or is_told)
    values |= stage_values(reading, tab if new or is_anew else STEP)
    boxes, branches = getattr(values.get("graph"), "boxes", ()), values.get("branches", ())
    values |= {
        "is_marked_anew": is_anew,
        "open_steps": open_steps(report, asked.getlist("open")),
        "whole": is_whole,
        # Where a graph is drawn already, the place that it has been scrolled to stays.
        "is_drawn": not any(event.type == "plan_created" for event in redrawn),
        "boxes": [box for box in boxes if box.step.id in steps],
        "branches": [branch for branch in branches if is_whole or branch.number in steps],
        "rows": tab == "timeline" and bool(new),
    }
    return site.page(request, "changes", **values)


def _number(text: str | None) -> int | None:
    is_one = text and text.isascii() and text.isdigit() and len(text) < len("9" * 12)
    return int(text) if text and is_one else None


def run_values(reading: Reading, tab: str) -> dict[str, Any]:
    """What is at the top of each page of a run."""
    run = reading.run
    evidence = {ask.key: evidence_of(ask, run) for ask in run.pending_questions}
    why, drawn = why_text(run), run.plan.version if run.plan else 0
    failed = run.count(StepStatus.FAILED)
    asks = [f"{ask_fingerprint(q)} {evidence[q.key].answered}" for q in run.pending_questions]
    steers = [event.request for event in run.steers]
    told = [run.outcome, why, drawn, failed, len(run.warnings), bool(run.answer)]
    return {
        "run": run,
        "doer": reading.doer,
        "lacks": reading.lacks,
        "tab": tab,
        "tabs": TABS,
        "evidence": evidence,
        "seq": reading.seq,
        # What came since then is drawn again by the next look.
        "settled": reading.settled,
        "mark": fingerprint_of([*asks], [*steers], [*told]),
        "pace": _poll_interval(reading, tab),
        "goal": goal_text(run),
        "why": why,
        "took": duration_text(run),
        "remarks": remarks_of(run),
        "used": used_text(run),
        "counts": step_counts(run),
        "done": run.count(StepStatus.COMPLETED),
        "failed_steps": failed,
        "steps_at_work": run.count(StepStatus.EXECUTING),
        "total": 0 if run.is_planning else len(run.planned),
        "oob": False,
    }


def _poll_interval(reading: Reading, tab: str) -> str:
    """How often a page asks for changes; empty once the run is over."""
    if not reading.is_at_work:
        return "" if reading.run.is_over else "2s"
    # A timeline is drawn again as a whole: all its bars move.
    is_large = tab == "timeline" and len(reading.run.steps) > _MANY
    return "2s" if is_large else "500ms"


def stage_values(reading: Reading, tab: str) -> dict[str, Any]:
    """What a view shows below the top."""
    report = reading.run
    values: dict[str, Any] = {"stands": step_states(report)}
    match tab:
        case "plan":
            values["graph"] = graph_of(report)
            values["document"] = unsealed(reading.run.plan.content) if reading.run.plan else ""
        case "timeline":
            values |= {"timeline": timeline_of(report), "legend": LEGEND}
        case "steps":
            values["branches"] = branches_of(report)
        case "history":
            happened = moments(report, has_failures=True)
            values |= {"moments": happened, "revisions": report.revisions[::-1]}
        case "given":
            values |= {"given": given_in(report), "jobs": jobs_of(report)}
            values["threads"] = [*thread_lines(report.threads)]
            values["tools"] = tool_counts(report)
            values["results"] = sorted(reading.run.results, key=lambda result: result.step_id)
            values["titles"] = {
                step_report.step.id: step_report.step.description for step_report in report.steps
            }
        case _:  # of a step alone nothing is round it
            pass
    return values


async def step(site: Site, request: Request) -> Response:
    """Show a step: as a page, or as the part of one."""
    reading, number = await reading_of(site, request), request.path_params["step"]
    if number not in reading.run.by_id:
        raise RefusedError(404, "unknown_step", f"There is no step {number} in this run.")
    values = run_values(reading, STEP) | step_values(reading.run, number)
    return site.page(request, f"step{_part(request)}", **values)


async def prompt(site: Site, request: Request) -> Response:
    """Show the prompt and the reply of a model's call."""
    reading = await reading_of(site, request)
    event = event_numbered(reading.run, request.path_params["seq"])
    call_events = tuple(_events_of_call(reading.run, event))
    run = await with_texts(reading.run, site.served.storage, call_events or (event,))
    replies = [reply for event in call_events if (reply := reply_of(event)) is not None]
    values: dict[str, Any] = {
        "said": [_message(part, run.texts) for event in call_events for part in prompt_of(event)],
        "replies": [_message(message, run.texts) for message in replies],
        "event": event,
    }
    values |= run_values(reading, "steps")
    return site.page(request, f"prompt{_part(request)}", **values)


def _part(request: Request) -> str:
    """What the name of a template ends with where only a part of a page is asked for."""
    return "_part" if request.headers.get("hx-request") == "true" else ""


async def compare(site: Site, request: Request) -> Response:
    """Compare a run with another one that the caller may see."""
    reading, who = await reading_of(site, request), request.state.who
    name = request.query_params.get("with", "").strip()[:_LONGEST_NAME]
    lines: list[str] = []
    if name:
        other = await site.readings.of(await find_record(site.served, name, who))
        lines = [*compared(reading.run, other.run, _WIDE)]
    newest = await site.served.storage.runs.recent(_OFFERED)
    offered = [
        record
        for record in newest
        if record.run_id != reading.run.run_id and site.served.may_look(record, who)
    ]
    values: dict[str, Any] = {"other": name, "lines": lines, "newest": offered}
    return site.page(request, "compared", **run_values(reading, "steps"), **values)


_LONGEST_NAME, _OFFERED, _WIDE = 200, 30, 110


def _events_of_call(run: WholeReport, event: Event) -> Iterator[Event]:
    """The events of the call of a model that an event is of."""
    if isinstance(event, MemorySummary):
        yield event
    elif isinstance(event, ModelInvoked | ModelCompleted):
        calls = (e for e in run.events if isinstance(e, ModelInvoked | ModelCompleted))
        yield from (call for call in calls if call.call_key == event.call_key)


def _message(part: MessageText, texts: Mapping[str, str]) -> dict[str, Any]:
    """A message, cut where a browser would suffer; the whole is one link away."""
    text = texts.get(part.ref)
    longest = 100_000
    return {
        "role": part.role,
        "ref": part.ref,
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
