"""The gate before a plan beside what its page shows: other teams, other processes, no saver."""

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from replan import (
    Host,
    Limits,
    Specialist,
    Team,
    build_graph,
    open_storage,
    run,
    stream,
    waiting_for,
)
from replan.state.questions import fingerprint_of
from replan.testing import ScriptedModel, always
from scripts import COMPLETE, THREAD
from states import said

PLAN = "# The work\n\n- [ ] 1. One @a\n- [ ] 2. Two @b (after 1)"
THINK = f"---\ncomplexity: complex\nreasoning: Two parts.\n---\n{PLAN}"


def graph_of(model, checkpointer=None, **options):
    ran = []

    def does(context):
        ran.append((context.plan_step.id, context.task_description))
        return "done"

    team = [Specialist(name=name, intended_use="Works.", run=does) for name in ("a", "b")]
    config = Team(host=Host(model=model), specialists=team, approval="plan", **options)
    return build_graph(config, checkpointer=checkpointer), ran


async def decide(graph, decision):
    return (await run(graph, await said(graph, decision, THREAD), config=THREAD)).state


def office_of(model, *names, ran):
    def work(context):
        ran.append(context)
        return "done"

    team = [Specialist(name=name, intended_use="Works.", run=work) for name in names]
    host = Host(model=model)
    return Team(host=host, specialists=team, approval="always")


@pytest.mark.parametrize(
    ("newest", "outcome", "done"),
    [
        ("reject", "rejected", []),
        ("approve", "completed", ["Look"]),
        ("- [ ] 1. Look twice @worker\n", "completed", ["Look twice"]),
    ],
)
async def test_a_refused_edit_does_not_run_after_a_newer_word(newest, outcome, done):
    """The team has changed in between, so that what was refused could be taken."""
    ran, saver = [], InMemorySaver()
    with ScriptedModel({"feedback": always(COMPLETE)}) as model:
        small = build_graph(office_of(model, "worker", ran=ran), checkpointer=saver)
        await run(small, {"plan": "- [ ] 1. Look @worker\n"}, config=THREAD)
        refused = await decide(small, "- [ ] 1. Delete everything @cleaner\n")
        assert "names @cleaner, whom the team does not have" in waiting_for(refused)[0].problem
        team = office_of(model, "worker", "cleaner", ran=ran)
        large = build_graph(team, checkpointer=saver)
        state = await decide(large, newest)
    assert state["outcome"] == outcome
    assert [context.task_description for context in ran] == done


async def test_a_refused_edit_does_not_run_without_a_newer_word(tmp_path):
    ran, edit = [], "- [ ] 1. Delete everything @cleaner\n"
    with ScriptedModel({"feedback": always(COMPLETE)}) as model:
        async with open_storage(tmp_path / "runs.db") as storage:
            small = build_graph(office_of(model, "worker", ran=ran), storage=storage)
            await run(small, {"plan": "- [ ] 1. Look @worker\n"}, config=THREAD)
            await decide(small, edit)
        async with open_storage(tmp_path / "runs.db") as storage:
            large = build_graph(office_of(model, "worker", "cleaner", ran=ran), storage=storage)
            state = (await run(large, None, config=THREAD)).state
            assert "names @cleaner, whom the team does not have" in waiting_for(state)[0].problem
            assert waiting_for(state)[0].draft == edit
            assert ran == []
            state = await decide(large, edit)
    assert [context.task_description for context in ran] == ["Delete everything"]


async def test_the_events_tell_of_the_request_once_and_of_a_person_s_change():
    with ScriptedModel({"think": THINK, "feedback": COMPLETE}) as model:
        graph, _ = graph_of(model, InMemorySaver())
        first = [event async for event in stream(graph, "Do it.", config=THREAD)]
        resume = await said(graph, PLAN.replace("Two", "Second"), THREAD)
        second = [event async for event in stream(graph, resume, config=THREAD)]
    assert first[-1].type == "approval_requested"
    asked = first[-1].question
    about = fingerprint_of("plan", 1, PLAN)
    assert (asked.key, asked.kind, asked.text, asked.fingerprint) == ("plan", "plan", PLAN, about)
    assert asked.details == {"version": 1, "reason": "Two parts.", "changes": ""}
    assert (second[0].type, second[0].action) == ("answer_received", "edited")
    assert (second[1].type, second[1].by) == ("plan_updated", "person")


async def test_without_a_checkpointer_the_run_ends_with_the_plan_which_can_be_handed_in():
    with ScriptedModel({"think": THINK, "feedback": COMPLETE}) as model:
        graph, ran = graph_of(model)
        state = (await run(graph, "Do it.")).state
        assert state["outcome"] == "waiting"
        (shown,) = waiting_for(state)
        state = (await run(graph, {"messages": state["messages"], "plan": shown.text})).state
    assert (state["outcome"], len(ran)) == ("completed", 2)


async def test_a_gate_needs_a_plan_that_waits():
    with ScriptedModel({"think": THINK, "feedback": always(COMPLETE)}) as model:
        graph, _ = graph_of(model, InMemorySaver(), limits=Limits(max_rounds=1))
        await run(graph, "Do it.", config=THREAD)
        await graph.aupdate_state(THREAD, {"approval": None}, as_node="plan_creation")
        state = (await run(graph, None, config=THREAD)).state
    # Whoever edits the request away in Studio has let the plan run.
    assert state["outcome"] == "completed"
