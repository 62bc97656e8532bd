"""Replies that cannot be read: asked for once more, then a declared fallback, on record."""

import pytest

from replan import Limits, run, stream
from replan.state import TaskComplexity
from replan.testing import Reply, ScriptedModel
from scripts import COMPLETE

CYCLE = """\
---
complexity: complex
---
- [ ] 1. One @researcher (after 2)
- [ ] 2. Two @analyst (after 1)
"""
STRAIGHT = "- [ ] 1. One @researcher\n- [ ] 2. Two @analyst (after 1)\n"


async def test_an_empty_think_reply_is_asked_for_again_with_the_complaint(team):
    with ScriptedModel({"think": ["", "---\ncomplexity: simple\n---\nParis."]}) as model:
        state = (await run(team(model), "Capital?")).state
    assert state["final_answer"].text == "Paris."
    assert state["unreadable_replies"] == []
    again = model.calls[1].messages
    assert [message.type for message in again[-2:]] == ["ai", "human"]
    assert "complexity" in again[-1].text


@pytest.mark.parametrize("second", ["", "<think>hm</think>", Reply("", finish_reason="length")])
async def test_a_first_reply_counts_where_the_second_one_says_nothing(team, second):
    with ScriptedModel({"think": ["Paris.", second]}) as model:
        state = (await run(team(model), "Capital?")).state
    assert (state["final_answer"].text, state["outcome"]) == ("Paris.", "answered")
    assert state["unreadable_replies"][0].fallback == "the text of the reply is the answer"


async def test_a_call_says_that_it_asks_again_and_no_other_one_is_taken_for_it(team):
    async def calls(script):
        with ScriptedModel(script) as model:
            events = [event async for event in stream(team(model), "Do it.")]
        return [(e.node, e.is_reprompt) for e in events if e.type == "model_invoked"]

    steps = {"step 1": "a", "step 2": "b", "feedback": ["Well.", COMPLETE]}
    told = await calls({"think": ["", CYCLE], "plan_creation": STRAIGHT, **steps})
    assert [node for node, again in told if again] == ["think", "plan_creation", "feedback"]
    assert [node for node, again in told if not again].count("think") == 1


async def test_two_empty_think_replies_make_a_simple_request(team):
    with ScriptedModel({"think": ["", " "], "direct_answer": "Paris."}) as model:
        state = (await run(team(model), "Capital?")).state
    assert state["final_answer"].text == "Paris."
    assert state["current_thinking_result"].complexity is TaskComplexity.SIMPLE
    assert [reply.node for reply in state["unreadable_replies"]] == ["think"]


async def test_two_replies_without_front_matter_are_an_answer_and_shown_once(team):
    with ScriptedModel({"think": ["It is Paris.", "I said Paris."]}) as model:
        events = [event async for event in stream(team(model), "Capital?")]
    assert events[-1].answer.text == "I said Paris."
    assert "".join(e.text for e in events if e.type == "answer_token") == "I said Paris."
    assert "reply_parse_failed" in [event.type for event in events]


async def test_a_plan_with_a_cycle_is_shown_to_the_model_once(team):
    complaints = []

    def fixed(messages):
        complaints.append(messages[-1].text)
        return STRAIGHT

    replies = {"think": CYCLE, "plan_creation": fixed, "feedback": COMPLETE}
    with ScriptedModel({**replies, "step 1": "a", "step 2": "b"}) as model:
        state = (await run(team(model), "Do it.")).state
    assert "1 -> 2 -> 1" in complaints[0]
    assert state["outcome"] == "completed"
    assert state["current_plan"].step(1).dependencies == ()


LARGE = "---\ncomplexity: complex\n---\n" + "- [ ] 1. One @researcher\n" * 5_001


async def test_a_plan_that_stays_too_large_becomes_one_step_on_record(team):
    replies = {"think": LARGE, "plan_creation": LARGE, "feedback": COMPLETE}
    with ScriptedModel({**replies, "specialist": "done"}) as model:
        state = (await run(team(model), "Find the policy.")).state
    assert state["outcome"] == "completed"
    assert [step.description for step in state["current_plan"].steps] == ["Find the policy."]
    record = state["unreadable_replies"][0]
    assert (record.node, record.fallback) == ("plan_creation", "a plan of one step")
    assert "at most 5,000 are read" in record.problem


async def test_of_a_plan_that_stays_wrong_what_can_be_read_is_taken(team):
    replies = {"think": CYCLE, "plan_creation": CYCLE, "feedback": COMPLETE}
    with ScriptedModel({**replies, "step 1": "a", "step 2": "b"}) as model:
        state = (await run(team(model), "Do it.")).state
    assert state["outcome"] == "completed"
    record = state["unreadable_replies"][0]
    assert (record.node, record.fallback) == ("plan_creation", "the steps that could be read")


