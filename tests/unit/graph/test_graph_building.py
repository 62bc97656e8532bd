"""The compiled graph: its drawing, its forks, and which models it asks."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from langgraph.types import Send

from replan import ConfigurationError, Host, Specialist, Team, build_graph
from replan.assembly import models_from_environment
from replan.assembly.team_services import services_of
from replan.graph.branches import (
    complexity_branch,
    reflection_branch,
    specialist_branch,
    specialist_node,
)
from replan.state import FeedbackResult, TaskComplexity, ThinkingResult
from replan.state.results import Assignment
from replan.team.chats import Chats
from replan.testing import ScriptedModel

SNAPSHOT = Path(__file__).parent / "snapshots" / "two_specialists.mmd"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def config(*, host=None, names=("researcher", "analyst"), **options):
    team = [Specialist(name=name, intended_use="Works.", run=lambda c: "done") for name in names]
    host = host or Host(model=ScriptedModel({}))
    return Team(host=host, specialists=team, **options)


def test_the_graph_is_drawn_as_its_snapshot():
    """Write it anew with `REPLAN_TEST_WRITE_SNAPSHOTS=1 make test`, and read the difference."""
    drawn = build_graph(config()).get_graph().draw_mermaid()
    if os.environ.get("REPLAN_TEST_WRITE_SNAPSHOTS"):
        SNAPSHOT.parent.mkdir(exist_ok=True)
        SNAPSHOT.write_text(drawn, "utf-8")
    assert drawn == SNAPSHOT.read_text("utf-8")


def test_each_specialist_is_a_node_that_says_what_it_is_for():
    nodes = build_graph(config(names=("a", "研究员"))).get_graph().nodes
    assert nodes["specialist_研究员"].metadata["intended_use"] == "Works."
    assert specialist_node("a") in nodes


def test_a_graph_has_the_name_of_its_configuration():
    assert build_graph(config(name="team")).name == "team"


THINKING = st.builds(
    ThinkingResult,
    thought=st.just(""),
    complexity=st.sampled_from(TaskComplexity),
    timestamp=st.just(NOON),
)
STATES = st.fixed_dictionaries(
    {},
    optional={
        "current_thinking_result": st.none() | THINKING,
        "current_feedback_result": st.none()
        | st.builds(FeedbackResult, should_continue=st.booleans()),
        "dispatched": st.lists(
            st.builds(Assignment, step_id=st.integers(1, 9), specialist=st.sampled_from("ab"))
        ),
    },
)


@given(STATES)
async def test_every_fork_goes_somewhere_whatever_the_state(state):
    assert await complexity_branch(state) in {"direct_answer", "plan_creation"}
    assert await reflection_branch(state) in {"plan_update", "final_answer"}
    sent = await specialist_branch(state, {})
    if state.get("dispatched"):
        assert [each.node for each in sent] == [
            f"specialist_{assignment.specialist}" for assignment in state["dispatched"]
        ]
        assert all(isinstance(each, Send) for each in sent)
    else:
        assert sent == "result_collector"


@pytest.mark.parametrize(
    ("complexity", "node"),
    [("simple", "direct_answer"), ("moderate", "plan_creation"), ("complex", "plan_creation")],
)
async def test_only_a_simple_request_is_answered_without_a_plan(complexity, node):
    thinking = ThinkingResult(thought="", complexity=complexity, timestamp=NOON)
    assert await complexity_branch({"current_thinking_result": thinking}) == node


def test_a_model_that_is_given_twice_is_one_and_shares_what_is_known_of_its_server():
    model, other = ScriptedModel({}), ScriptedModel({})
    host = Host(model=model, thinking_model=model, feedback_model=other)
    services = services_of(config(host=host), models_from_environment(environment={}))
    models = services.models
    assert models.thinking is models.answering is models.planning
    assert models.feedback is not models.thinking
    assert (services.prompts.merged_planning, services.prompts.merged_answer) == (True, True)
    assert not services.prompts.merged_final_answer


def test_a_name_that_is_given_twice_is_built_once():
    built = []

    class Provider:
        def chat_model(self, name):
            built.append(name)
            return ScriptedModel({})

    chats = Chats(Provider())
    assert chats.of("some:model") is chats.of("some:model")
    assert chats.of("other:model") is not chats.of("some:model")
    assert built == ["some:model", "other:model"]


def test_a_prompt_of_its_own_is_asked_in_a_call_of_its_own():
    model = ScriptedModel({})
    host = Host(model=model, planning_prompt="Plan in verse.")
    prompts = services_of(config(host=host), models_from_environment(environment={})).prompts
    assert not prompts.merged_planning
    assert prompts.merged_final_answer


@pytest.mark.parametrize("name", ["gpt-5", "nobody:gpt"])
def test_a_model_that_cannot_be_built_is_refused_before_anything_runs(name):
    with pytest.raises(ConfigurationError, match=name):
        build_graph(
            config(host=Host(model=name)),
            models=models_from_environment(environment={}),
        )


def test_a_specialist_s_model_without_a_key_is_refused_before_anything_runs():
    team = [Specialist(name="a", intended_use="Works.", chat_model="openai:gpt-5")]
    host = Host(model=ScriptedModel({}))
    with pytest.raises(ConfigurationError, match="OPENAI_API_KEY"):
        build_graph(
            Team(host=host, specialists=team),
            models=models_from_environment(environment={}),
        )


async def test_a_message_by_a_model_of_its_own_answers_where_it_is_configured(scripted):
    thinker = scripted({"think": "---\ncomplexity: simple\n---\n"})
    answerer = scripted({"direct_answer": "Paris."})
    host = Host(model=answerer, thinking_model=thinker)
    state = await build_graph(config(host=host)).ainvoke({"messages": [("user", "Capital?")]})
    assert state["final_answer"].text == "Paris."


def test_the_form_of_a_run_describes_each_setting_and_each_limit():
    schema = build_graph(config()).get_context_jsonschema()
    parts = [schema, *schema["$defs"].values()]
    undescribed = [
        name
        for part in parts
        for name, field in part["properties"].items()
        if not field.get("description")
    ]
    assert undescribed == []
    assert schema["properties"]["approval"]["description"].startswith("Which plans a person must")
