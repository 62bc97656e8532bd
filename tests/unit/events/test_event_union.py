"""Events as one closed union that goes through JSON, and as frozen values."""

import json
from datetime import UTC, datetime
from typing import get_args

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from pydantic import TypeAdapter, ValidationError

from replan import PlanStep, Question, SpecialistResult, TaskPlan, Usage
from replan.events import types
from replan.events.types import BaseEvent, Event, MessageText, StepEvent
from replan.plan import Rerun
from replan.plan.markdown.overlooked import ParseWarning
from replan.state import CollectedResults, FeedbackResult, TaskComplexity, ThinkingResult
from replan.state.knowledge import Source
from replan.state.usage import TokenCount

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
ANSWER = AIMessage("Paris.", id="r-answer")
PLAN = TaskPlan(title="T", steps=(PlanStep(id=1, description="One", created_at=NOON),))
RESULT = SpecialistResult(
    specialist_name="a", step_id=1, result=ANSWER, usage=TokenCount(calls=1, input_tokens=9)
)
THINKING = ThinkingResult(
    thought="Hm.",
    complexity=TaskComplexity.COMPLEX,
    original_messages=(HumanMessage("Go.", id="1"),),
    timestamp=NOON,
)
FEEDBACK = FeedbackResult(
    should_continue=False,
    final_answer=ANSWER,
    collected_results=CollectedResults(results={"1/a": RESULT}, successful_results=("1/a",)),
)
STEP_CALL = {"call": "0.1", "node": "specialist_a", "step_id": 1, "specialist": "a", "attempt": 2}
TOOL = {"tool": "price", "arguments": {"of": ["gold"]}, "effects": "unsafe"}
FIELDS = {
    "run_started": {"request": "Go."},
    "steps_invalidated": {"reruns": (Rerun(step=2, reason="dependency", causes=(1,)),)},
    "thinking_started": {},
    "thinking_completed": {"thinking": THINKING},
    "plan_created": {"plan": PLAN, "markdown": "- [ ] 1. One\n"},
    "plan_parse_warning": {
        "parse_warnings": (ParseWarning(line=1, kind="name", step=1, text="@b"),)
    },
    "steps_routed": {"assignments": {1: "a"}},
    "plan_updated": {"plan": PLAN, "markdown": "", "changes": {"removed": [2]}, "by": "person"},
    "specialist_invoked": {"task": "One"},
    "specialist_token": {"text": "做"},
    "specialist_retried": {"error": "reset", "attempt": 2},
    "attempt_ended": {"outcome": "cancelled", "error": "stopped"},
    "step_deferred": {"waiting_for": (1, 2)},
    "early_step_dropped": {"task": "One"},
    "specialist_completed": {"result": RESULT},
    "input_requested": {"question": Question(key="1/a/1", step_id=1, specialist="a", text="Why?")},
    "approval_requested": {"question": Question(key="plan", kind="plan", text="- [ ] 1. One\n")},
    "answer_received": {"key": "plan", "kind": "plan", "action": "rejected", "by": "eva"},
    "model_invoked": {"call": "c", "node": "think", "model": "m"},
    "model_completed": {**STEP_CALL, "model": "m", "cost": 0.5, "output_tokens": 7, "seconds": 1.5},
    "knowledge_retrieved": {
        "node": "think",
        "mode": "stuff",
        "sources": (Source(source="a.md", line=1),),
        "skipped": ("b.md is left out: it is not text.",),
        "unused": ("c.md:1 is not used: nothing in it helps.",),
        "failed": ("d.md:1 is left out: ValueError: no.",),
    },
    "tool_invoked": {**STEP_CALL, **TOOL, "approval": "edited"},
    "tool_completed": {**STEP_CALL, **TOOL, "status": "failed", "result": "Error: no"},
    "phase_entered": {"phase": "draft", "path": "messages.1.meta._thread", "step_id": 1},
    "placeholder_shown": {"message_id": "bot_1", "text": "Wait…", "specialist": "writer"},
    "fact_remembered": {"fact_id": "a1", "text": "Eva drinks tea.", "node": "direct_answer"},
    "fact_forgotten": {"fact_id": "a1", "text": "Tea.", "node": "specialist", "step_id": 1},
    "feedback_generated": {"feedback": FEEDBACK},
    "limit_reached": {"limit": "max_rounds", "value": 10},
    "answer_token": {"text": "Par"},
    "answer_reset": {},
    "reply_parse_failed": {"node": "think", "problem": "Empty.", "fallback": "none"},
    "warning": {"text": "Settings were refused."},
    "run_stopped": {"reason": "waiting", "seconds": 2.5},
    "run_resumed": {"by": "eva"},
    "run_steered": {
        "kind": "edit",
        "status": "refused",
        "request": "e1",
        "by": "eva",
        "waiting_for": (2, 3),
        "based_on": 1,
        "version": 2,
        "reason": "The plan was revised.",
    },
    "run_corrected": {"action": "retry", "step_id": 2, "by": "eva", "origin": "r0"},
    "memory_applied": {
        "node": "think",
        "mode": "window",
        "visible": 10,
        "omitted": 3,
        "truncated": 1,
    },
    "memory_summary": {"covered": 20, "model": "m", "calls": 1, "error": "busy"},
    "task_completed": {
        "outcome": "completed",
        "answer": ANSWER,
        "usage": Usage().plus(("think", TokenCount(calls=1))),
    },
}
KINDS = {kind.model_fields["type"].default: kind for kind in get_args(get_args(Event)[0])}
ADAPTER = TypeAdapter(Event)


def event(name):
    step = {"step_id": 1, "specialist": "a"} if issubclass(KINDS[name], StepEvent) else {}
    return KINDS[name](seq=3, run_id="r", round=1, **step, **FIELDS[name])


@pytest.mark.parametrize("name", KINDS)
def test_an_event_comes_back_from_json_as_it_was(name):
    told = event(name)
    read = ADAPTER.validate_json(ADAPTER.dump_json(told))
    assert json.loads(read.written) == json.loads(told.written)
    assert type(read) is KINDS[name]
    assert read.type == name


def test_the_union_holds_every_kind_of_event_that_there_is():
    kinds = [kind for kind in vars(types).values() if isinstance(kind, type)]
    events = {kind for kind in kinds if issubclass(kind, BaseEvent)}
    # The others only give fields to those that are derived from them.
    written = {kind for kind in events if "type" in kind.model_fields}
    assert written == set(KINDS.values())
    assert set(FIELDS) == set(KINDS)


def test_what_a_model_is_told_and_says_is_no_part_of_an_event_as_json():
    prompt, reply = (
        (MessageText(role="system", text="Be kind."),),
        MessageText(role="ai", text="Yes."),
    )
    called = event("model_invoked").replace(prompt=prompt)
    answered = event("model_completed").replace(reply=reply)
    assert (called.replace(seq=9).prompt, answered.replace(seq=9).reply) == (prompt, reply)
    for each in (called, answered):
        assert "kind" not in each.model_dump_json() + repr(each) + str(each.model_dump())
        assert "Yes." not in each.model_dump_json() + repr(each)


def test_an_event_of_an_unknown_kind_is_refused():
    with pytest.raises(ValidationError, match="coffee_made"):
        ADAPTER.validate_json('{"type": "coffee_made", "seq": 1, "run_id": "r"}')


def test_an_event_is_frozen_and_knows_only_its_fields():
    told = event("run_started")
    with pytest.raises(ValidationError, match="frozen"):
        told.request = "Stop."
    with pytest.raises(ValidationError, match="colour"):
        told.replace(colour="red")
