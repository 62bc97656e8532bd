"""All that a run told and a person may not expect stands in its state and its last event."""

import asyncio

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from replan import (
    Host,
    Limits,
    MultiAgentCallback,
    RunSettings,
    Specialist,
    Team,
    ask_user,
    build_graph,
    raise_limits,
    run,
    stream,
)
from replan.testing import ScriptedModel, always
from scripts import COMPLETE


def graph_of(script, checkpointer=None, **options):
    team = [
        Specialist(name="payer", intended_use="Pays invoices.", run=lambda context: "paid"),
        Specialist(name="mailer", intended_use="Sends e-mail.", run=lambda context: "sent"),
    ]
    config = Team(host=Host(model=ScriptedModel(script)), specialists=team, **options)
    return build_graph(config, checkpointer=checkpointer)


async def test_the_next_run_of_a_thread_begins_without_warnings():
    graph = graph_of({"feedback": always(COMPLETE)}, InMemorySaver())
    first = (await run(graph, {"plan": "- [ ] 1. Pay invoices\n"}, config=THREAD)).state
    second = (await run(graph, {"plan": "- [ ] 1. Pay invoices @payer\n"}, config=THREAD)).state
    assert len(first["warnings"]) == 1
    assert second["warnings"] == []


THREAD = {"configurable": {"thread_id": "1"}}
ASKING = "- [ ] 1. Ask @asker\n- [ ] 2. Pay @payer (after 1)\n- [ ] 3. Pay @payer (after 1)\n"


class Told(MultiAgentCallback):
    """Keeps the warnings that are told by events."""

    hears_tokens = False

    def __init__(self):
        self.texts = []

    async def on_event(self, event):
        if event.type == "warning":
            self.texts.append(event.text)


def asking_graph(told, model, **options):
    team = [
        Specialist("asker", "Asks.", run=lambda context: ask_user("Which?")),
        Specialist("payer", "Pays.", run=lambda context: "paid"),
    ]
    config = Team(Host(model), team, callbacks=[told], limits=Limits(max_steps=2), **options)
    return build_graph(config, checkpointer=InMemorySaver())


def looser(**values):
    return RunSettings(limits=Limits(**values))


@pytest.mark.parametrize("door", ["run", "ainvoke", "raise_limits"])
async def test_loosened_settings_are_told_by_one_event(door):
    told, new = Told(), looser(max_steps=3)
    graph = asking_graph(told, ScriptedModel({"feedback": always(COMPLETE)}))
    state = (await run(graph, {"plan": ASKING}, config=THREAD)).state
    assert told.texts == []
    answer = Command(resume="Bonn")
    if door == "run":
        state = (await run(graph, answer, config=THREAD, settings=new)).state
    elif door == "ainvoke":
        state = await graph.ainvoke(answer, THREAD, context=new)
    else:
        await run(graph, answer, config=THREAD)
        await raise_limits(graph, settings=new, config=THREAD, by="Ada")
        state = (await run(graph, None, config=THREAD)).state
    assert state["outcome"] == "completed"
    assert told.texts == state["warnings"]
    assert len(told.texts) == 1


async def test_a_node_that_begins_again_does_not_tell_loosened_settings_again():
    told, arrived = Told(), asyncio.Event()

    async def hangs(_):
        arrived.set()
        await asyncio.Event().wait()

    graph = asking_graph(told, ScriptedModel({"feedback": [hangs, COMPLETE]}))
    await graph.ainvoke({"plan": ASKING}, THREAD)
    await graph.ainvoke(Command(resume="Bonn"), THREAD, interrupt_before=["feedback"])
    new = {"context": looser(max_steps=3, max_stalls=7)}
    cut_off = asyncio.ensure_future(graph.ainvoke(None, THREAD, **new))
    await arrived.wait()
    cut_off.cancel()
    await asyncio.wait({cut_off})
    assert len(told.texts) == 1
    state = await graph.ainvoke(None, THREAD, **new)
    assert told.texts == state["warnings"]


def asks_by_tool(context):
    return ask_user("Which year?")


def asks_by_graph(context):
    return interrupt("Which year?")


@pytest.mark.parametrize("kept", [False, True], ids=["not kept", "kept"])
@pytest.mark.parametrize("kind", ["plan", "question", "interrupt"])
async def test_a_run_that_waits_and_that_nothing_can_answer_says_so(kind, kept):
    work = asks_by_graph if kind == "interrupt" else asks_by_tool
    team = Team(
        host=Host(model=ScriptedModel({"feedback": always(COMPLETE)})),
        specialists=[Specialist(name="clerk", intended_use="Works.", run=work)],
    )
    graph = build_graph(team, checkpointer=InMemorySaver() if kept else None)
    settings = RunSettings(approval="always") if kind == "plan" else None
    given = {"plan": "- [ ] 1. Look it up @clerk\n"}
    threads = [{"configurable": {"thread_id": name}} if kept else None for name in "ab"]
    result = await run(graph, given, settings=settings, config=threads[0])
    events = [e async for e in stream(graph, given, settings=settings, config=threads[1])]
    assert result.outcome == "waiting"
    warned = [event.text for event in events if event.type == "warning"]
    assert list(result.warnings) == warned
    if kept:
        assert not warned
    else:
        (text,) = warned
        assert text.startswith("Nothing can answer this run: ")
        assert "storage" in text
