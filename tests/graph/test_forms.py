"""Every property of what Studio draws as a form says what it is."""

import re
from typing import get_args

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import create_model

from forms import unnamed_in
from replan import Host, Specialist, Team, ask_user, build_graph
from replan.state.questions import Question, QuestionKind
from replan.testing import ScriptedModel

FORMS = ["input_schema", "output_schema", "state_schema", "context_schema"]


def asking_graph():
    team = [Specialist("asker", "Asks.", run=lambda context: ask_user("Which colour?"))]
    return build_graph(Team(Host(ScriptedModel({})), team), checkpointer=InMemorySaver())


@pytest.fixture(scope="module")
def schemas():
    """The forms as LangGraph's server makes them; that of the state, of the types of channels."""
    graph = asking_graph()
    keys = {name: (graph.channels[name].UpdateType, None) for name in graph.stream_channels_list}
    return {
        "input_schema": graph.get_input_jsonschema(),
        "output_schema": graph.get_output_jsonschema(),
        "context_schema": graph.get_context_jsonschema(),
        "state_schema": create_model("State", **keys).model_json_schema(),
    }


@pytest.mark.parametrize("form", FORMS)
def test_every_property_has_a_title_and_a_description(schemas, form):
    assert unnamed_in(schemas[form]) == []


def test_the_state_is_described_in_full_sentences(schemas):
    told = schemas["state_schema"]["properties"]
    assert set(told) >= {"messages", "plan", "current_plan", "questions", "usage"}
    odd = [name for name, each in told.items() if not re.match(r"[A-Z].*\.$", each["description"])]
    assert odd == []
    assert told["plan"]["description"] == "The plan document that was handed in."
    asked = schemas["input_schema"]["properties"]["plan"]["description"]
    assert asked == "A plan document (Markdown) to run as it is."


async def test_what_answers_a_question_says_what_it_is():
    graph, thread = asking_graph(), {"configurable": {"thread_id": "t"}}
    state = await graph.ainvoke({"plan": "- [ ] 1. Ask @asker\n"}, thread)
    (interrupt,) = state["__interrupt__"]
    by_key = interrupt.response_schema["anyOf"][1]["properties"]
    assert by_key["1/asker/1"]["description"] == "Which colour?"
    kinds = [Question(key="1/a/1", text="?", kind=each) for each in get_args(QuestionKind)]
    schemas = [interrupt.response_schema, *(each.response_schema for each in kinds)]
    described = [each for schema in schemas for each in _properties(schema)]
    assert [each for each in described if not each.get("description")] == []


def _properties(schema):
    found = list(schema.get("properties", {}).values())
    inner = [*found, *schema.get("anyOf", []), *filter(None, [schema.get("items")])]
    return [*found, *(each for part in inner for each in _properties(part))]
