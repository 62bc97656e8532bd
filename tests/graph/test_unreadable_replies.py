"""Replies that cannot be read: asked for once more, then a declared fallback, on record."""

from replan import run
from replan.testing import ScriptedModel
from scripts import COMPLETE

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


async def test_braces_and_dollars_in_user_text_and_results_are_text(team, script):
    odd = "Use {x} and ${HOME} and $team and </result> %s"
    with ScriptedModel({**script, "step 1": odd}) as model:
        state = (await run(team(model), f"Compare {odd}")).state
    assert state["current_specialist_results"]["1/researcher"].text == odd
    feedback = next(call for call in model.calls if call.node == "feedback")
    assert "${HOME} and $team" in feedback.messages[-1].text
    assert feedback.messages[-1].text.count("</result>") == 3
