"""What a specialist is shown, and the key under which its result is kept."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from langchain_core.messages import AIMessage, HumanMessage

from replan import PlanStep, SpecialistResult
from replan.nodes.contexts import context_of, joined_texts, step_key

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
STEP = PlanStep(
    id=2,
    description="Compare",
    brief="Mind 税.",
    parameters={"b": [1], "a": None},
    dependencies=(1,),
)


def test_the_key_of_a_step_is_the_same_in_every_process_and_version():
    assert step_key("run", STEP, "a") == "511a8f4127d8fd508a3110387664930b"


@pytest.mark.parametrize(
    "change",
    [
        {"status": "failed"},
        {"result": "text"},
        {"feedback": "no"},
        {"priority": 5},
        {"retry_count": 2},
        {"max_retries": 9},
        {"timeout": 1},
        {"updated_at": NOON},
        {"parameters": {"a": None, "b": [1]}},
    ],
    ids=str,
)
def test_how_a_step_went_and_how_it_is_run_leaves_its_key_alone(change):
    assert step_key("run", STEP.replace(**change), "a") == step_key("run", STEP, "a")


@pytest.mark.parametrize(
    "change",
    [
        {"id": 3},
        {"description": "Compare all"},
        {"brief": ""},
        {"parameters": {"b": [2], "a": None}},
        {"dependencies": (1, 3)},
    ],
    ids=str,
)
def test_what_a_step_asks_for_changes_its_key(change):
    assert step_key("run", STEP.replace(**change), "a") != step_key("run", STEP, "a")


@given(
    st.lists(st.tuples(st.text(max_size=4), st.integers(1, 9), st.text(max_size=4)), unique=True)
)
def test_no_two_steps_of_whatever_run_and_specialist_share_a_key(asked):
    keys = [step_key(run, STEP.replace(id=number), name) for run, number, name in asked]
    assert len(set(keys)) == len(asked)


def test_a_specialist_sees_its_step_the_conversation_and_what_it_depends_on(services):
    said = [HumanMessage("Trains to Oslo?"), AIMessage("Two."), HumanMessage("And Bergen?")]
    state = {"run_id": "r", "current_round": 3, "messages": said}
    live = services(workspace=Path("work"))
    context = context_of(STEP, "a", {1: "The EU text."}, state, live)
    assert context.task_description == "Compare"
    assert context.parameters == STEP.parameters
    assert [message.text for message in context.messages] == [
        "Trains to Oslo?",
        "Two.",
        "And Bergen?",
    ]
    assert (context.inputs, context.workspace) == ({1: "The EU text."}, "work")
    assert (context.run_id, context.round, context.attempt) == ("r", 3, 1)
    assert context.idempotency_key == step_key("r", STEP, "a")


def test_a_context_can_be_built_before_anything_was_thought(services):
    context = context_of(STEP, "a", {}, {}, services())
    assert (context.messages, context.workspace, context.run_id) == ((), None, "")


def result(name, text):
    return SpecialistResult(specialist_name=name, result=AIMessage(text) if text else None)


@pytest.mark.parametrize(
    ("results", "text"),
    [
        ([], ""),
        ([("a", "one")], "one"),
        ([("a", ""), ("b", "two")], "two"),
        ([("a", "one"), ("b", "two")], "### a\n\none\n\n### b\n\ntwo"),
    ],
)
def test_texts_of_several_specialists_stand_under_their_names(results, text):
    assert joined_texts(result(*each) for each in results) == text
