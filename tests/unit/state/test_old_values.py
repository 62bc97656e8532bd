"""What another version stored comes back; what is written must fit this version."""

import logging
from datetime import UTC, datetime
from typing import Annotated, TypedDict

import ormsgpack
import pytest
from langchain_core.messages import AIMessage
from langgraph.channels import LastValue
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import EXT_PYDANTIC_V2
from langgraph.errors import InvalidUpdateError
from langgraph.graph import START, StateGraph
from langgraph.types import Command, Overwrite, interrupt
from pydantic import ValidationError

from replan import SpecialistResult, TaskPlan, waiting_for
from replan.plan.model import PlanStep, PlanUpdateType, StepStatus
from replan.state.changed_steps import ChangedSteps, PlanChannel, after_writes
from replan.state.channels import Checked, CheckedDelta, appended, latest, merged
from replan.state.limits import RunSettings
from replan.state.questions import Question
from replan.state.results import (
    ActionType,
    CollectedResults,
    ExecutionStatus,
    FeedbackResult,
    TaskComplexity,
    ThinkingResult,
)
from replan.storage.serializer import strict_serializer
from replan.values import restored

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
PLAN = TaskPlan(content="A plan.\n", steps=(PlanStep(id=1, description="One"),))
RESULT = SpecialistResult(specialist_name="a", step_id=1, result=AIMessage("Done.", id="m"))
NEVER_WRITTEN = LastValue(object).value


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


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_a_checkpoint_without_the_fields_that_are_new_is_restored_with_their_defaults(value):
    stored = value.model_dump(exclude_defaults=True)
    assert strict_serializer().loads_typed(packed(value, stored)) == value


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_who_writes_a_field_that_is_unknown_is_refused(value):
    with pytest.raises(ValidationError, match="mood"):
        type(value).model_validate(with_more(value.model_dump()))


def test_what_does_not_fit_at_all_never_becomes_a_value():
    serializer = strict_serializer()
    stored = {**PLAN.model_dump(mode="json"), "steps": [{"id": "first"}]}
    assert serializer.loads_typed(packed(PLAN, stored)) == stored
    channel = keyed(PlanChannel(after_writes, TaskPlan | None), "current_plan")
    with pytest.raises(InvalidUpdateError, match="'current_plan'"):
        channel.from_checkpoint(stored)
    with pytest.raises(ValidationError):
        TaskPlan.model_construct(steps=1)


@pytest.mark.parametrize("stored", [{"x": 1}, {"limits": {"x": 1}}, {"limits": {}, "x": 1, "y": 2}])
def test_what_is_something_else_never_becomes_a_value_of_defaults(stored):
    with pytest.raises(ValidationError):
        restored(RunSettings, stored)


def keyed(channel, key="work"):
    channel.key = key
    return channel.from_checkpoint(NEVER_WRITTEN)


CHANNELS = {
    "a value": (lambda: Checked(SpecialistResult), RESULT),
    "a list": (lambda: CheckedDelta(appended, list[SpecialistResult]), [RESULT]),
    "a mapping": (lambda: CheckedDelta(merged, dict[str, SpecialistResult]), {"1/a": RESULT}),
    "an optional one": (lambda: CheckedDelta(latest, TaskPlan | None), PLAN),
}


def plain(value):
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, list) else value.model_dump()


@pytest.mark.parametrize(("make", "value"), CHANNELS.values(), ids=CHANNELS)
def test_a_channel_restores_what_it_would_refuse_from_a_person(make, value):
    stored = with_more(plain(value))
    assert keyed(make()).from_checkpoint(stored).get() == value
    channel = keyed(make())
    for refused in (stored, Overwrite(stored)):
        with pytest.raises(InvalidUpdateError, match="'work' cannot take this value"):
            channel.update([refused])


@pytest.mark.parametrize(("make", "value"), list(CHANNELS.values())[1:], ids=list(CHANNELS)[1:])
@pytest.mark.parametrize("whole", [lambda stored: stored, Overwrite], ids=["", "whole"])
def test_a_growing_channel_replays_what_it_would_refuse_from_a_person(make, value, whole):
    channel = keyed(make())
    channel.replay_writes([("task", "work", whole(with_more(plain(value))))])
    assert channel.get() == value


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
        ("replan.values", "'dreaming'")
    ]
    with pytest.raises(ValidationError):
        type(stored).model_validate(fields)


def test_names_that_are_known_stay_beside_one_that_is_not():
    steps = [{"id": 1, "description": "", "status": "completed"}, {"id": 2, "description": ""}]
    stored = {"steps": steps, "mood": "good"}
    assert restored(TaskPlan, stored).steps[0].status is StepStatus.COMPLETED
    stored = {"should_continue": True, "suggested_action": "reflect", "mood": "good"}
    assert restored(FeedbackResult, stored).suggested_action is ActionType.REFLECT


QUESTION = Question(key="1/a/1", step_id=1, specialist="a", text="Which?")


@pytest.mark.parametrize("shown", [{"approve": "x", "amount": 5}, {"questions": 5, "problem": ""}])
def test_what_a_foreign_graph_asks_is_not_taken_for_ours(shown):
    (question,) = waiting_for([{"value": shown, "id": "i"}])
    assert (question.key, question.text) == ("i", repr(shown))


class Now(TypedDict, total=False):
    work: Annotated[dict[str, SpecialistResult], CheckedDelta(merged)]
    newer: Annotated[list[SpecialistResult], CheckedDelta(appended)]
    newest: Annotated[int, Checked]
    said: Annotated[str, Checked]


class Then(TypedDict, total=False):
    work: Annotated[dict[str, SpecialistResult], CheckedDelta(merged)]
    older: Annotated[list[SpecialistResult], CheckedDelta(appended)]
    oldest: Annotated[int, Checked]
    said: Annotated[str, Checked]


def asking(schema, writes, saver):
    graph = StateGraph(schema)
    graph.add_node("write", lambda state: writes)
    graph.add_node("ask", lambda state: {"said": interrupt("What?")})
    graph.add_edge(START, "write")
    graph.add_edge("write", "ask")
    return graph.compile(checkpointer=saver)


async def test_keys_that_are_gone_or_new_leave_a_thread_readable():
    saver, config = InMemorySaver(serde=strict_serializer()), {"configurable": {"thread_id": "t"}}
    writes = {"work": {"1/a": RESULT}, "older": [RESULT], "oldest": 3}
    await asking(Then, writes, saver).ainvoke({"oldest": 2}, config)
    graph = asking(Now, {}, saver)
    values = (await graph.aget_state(config)).values
    assert (values["work"], values.get("newer"), "newest" in values) == (
        {"1/a": RESULT},
        [],
        False,
    )
    state = await graph.ainvoke(Command(resume="Go."), config)
    assert (state["said"], state["work"]) == ("Go.", {"1/a": RESULT})
    await graph.aupdate_state(config, {"newer": [RESULT], "newest": 1}, as_node="ask")
    assert (await graph.aget_state(config)).values["newer"] == [RESULT]
    with pytest.raises(InvalidUpdateError, match="mood"):
        await graph.aupdate_state(config, {"work": {"2/a": {"mood": "good"}}}, as_node="ask")


def test_changed_steps_name_only_fields_of_a_plan():
    with pytest.raises(ValidationError, match="a plan has no mood"):
        ChangedSteps(fields={"mood": "good"})
