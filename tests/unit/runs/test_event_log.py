"""What is kept of the events of a run."""

import asyncio
import json
from datetime import UTC, datetime, timedelta

import pytest
from langchain_core.messages import AIMessage

from replan import open_storage
from replan.errors import StorageError
from replan.events import (
    AnswerToken,
    ApprovalRequested,
    FeedbackGenerated,
    InputRequested,
    ModelCompleted,
    ModelInvoked,
    PlanCreated,
    RunResumed,
    RunStarted,
    RunStopped,
    SpecialistCompleted,
    SpecialistInvoked,
    SpecialistToken,
    StepsInvalidated,
    TaskCompleted,
    ThinkingCompleted,
    ToolCompleted,
    WarningReported,
)
from replan.log.calls import Calls, calls_of
from replan.log.events.emitter import Hooks
from replan.log.fold import Anomalies, counts_in
from replan.log.kept_events import EventTexts, entry_of, event_of, events_of
from replan.log.rows import LoggedEvent
from replan.plan.markdown.document import PlanDocument
from replan.plan.rerun import Rerun
from replan.runs.log.event_log import Durations, EventLog
from replan.runs.log.rest_events import RestEvents
from replan.state.questions import Question
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
NAMES = {"run_id": "run"}
LONG = "long text " * 1_000


class Stored:
    """A log that takes events, or fails."""

    where = "here"

    def __init__(self, error=None):
        self.taken = []
        self.error = error
        self.came = asyncio.Event()

    async def add_events(self, run_id, events, texts=()):
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
        cut="reply_length",
        duration=0.12345,
    )
    feedback = FeedbackResult(feedback="Go on.", should_continue=True, final_answer=AIMessage(LONG))
    step = {"step_id": 1, "specialist": "writer"}
    question = Question(key="1/writer/1", **step, text="Who?", details=LONG, asked_at=NOON)
    return [
        ThinkingCompleted(**NAMES, thinking=thinking),
        PlanCreated(**NAMES, plan=plan, markdown=plan.content),
        ApprovalRequested(
            **NAMES,
            question=Question(
                key="plan",
                kind="plan",
                text=plan.content,
                details={"version": 1, "reason": "It is new.", "changes": ""},
                problem="No other.",
            ),
        ),
        StepsInvalidated(**NAMES, reruns=(Rerun(step=1, reason="edited"),)),
        InputRequested(**NAMES, **step, question=question),
        SpecialistCompleted(**NAMES, **step, result=result),
        FeedbackGenerated(**NAMES, feedback=feedback),
        TaskCompleted(**NAMES, outcome="completed", answer=AIMessage(LONG), usage=Usage()),
    ]


def test_an_event_is_kept_without_what_is_kept_elsewhere():
    kept = [entry_of(event.replace(at=NOON)) for event in events()]
    assert LONG[:50] not in json.dumps(kept)
    for each in kept:
        assert each.pop("at") == "2026-01-01T12:00:00Z"
        assert each.pop("round") == 0
    step = {"step_id": 1, "specialist": "writer", "attempt": 1}
    assert kept == [
        {"type": "thinking_completed", "complexity": "complex", "reasoning": "Two things."},
        {
            "type": "plan_created",
            "version": 1,
            "steps": 1,
            "title": "",
            "outline": [{"id": 1, "description": "Go"}],
        },
        {"type": "approval_requested", "reason": "It is new.", "problem": "No other."},
        {"type": "steps_invalidated", "reruns": [{"step": 1, "reason": "edited", "causes": []}]},
        {"type": "input_requested", **step, "key": "1/writer/1"}
        | {"text": "Who?", "kind": "question", "tool": "", "arguments": {}},
        {
            "type": "specialist_completed",
            **step,
            "status": "failed",
            "seconds": 0.123,
            "error": "No ink.",
            "cut": "reply_length",
            "step_seconds": None,
        },
        {
            "type": "feedback_generated",
            "text": "Go on.",
            "should_continue": True,
            "by": "model",
            "round_seconds": None,
        },
        {"type": "task_completed", "outcome": "completed", "warnings": []}
        | {"run_seconds": None, "stats": {}},
    ]


