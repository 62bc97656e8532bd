"""Events as pages of YAML have them, in lists by their names.

An event is its kind, with its fields below it: `- answer_token: {text: Par}`. A field that holds a
value of ours has the fields of this value, and an answer its text.
"""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

from langchain_core.messages import AIMessage

from cases import read_page
from replan.events import BaseEvent, Event, StepEvent
from replan.plan import TaskPlan
from replan.state import FeedbackResult, ThinkingResult
from replan.state.results import SpecialistResult

KINDS: dict[str, type[BaseEvent]] = {
    kind.model_fields["type"].default: kind for kind in get_args(get_args(Event)[0])
}
_NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
_MADE: dict[str, Any] = {
    "answer": AIMessage,
    "feedback": lambda fields: FeedbackResult(**fields),
    "plan": lambda fields: TaskPlan(**fields),
    # That of a tool is a text.
    "result": lambda fields: fields if isinstance(fields, str) else SpecialistResult(**fields),
    "thinking": lambda fields: ThinkingResult(**{"thought": "", "timestamp": _NOON, **fields}),
}


def events_on(page: Path, **step: Any) -> dict[str, list[BaseEvent]]:
    """The events on a page; those of steps are of this one, unless they say another."""
    told = read_page(page)
    return {name: [event_of(each, **step) for each in events] for name, events in told.items()}


def event_of(told: dict[str, Any], **step: Any) -> BaseEvent:
    """The event that a page has."""
    ((name, fields),) = told.items()
    kind = KINDS[name]
    where = {"round": 1, "step_id": 1, "specialist": "a", **step}
    given = {
        key: _MADE[key](value) if key in _MADE else value for key, value in (fields or {}).items()
    }
    return kind(
        **{"seq": 1, "run_id": "r"} | (where if issubclass(kind, StepEvent) else {}) | given
    )
