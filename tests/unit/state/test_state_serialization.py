"""Values of a run as JSON text and back."""

from datetime import UTC, datetime

import pytest
from hypothesis import given, strategies as st
from langchain_core.messages import AIMessage, HumanMessage

from replan import (
    ActionType,
    Artifact,
    CollectedResults,
    DeserializationError,
    ExecutionStatus,
    FeedbackResult,
    PlanStep,
    PlanUpdate,
    PlanUpdateType,
    ReplanError,
    SpecialistResult,
    StepStatus,
    TaskComplexity,
    TaskPlan,
    ThinkingResult,
)
from replan.plan.model import Condition
from replan.state import serialization as pairs
from replan.state.usage import TokenCount

TEXT = st.text(max_size=12)
TIMES = st.datetimes(timezones=st.just(UTC))
FLOATS = st.floats(0, 1e6)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | FLOATS | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)
PARAMETERS = st.dictionaries(TEXT, JSON, max_size=2)
STEPS = st.builds(
    PlanStep,
    id=st.integers(1, 99),
    description=TEXT,
    parameters=PARAMETERS,
    status=st.sampled_from(StepStatus),
    dependencies=st.lists(st.integers(1, 9), max_size=3).map(tuple),
    condition=st.none()
    | st.builds(
        Condition, step=st.integers(1, 9), outcome=st.sampled_from(["completed", "failed"])
    ),
    timeout=st.none() | st.floats(0.01, 1e6),
    created_at=st.none() | TIMES,
)
UPDATES = st.builds(
    PlanUpdate,
    version=st.integers(1, 9),
    update_type=st.sampled_from(PlanUpdateType),
    description=TEXT,
    timestamp=TIMES,
    changes=PARAMETERS,
)
PLANS = st.builds(
    TaskPlan,
    content=TEXT,
    title=TEXT,
    steps=st.lists(STEPS, max_size=3).map(tuple),
    created_at=st.none() | TIMES,
    update_history=st.lists(UPDATES, max_size=2).map(tuple),
)
MESSAGES = st.builds(AIMessage, TEXT, id=st.none() | st.just("m"))
RESULTS = st.builds(
    SpecialistResult,
    specialist_name=TEXT,
    result=st.none() | MESSAGES,
    status=st.sampled_from(ExecutionStatus),
    error=TEXT,
    duration=FLOATS,
    confidence=st.floats(0, 1),
    step_id=st.integers(0, 9),
    artifacts=st.lists(st.builds(Artifact, path=TEXT), max_size=2).map(tuple),
    usage=st.builds(TokenCount, calls=st.integers(0, 9)),
)
COLLECTED = st.builds(
    CollectedResults,
    results=st.dictionaries(TEXT, RESULTS, max_size=2),
    successful_results=st.lists(TEXT, max_size=2).map(tuple),
    summary=TEXT,
)
FEEDBACK = st.builds(
    FeedbackResult,
    should_continue=st.booleans(),
    suggested_action=st.none() | st.sampled_from(ActionType),
    plan_update_type=st.none() | st.sampled_from(PlanUpdateType),
    revised_plan=TEXT,
    final_answer=st.none() | MESSAGES,
    collected_results=st.none() | COLLECTED,
    by=st.sampled_from(["model", "rule"]),
)
THINKING = st.builds(
    ThinkingResult,
    thought=TEXT,
    complexity=st.sampled_from(TaskComplexity),
    original_messages=st.lists(st.builds(HumanMessage, TEXT) | MESSAGES, max_size=2).map(tuple),
    score=st.none() | FLOATS,
    timestamp=TIMES,
)


@given(st.one_of(PLANS, RESULTS, COLLECTED, FEEDBACK, THINKING))
def test_a_value_comes_back_from_its_text_as_it_was(value):
    name = {
        TaskPlan: "task_plan",
        SpecialistResult: "specialist_result",
        CollectedResults: "collected_results",
        FeedbackResult: "feedback_result",
        ThinkingResult: "thinking_result",
    }[type(value)]
    text = getattr(pairs, f"serialize_{name}")(value)
    assert getattr(pairs, f"deserialize_{name}")(text) == value


@pytest.mark.parametrize("text", ["", "no JSON", "[]", "null", "{}", '{"should_continue": "?"}'])
def test_a_text_that_holds_something_else_is_refused_by_the_name_of_the_kind(text):
    with pytest.raises(DeserializationError, match="not a FeedbackResult") as caught:
        pairs.deserialize_feedback_result(text)
    assert caught.value.kind == "FeedbackResult"
    assert isinstance(caught.value, ReplanError)
    assert isinstance(caught.value, ValueError)


def test_a_field_that_is_unknown_is_refused_and_not_dropped():
    text = pairs.serialize_task_plan(TaskPlan(title="T")).replace('"title"', '"headline"')
    with pytest.raises(DeserializationError, match="headline"):
        pairs.deserialize_task_plan(text)


def test_a_text_is_plain_json_with_the_names_of_the_fields():
    at = datetime(2026, 1, 1, 12, tzinfo=UTC)
    thinking = ThinkingResult(thought="Hm.", complexity=TaskComplexity.SIMPLE, timestamp=at)
    text = pairs.serialize_thinking_result(thinking)
    assert '"complexity":"simple"' in text
    assert '"timestamp":"2026-01-01T12:00:00Z"' in text