def test_a_long_text_is_kept_once_beside_the_events_and_found_by_a_reference():
    texts, step = EventTexts(), {"call": "0.0", "node": "specialist_w", "step_id": 1}
    about = {"tool": "find", "effects": "pure", "arguments": {"of": LONG, "most": 3}}
    told = ToolCompleted(**NAMES, at=NOON, **step, **about, status="success", result=LONG)
    kept = entry_of(told, texts)
    assert kept["result"] == f"{LONG[:1000]}…"
    assert kept["arguments"] == {"of": f"{LONG[:100]}…", "most": 3}
    assert entry_of(told, texts) == kept
    whole = {each.ref: each.text for each in texts.take()}
    assert whole[kept["refs"]["result"]] == LONG
    assert json.loads(whole[kept["refs"]["arguments"]]) == about["arguments"]
    assert len(whole) == 2
    assert entry_of(told, texts) == kept
    assert texts.take() == []
    # Where nothing outlives the run, nothing is kept beside it.
    assert entry_of(told)["result"] == LONG


def test_an_event_is_read_as_it_was_kept():
    for seq, event in enumerate(events(), 1):
        entry = json.loads(json.dumps(entry_of(event.replace(at=NOON))))
        read = event_of("r", LoggedEvent(seq=seq, event=entry))
        assert type(read) is type(event)
        assert json.loads(read.written) == {"seq": seq, "run_id": "r", **entry}


def test_an_event_of_another_version_is_read_without_what_is_unknown_or_is_a_warning():
    kept = {"type": "run_stopped", "at": NOON.isoformat(), "round": 1, "reason": "waiting"}
    newer = event_of("r", LoggedEvent(seq=1, event={**kept, "mood": "fine"}))
    assert (newer.type, newer.reason, newer.at) == ("run_stopped", "waiting", NOON)
    for odd in ({"type": "run_flown"}, {"reason": "bored"}):
        told = event_of("r", LoggedEvent(seq=7, event={**kept, **odd}))
        kind = {**kept, **odd}["type"]
        text = f"This version of Replan cannot read the event '{kind}'."
        assert (told.type, told.seq, told.at, told.text) == ("warning", 7, NOON, text)


def test_what_is_timed_counts_all_parts_of_a_run_without_the_time_between_them():
    step = {"step_id": 1, "specialist": "w"}
    begun = step | {"task": "t"}
    parts = [(0, RunStarted, 0, {"request": "x"}), (1, SpecialistInvoked, 1, begun)]
    parts += [(4, RunStopped, 1, {"reason": "interrupted"}), (100, RunResumed, 1, {})]
    parts += [(101, SpecialistInvoked, 1, begun), (103, WarningReported, 1, {"text": "x"})]
    durations, times = Durations(), iter([200, 210, 220, 230, 240])
    for at, kind, turn, fields in parts:
        durations.apply(kind(**NAMES, **fields, round=turn, at=NOON + timedelta(seconds=at)))
    result, feedback = SpecialistResult(), FeedbackResult(should_continue=False)
    over = TaskCompleted(**NAMES, round=1, outcome="completed", answer=AIMessage(""), usage=Usage())
    told = [
        durations.apply(event.replace(at=NOON + timedelta(seconds=next(times))))
        for event in (
            RunResumed(**NAMES, round=1),
            SpecialistInvoked(**NAMES, **step, round=1, task="t"),
            SpecialistCompleted(**NAMES, **step, round=1, result=result),
            FeedbackGenerated(**NAMES, round=1, feedback=feedback),
            over,
        )
    ]
    # In the earlier parts 4 and 3 seconds; of them 3 and 3 since the step and the round began.
    assert told[2].step_seconds == 6 + 20
    assert told[3].round_seconds == 6 + 30
    assert told[4].run_seconds == 7 + 40


