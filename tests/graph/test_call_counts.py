"""How many model calls a run takes: the table of the design, exactly."""

import pytest

from replan import Host, run
from replan.testing import ScriptedModel

SIMPLE = "---\ncomplexity: simple\n---\nParis."
JUDGED = "---\ncomplexity: complex\nreasoning: Hard.\n---\n"
DOCUMENT = """\
# Compare two policies

- [ ] 1. Find the EU policy @researcher
- [ ] 2. Find the US policy @researcher
- [ ] 3. Compare both @analyst (after 1, 2)
"""
REVISED = """\
# Compare two policies

- [x] 1. Find the EU policy @researcher
- [x] 2. Find the US policy @researcher
- [x] 3. Compare both @analyst (after 1, 2)
- [ ] 4. Check the comparison @analyst (after 3)
"""
CONTINUE = "---\nverdict: continue\nsuggested_action: update_plan\nupdate: Check it.\n---\n"
COMPLETE = "---\nverdict: complete\n---\nThe answer."


async def test_a_simple_request_takes_one_call(team):
    with ScriptedModel({"think": SIMPLE}) as model:
        state = (await run(team(model), "What is the capital of France?")).state
    assert state["usage"].calls == len(model.calls) == 1
    assert state["outcome"] == "answered"
    assert state["final_answer"].text == "Paris."


async def test_a_plan_of_three_steps_takes_five_calls(team, script):
    with ScriptedModel(script) as model:
        state = (await run(team(model), "Compare the policies.")).state
    assert state["usage"].calls == len(model.calls) == 5
    assert state["outcome"] == "completed"
    assert state["final_answer"].text == "The final answer."


async def test_a_plan_that_is_handed_in_takes_no_call_to_think(team, script):
    replies = {key: reply for key, reply in script.items() if key != "think"}
    with ScriptedModel(replies) as model:
        state = (await run(team(model), {"messages": [("user", "Go.")], "plan": DOCUMENT})).state
    assert state["usage"].calls == len(model.calls) == 4
    assert state["outcome"] == "completed"


async def test_a_revision_takes_one_call_and_its_new_steps(team, script):
    replies = {**script, "feedback": [CONTINUE + REVISED, COMPLETE], "step 4": "It holds."}
    with ScriptedModel(replies) as model:
        state = (await run(team(model), "Compare the policies.")).state
    assert state["usage"].calls == len(model.calls) == 5 + 2
    assert state["current_plan"].completed_steps == (1, 2, 3, 4)
    assert state["current_plan"].version == 2


@pytest.fixture
def separate(script):
    steps = {key: reply for key, reply in script.items() if key.startswith("step")}
    return {
        "think": JUDGED,
        "plan_creation": DOCUMENT,
        **steps,
        "feedback": "---\nverdict: complete\n---\n",
        "final_answer": "The answer.",
    }


async def test_separate_calls_take_two_for_a_simple_request(team):
    replies = {"think": "---\ncomplexity: simple\n---\n", "direct_answer": "Paris."}
    with ScriptedModel(replies) as model:
        state = (await run(team(model, calls="separate"), "What is the capital of France?")).state
    assert len(model.calls) == 2
    assert state["final_answer"].text == "Paris."


async def test_separate_calls_take_four_beside_the_steps(team, separate):
    with ScriptedModel(separate) as model:
        state = (await run(team(model, calls="separate"), "Compare the policies.")).state
    assert state["usage"].calls == len(model.calls) == 3 + 4
    assert state["final_answer"].text == "The answer."


async def test_separate_calls_take_three_beside_the_steps_of_a_plan_handed_in(team, separate):
    del separate["plan_creation"]
    with ScriptedModel(separate) as model:
        graph = team(model, calls="separate")
        await run(graph, {"messages": [("user", "Go.")], "plan": DOCUMENT})
    assert len(model.calls) == 3 + 3


async def test_a_separate_revision_takes_two_calls_and_its_new_steps(team, separate):
    separate["feedback"] = [CONTINUE, separate["feedback"]]
    separate |= {"plan_update": REVISED, "step 4": "It holds."}
    with ScriptedModel(separate) as model:
        await run(team(model, calls="separate"), "Compare the policies.")
    assert len(model.calls) == 3 + 4 + 2 + 1


async def test_a_planning_model_of_its_own_is_asked_in_calls_of_its_own(team, script):
    planner = ScriptedModel({"plan_creation": DOCUMENT})
    with ScriptedModel({**script, "think": JUDGED}) as model, planner:
        host = Host(model=model, planning_model=planner)
        state = (await run(team(model, host=host), "Compare the policies.")).state
    assert len(planner.calls) == 1
    assert state["usage"].calls == 3 + 3
