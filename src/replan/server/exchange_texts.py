"""What exchanges say about the course of a run, what it asks, and how it ended."""

import json

from replan.log.events import types as events
from replan.log.report import RunReport
from replan.state.questions import Question

_HOW = {
    "plan": "Answer `approve`, `reject: WHY`, or with the changed plan",
    "approval": "Answer `approve`, or `reject: WHY`",
}


def shown_text(ask: Question, problem: str = "") -> str:
    """What a form shows that asks a question alone."""
    return "\n\n".join(filter(None, [problem or ask.problem, *ask.remarks, ask.text]))


def progress_line(event: events.Event) -> str:
    """A line about the course of the plan; empty for an event that does not change it."""
    match event:
        case events.PlanCreated():
            return "A plan was made.\n"
        case events.PlanUpdated():
            return "The plan was revised.\n"
        case events.SpecialistInvoked():
            return f"Step {event.step_id} @{event.specialist}: {event.task}\n"
        case events.SpecialistCompleted():
            return f"Step {event.step_id} @{event.specialist}: {event.step_status.value}\n"
        case events.SpecialistRetried():
            return f"Step {event.step_id} @{event.specialist} is done again.\n"
        case _:
            return ""


def reply_text(report: RunReport, problem: str = "") -> str:
    """The answer of a run, its questions, or the reason for no answer."""
    if report.outcome != "waiting":
        text = report.answer or f"There is no answer: {report.reason}."
        return f"{text}\n\n(The last message was not used. {problem})" if problem else text
    asks = report.pending_questions
    problems = dict.fromkeys([problem, *(ask.problem for ask in asks)])
    if len(asks) == 1:
        questions = _question_text(asks[0])
    else:
        questions = "\n\n".join(f"`{ask.key}`: {_question_text(ask)}" for ask in asks)
    # Two conversations may say the same; what is asked in them is never the same.
    return "\n\n".join([*filter(None, problems), questions, f"(run {report.run_id})"])


def _question_text(ask: Question) -> str:
    details = ""
    if ask.kind == "approval" and ask.details is not None:
        details = f"```json\n{json.dumps(ask.details, indent=2, ensure_ascii=False)}\n```"
    how = f"{_HOW[ask.kind]}; by key: `{ask.key}=approve`." if ask.kind in _HOW else ""
    return "\n\n".join(filter(None, [*ask.remarks, ask.text, details, how]))
