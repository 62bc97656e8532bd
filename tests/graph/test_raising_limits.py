"""A run that a limit ended goes on under a larger one, and nothing of it is done again."""

import asyncio
import re

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from replan import (
    Host,
    InputError,
    Limits,
    MemoryOptions,
    RunSettings,
    Specialist,
    Team,
    ask_user,
    build_graph,
    open_runtime,
    raise_limits,
    run,
)
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
    first = (await run(graph, {"plan": plan}, config=THREAD)).state
    assert (first["outcome"], first["limit_reached"]) == ("partial", "max_steps")
    await raise_limits(graph, settings=limits(max_steps=2), config=THREAD, by="Ada")
    second = (await run(graph, None, config=THREAD)).state
    assert (second["outcome"], second["limit_reached"]) == ("completed", "")
    assert second["run_id"] == first["run_id"]
    assert second["settings"].limits == Limits(max_steps=2)
    assert second["usage"].calls == len(model.calls)
    (told,) = second["warnings"]
    assert re.fullmatch(
        r"Settings of this run were loosened by Ada, [-\d]{10} \d\d:\d\d UTC: "
        r"max_steps from 1 to 2\.",
        told,
    )
    (asked,) = [call for call in model.calls if call.step == 2]
    assert LONG.strip() in str(asked.messages)


async def test_a_served_graph_raises_no_limit_and_says_where_to_do_it(team, scripted):
    model = scripted({"step 1": "One.", "step 2": "Two.", "feedback": always(JUDGED)})
    specialists, saver = [analyst(model)], InMemorySaver()
    config = Team(host=Host(model=model), specialists=specialists, limits=Limits(max_steps=1))
    served = build_graph(config, checkpointer=saver, served=True)
    plan = "- [ ] 1. One @analyst\n- [ ] 2. Two @analyst (after 1)\n"
    await run(served, {"plan": plan}, config=THREAD)
    before = await served.aget_state(THREAD)
    with pytest.raises(InputError, match=r"max_steps=1 .* served=True.*without `served`"):
        await raise_limits(served, settings=limits(max_steps=2), config=THREAD)
    assert (await served.aget_state(THREAD)).config == before.config
    graph = build_graph(config, checkpointer=saver)
    await raise_limits(graph, settings=limits(max_steps=2), config=THREAD)
    state = (await run(graph, None, config=THREAD)).state
    assert (state["outcome"], state["limit_reached"]) == ("completed", "")


def analyst(model):
    return Specialist(name="analyst", intended_use="Compares.", chat_model=model)


def asker():
    return Specialist(name="asker", intended_use="Asks.", run=lambda context: ask_user("Which?"))


ASKING = "- [ ] 1. Ask @asker\n- [ ] 2. Two @analyst (after 1)\n- [ ] 3. Three @analyst (after 1)\n"


@pytest.mark.parametrize(
    ("context", "outcome", "calls", "loosened"),
    [
        (None, "partial", 2, ""),
        (limits(max_model_calls=3), "completed", 3, "max_model_calls from 2 to 3."),
        # As LangGraph's server hands it on.
        ({"limits": {"max_model_calls": 3}}, "completed", 3, "max_model_calls from 2 to 3."),
        (limits(max_model_calls=1), "partial", 1, ""),
        (limits(max_stalls=7), "partial", 2, "max_stalls from 2 to 7."),
    ],
    ids=["nothing", "more", "more, as JSON", "fewer", "another one"],
)
async def test_what_langgraph_hands_on_as_context_changes_the_limits_of_a_run_that_goes_on(
    team, scripted, context, outcome, calls, loosened
):
    model = scripted({"specialist": always("Found."), "feedback": always(JUDGED)})
    options = {"checkpointer": InMemorySaver(), "limits": Limits(max_model_calls=2)}
    graph = team(model, specialists=[asker(), analyst(model)], **options)
    first = await graph.ainvoke({"plan": ASKING}, THREAD)
    assert "__interrupt__" in first
    state = await graph.ainvoke(Command(resume="Bonn"), THREAD, context=context)
    assert (state["outcome"], state["usage"].calls) == (outcome, calls)
    asked = RunSettings.model_validate(context or {})
    assert state["settings"] == first["settings"].overridden_by(asked)
    told = [each.rpartition(": ")[2] for each in state["warnings"]]
    assert told == ([loosened] if loosened else [])
    assert all("by the context of a call" in each for each in state["warnings"])
    # The round that only asked is given back, whatever else changes.
    assert state["max_rounds"] == 11


async def test_rounds_that_answers_gave_back_stay_when_other_limits_change(team, scripted):
    model = scripted({"specialist": always("Found."), "feedback": always(JUDGED)})
    graph = team(model, specialists=[asker(), analyst(model)], checkpointer=InMemorySaver())
    plan = "- [ ] 1. Ask @asker\n- [ ] 2. Ask again @asker (after 1)\n- [ ] 3. Work @analyst\n"
    await run(graph, {"plan": plan}, config=THREAD, settings=limits(max_rounds=1))
    for answer, new in (("Bonn", limits(max_steps=9)), ("Rome", limits(max_stalls=5))):
        state = (await run(graph, Command(resume=answer), config=THREAD, settings=new)).state
    assert (state["outcome"], state["max_rounds"]) == ("completed", 3)
    assert [each.rpartition(": ")[2] for each in state["warnings"]] == [
        "max_stalls from 2 to 5.",
    ]


async def test_a_round_that_was_cut_off_goes_on_under_the_limits_of_the_context(team, scripted):
    is_at_work, may_end = asyncio.Event(), asyncio.Event()

    async def works(context):
        is_at_work.set()
        await may_end.wait()
        return "done"

    model = scripted({"specialist": always("Found."), "feedback": always(JUDGED)})
    slow = Specialist(name="slow", intended_use="Works.", run=works, effects="pure")
    options = {"checkpointer": InMemorySaver(), "limits": Limits(max_model_calls=2)}
    graph = team(model, specialists=[slow, analyst(model)], **options)
    plan = ASKING.replace("@asker", "@slow")
    cut_off = asyncio.ensure_future(graph.ainvoke({"plan": plan}, THREAD))
    await is_at_work.wait()
    cut_off.cancel()
    await asyncio.wait({cut_off})
    may_end.set()
    state = await graph.ainvoke(None, THREAD, context=limits(max_model_calls=3))
    assert (state["outcome"], state["usage"].calls) == ("completed", 3)
    assert state["settings"].limits == Limits(max_model_calls=3)


async def test_the_answer_that_takes_the_place_of_another_makes_no_summary_due(tmp_path):
    memory = MemoryOptions(mode="summary", history_limit=2, summary_trigger_messages=3)
    model = ScriptedModel({"feedback": always(JUDGED)})
    workers = [Specialist(name="a", intended_use="Works.", run=lambda _: "done", effects="pure")]
    team = Team(Host(model=model), workers, memory=memory, limits=Limits(max_steps=1))
    plan = "- [ ] 1. One @a\n- [ ] 2. Two @a\n"
    async with open_runtime(team, storage=tmp_path / "runs.db") as runtime:
        first = await runtime.run({"plan": plan}, run_id="r")
        more = RunSettings(limits=Limits(max_steps=2))
        second = await runtime.resume("r", settings=more)
        assert (first.outcome, second.outcome) == ("partial", "completed")
        assert [each.type for each in second.state["messages"]] == ["human", "ai"]
        # A summary would cover nothing: both messages are those that models see.
        assert [each.type async for each in runtime.events("r")][-1] == "task_completed"