def log_of(stored, *heard):
    return EventLog(stored, "run", lambda: NOON, heard)


async def test_events_are_written_behind_the_run_without_tokens_and_then_heard():
    stored, heard = Stored(), []
    log = log_of(stored, lambda event: heard.append((event.type, event.seq)))
    writing = asyncio.create_task(log.write())
    log.take(RunStarted(**NAMES, request="x"))
    log.take(AnswerToken(**NAMES, text="a"))
    log.take(SpecialistToken(**NAMES, step_id=1, specialist="writer", text="a"))
    log.take(RunStarted(**NAMES, request="y"))
    assert heard == []
    await stored.came.wait()
    assert stored.taken == [("run", ["run_started", "run_started"])]
    log.take(RunStarted(**NAMES, request="z"))
    log.end()
    await writing
    assert stored.taken[1:] == [("run", ["run_started"])]
    started = [("run_started", seq) for seq in (1, 2, 3)]
    tokens = [("answer_token", None), ("specialist_token", None)]
    assert heard == [started[0], *tokens, *started[1:]]


async def test_that_a_run_goes_on_is_dated_before_its_attempts():
    moments = iter(NOON + timedelta(seconds=each) for each in range(9))
    stored, heard = Stored(), []
    log = EventLog(stored, "run", lambda: next(moments), [heard.append])
    hooks = Hooks().of("run")
    async with RestEvents(log, hooks, "run", goes_on=True, by="otto") as rests:
        began = log.now()
        rests.take(RunStarted(**NAMES, request="x"))
    log.end()
    await log.write()
    resumed, first = heard
    assert resumed.type == "run_resumed"
    assert resumed.at < began < first.at


async def test_what_a_storage_did_not_take_is_an_error_and_stays_to_be_written():
    stored, heard = Stored(StorageError("runs.db", "It is full.", "Free some space.")), []
    log = log_of(stored, heard.append)
    log.take(RunStarted(**NAMES, request="x"))
    with pytest.raises(StorageError):
        await log.write()
    assert heard == []
    stored.error = None
    await log.flush()
    assert [event.request for event in heard] == ["x"]


class SlowlyStored(Stored):
    """A log that takes events as soon as it is let."""

    def __init__(self):
        super().__init__()
        self.is_let = asyncio.Event()

    async def add_events(self, run_id, events, texts=()):
        self.came.set()
        await self.is_let.wait()
        return await super().add_events(run_id, events, texts)


async def test_what_comes_last_is_written_though_a_batch_is_on_its_way():
    stored = SlowlyStored()
    log = log_of(stored)
    writing = asyncio.ensure_future(log.write())
    log.take(RunStarted(**NAMES, request="x"))
    await stored.came.wait()
    log.take(TaskCompleted(**NAMES, outcome="failed", answer=AIMessage("No."), usage=Usage()))
    log.end()
    stored.is_let.set()
    await writing
    assert [types for _, types in stored.taken] == [["run_started"], ["task_completed"]]


async def test_the_end_has_the_counts_of_all_parts_of_a_run():
    async with open_storage(":memory:") as storage:
        stored = storage.log
        about = {"node": "think", "model": "m"}
        log = log_of(stored)
        log.take(ModelInvoked(**NAMES, **about, call="1"))
        log.take(ModelCompleted(**NAMES, **about, call="1", seconds=1, cost=0.5, input_tokens=3))
        await log.flush()
        log = log_of(stored)
        await log.recall()
        log.take(ModelInvoked(**NAMES, **about, call="2", is_reprompt=True))
        log.take(TaskCompleted(**NAMES, outcome="failed", answer=AIMessage("No."), usage=Usage()))
        await log.flush()
        events = events_of("run", await stored.events("run"))
    remarks, calls = counts_in(events[-1:])
    assert remarks == Anomalies(unusable=1)
    assert (
        calls
        == calls_of(events)
        == Calls(calls=1, unfinished_calls=1, known_cost=0.5, input_tokens=3, seconds=1)
    )
