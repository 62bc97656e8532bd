"""What the log says about a run: one line for each event, with its fields, no texts."""

import logging

from replan.log.events.types import (
    AnswerReceived,
    ApprovalRequested,
    BaseEvent,
    FeedbackGenerated,
    InputRequested,
    KnowledgeRetrieved,
    LimitReached,
    ReplyParseFailed,
    RunStarted,
    SpecialistRetried,
    TaskCompleted,
    ThinkingCompleted,
)

logger = logging.getLogger(__name__)

_STEP = ("step_id", "specialist", "attempt")
_LINES: dict[type[BaseEvent], tuple[int, str, tuple[str, ...]]] = {
    RunStarted: (logging.INFO, "run started", ()),
    SpecialistRetried: (logging.INFO, "another attempt follows", _STEP),
    InputRequested: (logging.INFO, "a step waits for a person", _STEP),
    ApprovalRequested: (logging.INFO, "the plan waits for a person", ()),
    AnswerReceived: (logging.INFO, "a person answered", ("key", "kind", "action", "by")),
    LimitReached: (logging.WARNING, "limit reached: %(limit)s", ("limit", "value", "scope")),
    KnowledgeRetrieved: (logging.INFO, "knowledge searched", ("node", "step_id", "specialist")),
    ReplyParseFailed: (logging.WARNING, "reply parse failed: %(node)s", ("node", "fallback")),
    TaskCompleted: (logging.INFO, "run over", ("outcome",)),
}


def log(event: BaseEvent) -> None:
    """Log an event, if it is one that the log reports."""
    level, line, names = _LINES.get(type(event), (logging.NOTSET, "", ()))
    if line and logger.isEnabledFor(level):
        fields = {name: getattr(event, name) for name in ("run_id", "round", *names)}
        logger.log(level, line, fields, extra=fields)
    if contradiction := _contradiction_in(event):
        fields = {"run_id": event.run_id, "round": event.round, "contradiction": contradiction}
        logger.warning("reply contradicts itself", extra=fields)


def _contradiction_in(event: BaseEvent) -> str:
    match event:
        case ThinkingCompleted(thinking=said) | FeedbackGenerated(feedback=said) if said:
            return said.contradiction
        case _:
            return ""