async def test_a_complex_request_without_any_plan_becomes_one_step(team):
    replies = {
        "think": "---\ncomplexity: complex\n---\n",
        "plan_creation": ["I would rather not.", "No."],
        "specialist": "done",
        "feedback": COMPLETE,
    }
    with ScriptedModel(replies) as model:
        state = (await run(team(model), "Find the policy.")).state
    assert [step.description for step in state["current_plan"].steps] == ["Find the policy."]
    assert state["unreadable_replies"][0].fallback == "a plan of one step"


async def test_a_plan_for_which_a_limit_leaves_no_call_becomes_one_step_and_the_limit_is_told(team):
    limits = Limits(max_model_calls=2)
    with ScriptedModel({"think": "---\ncomplexity: complex\n---\n", "*": COMPLETE}) as model:
        state = (await run(team(model, limits=limits, calls="separate"), "Find it.")).state
    assert [step.description for step in state["current_plan"].steps] == ["Find it."]
    record = state["unreadable_replies"][0]
    assert (record.node, record.fallback) == ("plan_creation", "a plan of one step")
    assert "max_model_calls" in record.problem


@pytest.mark.parametrize("reply", ["", "   \n", "<think>hm</think>"])
async def test_feedback_that_stays_empty_is_judged_by_status(team, script, reply):
    replies = {**script, "feedback": [reply, reply], "final_answer": "From the results."}
    with ScriptedModel(replies) as model:
        state = (await run(team(model), "Compare.")).state
    assert state["outcome"] == "completed"
    assert state["current_feedback_result"].by == "rule"
    assert state["final_answer"].text == "From the results."


async def test_an_empty_reply_of_a_specialist_is_tried_again(team, script):
    with ScriptedModel({**script, "step 1": ["", "The EU text."]}) as model:
        state = (await run(team(model), "Compare.")).state
    assert state["current_specialist_results"]["1/researcher"].retry_count == 1


async def test_braces_and_dollars_in_user_text_and_results_are_text(team, script):
    odd = "Use {x} and ${HOME} and $team and </result> %s"
    with ScriptedModel({**script, "step 1": odd}) as model:
        state = (await run(team(model), f"Compare {odd}")).state
    assert state["current_specialist_results"]["1/researcher"].text == odd
    feedback = next(call for call in model.calls if call.node == "feedback")
    assert "${HOME} and $team" in feedback.messages[-1].text
    assert feedback.messages[-1].text.count("</result>") == 3


async def test_thinking_and_front_matter_never_reach_an_answer_of_its_own(team):
    wrapped = "<think>secret</think>\n\nParis."
    with ScriptedModel({"think": "---\ncomplexity: simple\n---\n", "direct_answer": wrapped}) as m:
        events = [event async for event in stream(team(m, calls="separate"), "Capital?")]
    assert events[-1].answer.text == "Paris."
    assert "".join(e.text for e in events if e.type == "answer_token") == "Paris."


async def test_a_reply_that_is_always_empty_ends_as_a_failure_and_says_so(team):
    with ScriptedModel({"think": ["", ""], "direct_answer": ""}) as model:
        state = (await run(team(model), "Capital?")).state
    assert state["outcome"] == "failed"
    assert "empty reply" in state["final_answer"].text


LOST = "---\ncomplexity: complex\n---\n- [ ] 1. One @researcher\n- [x 2. Two @analyst\n"


async def test_a_step_that_cannot_be_read_is_asked_for_once(team):
    steps = {"step 1": "a", "step 2": "b", "feedback": COMPLETE}
    with ScriptedModel({"think": LOST, "plan_creation": STRAIGHT, **steps}) as model:
        result = await run(team(model), "Do it.")
    asked = model.calls[1].messages[-1].text
    assert "'- [x 2. Two @analyst' looks like a step and cannot be read as one" in asked
    assert sorted(result.results) == ["1/researcher", "2/analyst"]
    assert result.state["unreadable_replies"] == []


async def test_a_step_that_still_cannot_be_read_is_left_out_and_on_record(team):
    replies = {"think": LOST, "plan_creation": LOST, "step 1": "a", "feedback": COMPLETE}
    with ScriptedModel(replies) as model:
        result = await run(team(model), "Do it.")
    assert list(result.results) == ["1/researcher"]
    (reply,) = result.state["unreadable_replies"]
    assert "'- [x 2. Two @analyst' looks like a step" in reply.problem
    assert reply.fallback == "the steps that could be read"
    assert any("looks like a step" in warning for warning in result.warnings)
