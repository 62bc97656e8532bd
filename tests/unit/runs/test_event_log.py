"""What is kept of the events of a run."""

import asyncio
import json
from datetime import UTC, datetime

import pytest
from langchain_core.messages import AIMessage

from replan.errors import StorageError
from replan.events.types import (
    AnswerToken,
    ApprovalRequested,
    FeedbackGenerated,
    InputRequested,
    PlanCreated,
    RunStarted,
    SpecialistCompleted,
    SpecialistToken,
    StepsReopened,
    TaskCompleted,
    ThinkingCompleted,
)
from replan.plan.markdown.document import PlanDocument
from replan.plan.rerun import Rerun
from replan.runs.event_log import EventLog, recorded
from replan.state.questions import Approval, Question
from replan.state.results import (
    ActionType,
    ExecutionStatus,
    FeedbackResult,
    SpecialistResult,
    TaskComplexity,
    ThinkingResult,
)
from replan.state.usage import Usage

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
NAMES = {"seq": 1, "run_id": "run"}
LONG = "long text " * 1_000


class Book:
    """Takes events, or fails."""

    def __init__(self, error=None):
        self.taken = []
        self.error = error
        self.came = asyncio.Event()

    async def add_events(self, run_id, events):
        if self.error is not None:
            raise self.error
        first = sum(len(types) for _, types in self.taken) + 1
        self.taken.append((run_id, [event["type"] for event in events]))
        self.came.set()
        return first


def events():
    plan = PlanDocument.parse(f"- [ ] 1. Go\n\n  {LONG}\n").plan
    thinking = ThinkingResult(
        thought=LONG,
        complexity=TaskComplexity.COMPLEX,
        reasoning="Two things.",
        next_action=ActionType.CREATE_PLAN,
        original_messages=(),
        timestamp=NOON,
    )
    result = SpecialistResult(
        step_id=1,
        specialist_name="writer",
        status=ExecutionStatus.FAILED,
        result=AIMessage(LONG),
        error="No ink.",
        duration=0.12345,
    )
    feedback = FeedbackResult(feedback="Go on.", should_continue=True, final_answer=AIMessage(LONG))
    step = {"step_id": 1, "specialist": "writer"}
    question = Question(key="1/writer/1", **step, text="Who?", details=LONG, asked_at=NOON)
    return [
        ThinkingCompleted(**NAMES, thinking=thinking),
        PlanCreated(**NAMES, plan=plan, markdown=plan.content),
        ApprovalRequested(**NAMES, approval=Approval(approve=plan.content, reason="It is new.")),
        StepsReopened(**NAMES, reruns=(Rerun(step=1, why="edited"),)),
        InputRequested(**NAMES, **step, question=question),
        SpecialistCompleted(**NAMES, **step, result=result),
        FeedbackGenerated(**NAMES, feedback=feedback),
        TaskCompleted(**NAMES, outcome="completed", answer=AIMessage(LONG), usage=Usage()),
    ]


def test_an_event_is_kept_without_what_is_kept_elsewhere():
    kept = [recorded(event.replace(at=NOON)) for event in events()]
    assert LONG[:50] not in json.dumps(kept)
    for each in kept:
        assert each.pop("at") == "2026-01-01T12:00:00.000+00:00"
        assert each.pop("round") == 0
    step = {"step_id": 1, "specialist": "writer", "attempt": 1}
    assert kept == [
        {"type": "thinking_completed", "complexity": "complex", "reasoning": "Two things."},
        {"type": "plan_created", "version": 1, "steps": 1},
        {"type": "approval_requested", "reason": "It is new."},
        {"type": "steps_reopened", "reruns": ["1 (edited)"]},
        {"type": "input_requested", **step, "key": "1/writer/1", "question": "Who?"},
        {
            "type": "specialist_completed",
            **step,
            "status": "failed",
            "seconds": 0.123,
            "error": "No ink.",
        },
        {"type": "feedback_generated", "feedback": "Go on.", "should_continue": True},
        {"type": "task_completed", "outcome": "completed", "warnings": []},
    ]


def log_of(book, heard=None):
    return EventLog(book, "run", lambda: NOON, heard)


async def test_events_are_written_behind_the_run_without_tokens_and_then_heard():
    book, heard = Book(), []
    log = log_of(book, lambda event: heard.append((event.type, event.seq)))
    writing = asyncio.create_task(log.write())
    log.take(RunStarted(**NAMES, request="x"))
    log.take(AnswerToken(**NAMES, text="a"))
    log.take(SpecialistToken(**NAMES, step_id=1, specialist="writer", text="a"))
    log.take(RunStarted(**NAMES, request="y"))
    assert heard == []
    await book.came.wait()
    assert book.taken == [("run", ["run_started", "run_started"])]
    log.take(RunStarted(**NAMES, request="z"))
    log.end()
    await writing
    assert book.taken[1:] == [("run", ["run_started"])]
    started = [("run_started", seq) for seq in (1, 2, 3)]
    tokens = [("answer_token", None), ("specialist_token", None)]
    assert heard == [started[0], *tokens, *started[1:]]


async def test_what_a_storage_did_not_take_is_an_error_and_stays_to_be_written():
    book, heard = Book(StorageError("runs.db", "It is full.", "Free some space.")), []
    log = log_of(book, heard.append)
    log.take(RunStarted(**NAMES, request="x"))
    with pytest.raises(StorageError):
        await log.write()
    assert heard == []
    book.error = None
    await log.flush()
    assert [event.request for event in heard] == ["x"]
