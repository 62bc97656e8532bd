"""The outcome of a turn, as a result."""

from typing import cast

from pydantic import JsonValue

from replan.runs.asked.asks import Ask
from replan.runs.result import RunResult
from replan.state.questions import RESPONSES
from replan.state.session.context import Stage

_DEGRADED = ("partial", "failed")


def stage_of(result: RunResult) -> Stage:
    """The status of a session after a run that has come to rest."""
    if result.outcome == "interrupted":
        return "stopped"
    if result.outcome != "waiting":
        return "done"
    return "question" if all(ask.kind == "question" for ask in result.waiting) else "approval"


def response_of(result: RunResult, problem: str) -> str:
    """The answer or the questions, and why the last message could not be used."""
    if result.outcome != "waiting":
        return result.text
    told = [problem, *(ask.problem for ask in result.waiting)]
    asked = "\n".join(f"- {ask.key}: {ask.text}" for ask in result.waiting)
    if len(result.waiting) == 1:
        asked = "\n\n".join([*result.waiting[0].remarks, result.waiting[0].text])
    return "\n\n".join([*dict.fromkeys(each for each in told if each), asked])


def metadata_of(result: RunResult, problem: str) -> dict[str, JsonValue]:
    """The status of the run, as JSON."""
    failures = failures_of(result)
    plans = [_payload(ask) for ask in result.waiting if ask.kind == "plan"]
    return {
        "outcome": result.outcome,
        "stage": stage_of(result),
        "run_id": result.run_id,
        "usage": cast("JsonValue", result.usage.model_dump(mode="json")),
        "questions": [_payload(ask) for ask in result.waiting if ask.kind != "plan"],
        "approval": plans[0] if plans else None,
        "problem": problem,
        "degraded": result.outcome in _DEGRADED or bool(failures),
        "failures": failures,
        "limit_reached": result.limit_reached,
        "warnings": list(result.warnings),
        "plan": result.document,
    }


def failures_of(result: RunResult) -> list[JsonValue]:
    """The steps that failed, and why."""
    return [
        {"step_id": each.step_id, "specialist": each.specialist_name, "error": each.error}
        for each in result.results.values()
        if each.is_failed
    ]


def _payload(ask: Ask) -> JsonValue:
    """One question, in the usual form."""
    return {
        "key": ask.key,
        "kind": ask.kind,
        "text": ask.text,
        "details": ask.details,
        "fingerprint": ask.fingerprint,
        "response_schema": RESPONSES[ask.kind],
        "problem": ask.problem,
    }
