"""What a form was made of: an act that carries it is refused once something else stands there."""

from typing import cast

from pydantic import JsonValue

from replan.runs.asks import Ask
from replan.runs.whole_run import WholeRun
from replan.state.questions import fingerprint_of


def shown_of(ask: Ask) -> str:
    """Name exactly what is asked."""
    remarks = list(ask.remarks)
    parts = (ask.key, ask.kind, ask.text, ask.details, remarks, ask.problem, ask.draft)
    return fingerprint_of(*(cast("JsonValue", each) for each in parts), ask.fingerprint)


def standing_of(run: WholeRun) -> str:
    """Name how a run stands, as far as it matters to who steers it."""
    plan = run.plan
    steps = [f"{step.id} {step.status}" for step in plan.steps] if plan else []
    moves = sum(e.type in ("run_resumed", "run_corrected", "run_stopped") for e in run.events)
    asks = [shown_of(each) for each in run.waiting]
    version = plan.version if plan else 0
    return fingerprint_of(run.run_id, run.outcome, version, moves, list(steps), list(asks))
