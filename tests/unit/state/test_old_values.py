"""What another version stored comes back; what is written must fit this version."""

import logging
from datetime import UTC, datetime

import ormsgpack
import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.serde.jsonplus import EXT_PYDANTIC_V2
from pydantic import ValidationError

from replan import SpecialistResult, TaskPlan
from replan.base.values import restored
from replan.plan.model import PlanStep, PlanUpdateType, StepStatus
from replan.state.changed_steps import ChangedSteps
from replan.state.results import (
    CollectedResults,
    ExecutionStatus,
    FeedbackResult,
    TaskComplexity,
    ThinkingResult,
)
from replan.storage.databases.serializer import strict_serializer

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
PLAN = TaskPlan(content="A plan.\n", steps=(PlanStep(id=1, description="One"),))
RESULT = SpecialistResult(specialist_name="a", step_id=1, result=AIMessage("Done.", id="m"))


def with_more(stored):
    """What a version would store that has one more field in every value."""
    if isinstance(stored, dict):
        more = {key: with_more(each) for key, each in stored.items()}
        # Only a value has these; in a mapping of the user's own nothing is left out.
        known = {"steps", "description", "specialist_name", "summary", "feedback", "calls"}
        return {**more, "mood": "good"} if known & more.keys() else more
    return [with_more(each) for each in stored] if isinstance(stored, list | tuple) else stored


def packed(value, fields):
    """Store fields under the name of a value's class, as LangGraph does."""
    kind = type(value)
    named = (kind.__module__, kind.__name__, fields, "model_validate_json")
    inner = strict_serializer().dumps_typed(named)[1]
    return "msgpack", ormsgpack.packb(ormsgpack.Ext(EXT_PYDANTIC_V2, inner))


VALUES = {
    "a plan": PLAN,
    "a result": RESULT,
    "a digest": CollectedResults(results={"1/a": RESULT}, summary="One."),
    "a judgement": FeedbackResult(
        should_continue=True, collected_results=CollectedResults(results={"1/a": RESULT})
    ),
    "a patch": ChangedSteps.between(PLAN, PLAN.with_steps(PlanStep(id=1, description="Two"))),
}


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_a_checkpoint_with_a_field_more_in_every_value_is_restored_without_it(value):
    stored = with_more(value.model_dump())
    assert "mood" in str(stored)
    assert strict_serializer().loads_typed(packed(value, stored)) == value
    assert restored(type(value), with_more(value.model_dump(mode="json"))) == value


@pytest.mark.parametrize(
    ("stored", "name", "found"),
    [
        (PLAN.steps[0], "status", StepStatus.PENDING),
        (RESULT, "status", ExecutionStatus.FAILED),
        (
            ThinkingResult(thought="", complexity=TaskComplexity.SIMPLE, timestamp=NOON),
            "complexity",
            TaskComplexity.COMPLEX,
        ),
        (FeedbackResult(should_continue=True), "suggested_action", None),
        (FeedbackResult(should_continue=True), "plan_update_type", PlanUpdateType.MODIFY_PLAN),
    ],
)
def test_a_name_that_is_unknown_becomes_the_cautious_one_and_is_told(stored, name, found, caplog):
    caplog.set_level(logging.WARNING)
    fields = {**stored.model_dump(mode="json"), name: "dreaming"}
    assert restored(type(stored), fields) == stored.replace(**{name: found})
    assert [(each.name, each.stored) for each in caplog.records] == [
        ("replan.base.values", "'dreaming'")
    ]
    with pytest.raises(ValidationError):
        type(stored).model_validate(fields)
