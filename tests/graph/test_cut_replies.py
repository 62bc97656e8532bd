"""A reply that was cut off: a plan is asked for again and never run, an answer is marked."""

from replan import stream
from replan.testing import Reply
from scripts import COMPLETE
from two_ways import calls_of

PLAN = "# Two\n\n- [ ] 1. Find it @researcher\n- [ ] 2. Compare it @analyst (after 1)\n"
THINK = f"---\ncomplexity: complex\n---\n{PLAN}"


def cut(text, reason="length"):
    """A reply that ends before it is over."""
    return Reply(text, finish_reason=reason, usage=(100, 50))


async def events_of(graph, given="Do it."):
    return [event async for event in stream(graph, given)]


async def test_a_result_that_stays_cut_off_counts_and_is_marked_wherever_it_is_shown(
    team, on_script
):
    script = {"think": THINK, "step 1": [cut("far too lo"), cut("still too lo")], "step 2": "c"}
    with on_script({**script, "feedback": COMPLETE}) as model:
        events = await events_of(team(model))
    marked = "[Incomplete: the reply was cut off at its length limit.]\n\nstill too lo"
    done = next(e for e in events if e.type == "specialist_completed" and e.step_id == 1)
    assert (done.result.text, done.result.cut) == ("still too lo", "reply_length")
    prompts = {(call.node, call.step): call.messages[-1].text for call in calls_of(model)}
    assert marked in prompts["specialist", 2]
    assert marked in prompts["feedback", None]
    plan = [event for event in events if event.type == "plan_updated"][-1].plan
    assert plan.step(1).result == marked
    assert "> [Incomplete: the reply was cut off at its length limit.]" in plan.content
    # The answer was made of it, and is whole itself.
    assert events[-1].outcome == "completed"
