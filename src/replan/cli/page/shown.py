"""What a form was made of: an act that carries it is refused once something else is there."""

from collections.abc import Mapping
from typing import cast

from pydantic import JsonValue

from replan.runs.reports import WholeReport
from replan.state.person.answers import leads_to
from replan.state.questions import Question, fingerprint_of

DECISIONS = {
    "approve": "Approve",
    "edit": "Approve with these arguments",
    "reject": "Reject",
    "run again": "Run it again",
    "done": "It is done",
    "fail": "It has failed",
}
"""The words of a page for what can be answered to a question."""


def ask_fingerprint(ask: Question) -> str:
    """Identify exactly what is asked."""
    remarks = list(ask.remarks)
    parts = (ask.key, ask.kind, ask.text, ask.details, remarks, ask.problem, ask.draft)
    return fingerprint_of(*(cast("JsonValue", part) for part in parts), ask.fingerprint)


def verdict_effects(ask: Question) -> Mapping[str, str]:
    """What each answer to a question about work in doubt leads to."""
    return leads_to(ask.details)


def run_fingerprint(run: WholeReport) -> str:
    """Name the status of a run, as far as it matters for steering it."""
    plan = run.plan
    steps = [f"{step.id} {step.status}" for step in plan.steps] if plan else []
    moved = ("run_resumed", "run_corrected", "run_steered", "run_stopped")
    moves = sum(event.type in moved for event in run.events)
    asks = [ask_fingerprint(question) for question in run.pending_questions]
    version = plan.version if plan else 0
    return fingerprint_of(run.run_id, run.outcome, version, moves, list(steps), list(asks))
