"""A run that a limit ended goes on under a larger one, and nothing of it is done again."""

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from replan import Host, InputError, Limits, RunSettings, raise_limits, run
from replan.testing import ScriptedModel
from replan.testing.replies import always

THREAD = {"configurable": {"thread_id": "1"}}
JUDGED = "---\nverdict: complete\nfeedback: So far.\n---\nThat is all."
LONG = "A long text. " * 500


def limits(**values):
    return RunSettings(limits=Limits(**values))


async def test_a_limited_run_goes_on_with_its_whole_results(team, scripted):
    model = scripted(
        {
            "step 1": LONG,
            "step 2": "Two.",
            "feedback": always(JUDGED),
        }
    )
    graph = team(model, checkpointer=InMemorySaver(), limits=Limits(max_steps=1))
    plan = "- [ ] 1. One @researcher\n- [ ] 2. Two @analyst (after 1)\n"
    first = await run(graph, {"plan": plan}, config=THREAD)
    assert (first["outcome"], first["limit_reached"]) == ("partial", "max_steps")
    await raise_limits(graph, settings=limits(max_steps=2), config=THREAD)
    second = await run(graph, None, config=THREAD)
    assert (second["outcome"], second["limit_reached"]) == ("completed", "")
    assert second["run_id"] == first["run_id"]
    assert second["settings"].limits == Limits(max_steps=2)
    assert second["usage"].calls == len(model.calls)
    (asked,) = [call for call in model.calls if call.step == 2]
    assert LONG.strip() in str(asked.messages)


async def test_a_direct_answer_that_a_limit_took_is_given_then(team, scripted):
    model = scripted({"think": "---\ncomplexity: simple\n---\n", "direct_answer": "Yes."})
    other = scripted({})
    host = Host(tool_calling_model=model, feedback_model=other)
    graph = team(model, host=host, checkpointer=InMemorySaver(), limits=Limits(max_model_calls=1))
    first = await run(graph, "Is it?", config=THREAD)
    assert (first["outcome"], first["limit_reached"]) == ("failed", "max_model_calls")
    await raise_limits(graph, settings=limits(max_model_calls=2), config=THREAD)
    second = await run(graph, None, config=THREAD)
    assert (second["outcome"], second["final_answer"].text) == ("answered", "Yes.")


async def test_only_a_larger_limit_lets_it_go_on(team, scripted):
    model = scripted({"step 1": "One.", "feedback": always(JUDGED)})
    graph = team(model, checkpointer=InMemorySaver(), limits=Limits(max_steps=1))
    plan = "- [ ] 1. One @researcher\n- [ ] 2. Two @analyst (after 1)\n"
    await run(graph, {"plan": plan}, config=THREAD)
    for settings in (RunSettings(), limits(max_steps=1), limits(max_rounds=99)):
        with pytest.raises(InputError, match=r"max_steps=1 ended this run\. Raise it"):
            await raise_limits(graph, settings=settings, config=THREAD)


async def test_a_run_that_no_limit_ended_takes_no_larger_one(team, script):
    graph = team(ScriptedModel(script), checkpointer=InMemorySaver())
    await run(graph, "Compare.", config=THREAD)
    with pytest.raises(InputError, match="No limit ended this run"):
        await raise_limits(graph, settings=limits(max_steps=200), config=THREAD)
