"""How many model calls a run takes: the table of the design, exactly."""

import pytest

from replan import Host, run
from replan.testing import ScriptedModel
from scripts import COMPLETE

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


STEPS = {f"step {number}": "Found." for number in (1, 2, 3)}
PLANNED = {"think": JUDGED + DOCUMENT, **STEPS, "feedback": COMPLETE}
REVISING = {"feedback": [CONTINUE + REVISED, COMPLETE], "step 4": "It holds."}
HANDED_IN = {**STEPS, "feedback": COMPLETE}
JUDGEMENT = "---\nverdict: complete\n---\n"
APART = {**STEPS, "feedback": JUDGEMENT, "final_answer": "The answer."}
PLANNED_APART = {**APART, "think": JUDGED, "plan_creation": DOCUMENT}
REVISING_APART = {
    "feedback": [CONTINUE, JUDGEMENT],
    "plan_update": REVISED,
    "step 4": "It holds.",
}
IS_SIMPLE = "---\ncomplexity: simple\n---\n"


@pytest.mark.parametrize(
    ("calls", "script", "plan", "number"),
    [
        ("merged", {"think": f"{IS_SIMPLE}The answer."}, None, 1),
        ("merged", PLANNED, None, 5),
        ("merged", HANDED_IN, DOCUMENT, 4),
        ("merged", PLANNED | REVISING, None, 5 + 2),
        ("separate", {"think": IS_SIMPLE, "direct_answer": "The answer."}, None, 2),
        ("separate", PLANNED_APART, None, 3 + 4),
        ("separate", {**APART, "think": JUDGED}, DOCUMENT, 3 + 3),
        ("separate", PLANNED_APART | REVISING_APART, None, 3 + 4 + 2 + 1),
    ],
)
async def test_a_run_takes_the_calls_of_the_table(team, calls, script, plan, number):
    given = {"messages": [("user", "Compare the policies.")]} | ({"plan": plan} if plan else {})
    with ScriptedModel(script) as model:
        state = (await run(team(model, calls=calls), given)).state
    assert state["usage"].calls == len(model.calls) == number
    assert state["outcome"] in ("answered", "completed")
    assert state["final_answer"].text == "The answer."
    if "step 4" in script:
        assert state["current_plan"].completed_steps == (1, 2, 3, 4)
        assert state["current_plan"].version == 2


async def test_a_planning_model_of_its_own_is_asked_in_calls_of_its_own(team):
    planner = ScriptedModel({"plan_creation": DOCUMENT})
    with ScriptedModel({**PLANNED, "think": JUDGED}) as model, planner:
        host = Host(model=model, planning_model=planner)
        state = (await run(team(model, host=host), "Compare the policies.")).state
    assert len(planner.calls) == 1
    assert state["usage"].calls == 3 + 3
