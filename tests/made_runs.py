"""A made run with all that can be kept of one: killed, gone on with, asked, and failed."""

from datetime import UTC, datetime, timedelta
from typing import get_args

from replan.events import Event
from replan.log.rows import LedgerEntry, Request
from replan.plan.model import PlanStep, StepStatus, TaskPlan
from replan.runs.reports import WholeReport
from replan.state.results import SpecialistResult
from replan.state.usage import Usage

KINDS = {kind.model_fields["type"].default: kind for kind in get_args(get_args(Event)[0])}
NEEDED = {
    "node": "specialist_worker",
    "specialist": "worker",
    "call": "c",
    "effects": "pure",
    "tool": "price",
    "arguments": {},
    "status": "success",
    "task": "t",
    "action": "answered",
    "model": "m",
    "seconds": 0.0,
    "kind": "question",
    "mode": "stuff",
    "request": "Go.",
    "step_id": 1,
    "reruns": (),
    "outcome": "completed",
}
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def at(seconds):
    return NOON + timedelta(seconds=seconds)


def event(seq, moment, kind, /, **details):
    known = KINDS[kind].model_fields
    needed = {name: value for name, value in NEEDED.items() if name in known}
    needed = {name: value for name, value in needed.items() if known[name].is_required()}
    given = {name: value for name, value in details.items() if name in known}
    own = {"run_id": "r", "seq": seq, "at": at(moment)}
    return KINDS[kind](**{"round": 1, **needed, **given, **own})


def attempt(step, number, began, ended, outcome="done", error="", who="worker"):
    return LedgerEntry(
        run_id="r",
        step_id=step,
        specialist=who,
        number=number,
        key="k",
        started_at=at(began),
        ended_at=None if ended is None else at(ended),
        outcome=outcome,
        error=error,
    )


def in_order(events, attempts):
    """The events of a run, numbered, with the beginnings and ends of attempts among them."""
    rows = [(each.at, 1, each) for each in events]
    for each in attempts:
        of = {"step_id": each.step_id, "specialist": each.specialist, "attempt": each.number}
        began, ended = each.started_at, each.ended_at
        seconds = (began - NOON).total_seconds()
        key = {"idempotency_key": each.idempotency_key}
        rows.append((began, 2, event(0, seconds, "specialist_invoked", **of, **key)))
        if ended is not None:
            own = {
                "outcome": each.outcome,
                "error": each.error,
                "seconds": (ended - began).total_seconds(),
            }
            kind = "specialist_completed" if each.outcome == "done" else "attempt_ended"
            end = event(0, (ended - NOON).total_seconds(), kind, **of, **own, status="success")
            # What ends when something else happens ended before that.
            rows.append((ended, 0 if began < ended else 3, end))
    rows.sort(key=lambda row: row[:2])
    return tuple(each.model_copy(update={"seq": seq}) for seq, (*_, each) in enumerate(rows, 1))


def call(step, number, name, **said):
    where = {"node": "specialist_worker", "step_id": step, "specialist": "worker"}
    return {**where, "attempt": number, "call": name, **said}


def answered(step, number, name, cost=None, error=""):
    tokens = {"input_tokens": 10, "output_tokens": 5, "seconds": 0.5, "error": error}
    return call(step, number, name, cost=cost, model="m", **tokens)


STEPS = (
    PlanStep(id=1, description="Fetch", assigned_to="worker", status=StepStatus.COMPLETED),
    PlanStep(
        id=2,
        description="Pay",
        assigned_to="worker",
        dependencies=(1,),
        status=StepStatus.FAILED,
        feedback="no money",
    ),
    PlanStep(id=3, description="Tell", assigned_to="worker", dependencies=(2,)),
)


def whole(**changes):
    """A run that was killed, went on, asked, and failed."""
    fields = {
        "run_id": "r",
        "title": "Buy",
        "outcome": "partial",
        "started_at": NOON,
        "last_seen_at": at(100),
        "labels": {"user": "eva"},
        "plan": TaskPlan(title="Buy", steps=STEPS, version=2),
        "answer": "It did not work.",
        "output": None,
        "limit_reached": "",
        "warnings": (),
        "usage": Usage(),
        "spent": {},
        "pending_questions": (),
        "questions": {},
        "results": (SpecialistResult(specialist_name="worker", step_id=1, error="x" * 900),),
        "ledger": (
            attempt(1, 1, 1, 10, "failed", "ConnectionError: reset"),
            attempt(1, 2, 12, 20),
            attempt(2, 1, 20, None, "unknown_outcome"),
            attempt(2, 2, 60, 80, "failed", "no money"),
        ),
        "requests": (
            Request(
                run_id="r",
                name="a",
                kind="answer",
                at=at(50),
                by="anna",
                answers={"plan": {"answer": "approve", "bound": "approve", "is_keyed": False}},
            ),
        ),
        "events": (
            event(1, 0, "run_started", request="Buy gold"),
            event(2, 1, "plan_created", version=1, steps=3),
            event(
                3,
                10,
                "model_completed",
                **answered(None, None, "h", 0.5),
            ),
            event(4, 15, "model_completed", **answered(1, 2, "a", 0.25)),
            event(
                5,
                19,
                "tool_completed",
                **call(1, 2, "t", tool="price", arguments={"of": "gold"}, effects="pure"),
                status="failed",
                result="Error: no quote",
                seconds=0.5,
            ),
            event(6, 25, "model_completed", **answered(2, 1, "b")),
            event(7, 60, "run_resumed", by="otto"),
            event(8, 90, "feedback_generated", text="Nothing more can be done."),
            event(9, 100, "task_completed", outcome="partial", warnings=[]),
        ),
        "texts": {},
    }
    fields |= changes
    events = in_order(fields.pop("events"), fields.pop("ledger"))
    return WholeReport(**fields, events=events)
