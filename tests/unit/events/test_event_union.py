"""Events as one closed union that goes through JSON, and as frozen values."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from pydantic import TypeAdapter, ValidationError

from cases import read_page
from event_pages import KINDS, event_of
from replan import SpecialistResult, Usage
from replan.events import BaseEvent, Event, MessageText
from replan.log.events import types
from replan.state import CollectedResults, FeedbackResult, TaskComplexity, ThinkingResult
from replan.state.usage import TokenCount

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
ANSWER = AIMessage("Paris.", id="r-answer")
RUN = {"seq": 3, "run_id": "r", "round": 1}
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
# What other rooms make; the other kinds stand on the page.
MADE = (
    types.ThinkingCompleted(**RUN, thinking=THINKING),
    types.FeedbackGenerated(**RUN, feedback=FEEDBACK),
    types.SpecialistCompleted(**RUN, step_id=1, specialist="a", result=RESULT),
    types.TaskCompleted(
        **RUN,
        outcome="completed",
        answer=ANSWER,
        usage=Usage().plus(("think", TokenCount(calls=1))),
    ),
)
PAGE = read_page(Path(__file__).with_name("events.yaml"))
EVENTS = {each.type: each for each in (*map(event_of, PAGE), *MADE)}
ADAPTER = TypeAdapter(Event)


@pytest.mark.parametrize("name", KINDS)
def test_an_event_comes_back_from_json_as_it_was(name):
    told = EVENTS[name]
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
    assert set(EVENTS) == set(KINDS)


def test_what_a_model_is_told_and_says_is_no_part_of_an_event_as_json():
    prompt, reply = (
        (MessageText(role="system", text="Be kind."),),
        MessageText(role="ai", text="Yes."),
    )
    called = EVENTS["model_invoked"].replace(prompt=prompt)
    answered = EVENTS["model_completed"].replace(reply=reply)
    assert (called.replace(seq=9).prompt, answered.replace(seq=9).reply) == (prompt, reply)
    for each in (called, answered):
        assert "kind" not in each.model_dump_json() + repr(each) + str(each.model_dump())
        assert "Yes." not in each.model_dump_json() + repr(each)


def test_an_event_of_an_unknown_kind_is_refused():
    with pytest.raises(ValidationError, match="coffee_made"):
        ADAPTER.validate_json('{"type": "coffee_made", "seq": 1, "run_id": "r"}')


def test_an_event_is_frozen_and_knows_only_its_fields():
    told = EVENTS["run_started"]
    with pytest.raises(ValidationError, match="frozen"):
        told.request = "Stop."
    with pytest.raises(ValidationError, match="colour"):
        told.replace(colour="red")
