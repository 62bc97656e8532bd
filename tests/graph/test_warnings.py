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
from replan.testing import Reply, ScriptedModel, always
from scripts import COMPLETE


def graph_of(script, checkpointer=None, **options):
    team = [
        Specialist(name="payer", intended_use="Pays invoices.", run=lambda context: "paid"),
        Specialist(name="mailer", intended_use="Sends e-mail.", run=lambda context: "sent"),
    ]
    config = Team(host=Host(model=ScriptedModel(script)), specialists=team, **options)
    return build_graph(config, checkpointer=checkpointer)


async def test_a_step_given_by_the_cards_and_text_that_looks_like_an_order_are_warnings():
    graph = graph_of({"feedback": COMPLETE})
    plan = "- [ ] 1. Pay invoices\n- [ ] 2. Send (needs all of it) @mailer\n"
    state = (await run(graph, {"plan": plan})).state
    assert state["warnings"] == [
        (
            "In the plan, line 2: '(needs all of it)' looks like a dependency and was read "
            "as text; write (after 1, 2)."
        ),
        "Step 1 names no specialist; by the cards it goes to @payer.",
    ]
    assert state["outcome"] == "completed"


async def test_a_reply_that_could_not_be_read_is_a_warning_with_what_was_done_instead():
    graph = graph_of({"think": always("complexity: maybe"), "direct_answer": always("Lima.")})
    events = [event async for event in stream(graph, "Which is the capital of Peru?")]
    last = events[-1]
    assert last.type == "task_completed"
    (warning,) = last.warnings
    assert warning == (
        "The reply of think could not be used: `complexity: maybe` is not one of simple, moderate, "
        "complex. Instead: the request counts as simple."
    )


async def test_an_unreadable_judgement_never_becomes_the_answer_of_a_run():
    talk = "Well, hm. All in all a nice result, I think."
    script = {"feedback": always(talk), "final_answer": "It was paid and sent."}
    plan = "- [ ] 1. Pay @payer\n- [ ] 2. Send @mailer\n"
    state = (await run(graph_of(script), {"plan": plan})).state
    assert (state["final_answer"].text, state["outcome"]) == ("It was paid and sent.", "completed")
    assert state["warnings"] == [
        (
            "The reply of feedback in round 1 could not be used: The reply does not begin with its "
            "front matter, so it has no `verdict`. Instead: the judgement by the status of the "
            "steps."
        )
    ]


async def test_where_the_limits_leave_no_answer_the_results_stand_in_its_place():
    script = {"feedback": always("A nice result, I think.")}
    limits = Limits(max_model_calls=2)
    plan = "- [ ] 1. Pay @payer\n- [ ] 2. Send @mailer\n"
    graph = graph_of(script, limits=limits)
    state = (await run(graph, {"plan": plan})).state
    assert state["outcome"] == "partial"
    assert "A nice result" not in state["final_answer"].text
    assert "## 1. Pay\n\npaid\n\n## 2. Send\n\nsent" in state["final_answer"].text


async def test_a_text_without_its_front_matter_may_be_an_answer_and_says_so():
    graph = graph_of({"think": always("Lima.")})
    state = (await run(graph, "Which is the capital of Peru?")).state
    assert state["final_answer"].text == "Lima."
    assert state["warnings"] == [
        (
            "The reply of think could not be used: The reply does not begin with its front matter, "
            "so it has no `complexity`. Instead: the text of the reply is the answer."
        )
    ]


async def test_lines_of_a_front_matter_that_nobody_reads_are_a_warning():
    graph = graph_of({"think": "---\ncomplexity: simple\nmood: good\n---\nLima."})
    state = (await run(graph, "Which is the capital of Peru?")).state
    assert (state["final_answer"].text, state["unreadable_replies"]) == ("Lima.", [])
    assert state["warnings"] == [
        "The front matter of a reply has lines that are not read: `mood: good`."
    ]


@pytest.mark.parametrize(
    ("second", "outcome"), [("The notes have it.", "completed"), (None, "failed")]
)
async def test_a_failure_that_is_said_in_the_wrong_place_is_asked_about_once(second, outcome):
    odd = "Here is my report:\n\n---\nstatus: failed\nretry: no\n---\nNo data."
    script = {"specialist": [odd, second or odd], "feedback": COMPLETE}
    with ScriptedModel(script) as model:
        clerk = Specialist("clerk", "Searches.", chat_model=model)
        team = Team(host=Host(model=model), specialists=[clerk], limits=Limits(step_retries=0))
        state = (await run(team, {"plan": "- [ ] 1. Search @clerk\n"})).state
    asked = [call.messages[-1].text for call in model.calls if call.node == "specialist"]
    assert "`status: failed` is not at the beginning of the reply" in asked[1]
    assert state["current_plan"].step(1).status == outcome


async def test_an_answer_that_is_not_whole_is_a_warning():
    cut = Reply("---\ncomplexity: simple\n---\nLima is the cap", finish_reason="length")
    state = (await run(graph_of({"think": cut}), "Which is the capital of Peru?")).state
    (warning,) = state["warnings"]
    assert warning.startswith("The answer is incomplete: ")
    assert state["outcome"] == "partial"


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


def with_unknown_key(head, body):
    return f"---\ntone: of {head.partition(':')[0]}\n{head}\n---\n{body}"


async def test_an_unknown_key_of_any_reply_is_a_warning_and_no_text():
    plan = "- [ ] 1. Pay @payer\n- [ ] 2. Write @poet (after 1)\n"
    script = {
        "think": with_unknown_key("complexity: complex", "Soon."),
        "plan_creation": with_unknown_key("reasoning: Two.\ncomplexity: complex", plan),
        "feedback": with_unknown_key("verdict: complete", ""),
        "final_answer": with_unknown_key("feedback: Good.\nverdict: complete", "The answer."),
    }
    poet = ScriptedModel([with_unknown_key("status: success", "A poem.")])
    team = [
        Specialist("payer", "Pays invoices.", run=lambda context: "paid"),
        Specialist("poet", "Writes.", chat_model=poet),
    ]
    with ScriptedModel(script) as host:
        state = (await run(build_graph(Team(Host(host), team)), "Pay, and write about it.")).state
    assert state["final_answer"].text == "The answer."
    assert state["current_plan"].step(2).result == "A poem."
    told = "The front matter of a reply has lines that are not read: `tone: of {}`."
    names = ("complexity", "reasoning", "status", "verdict", "feedback")
    assert state["warnings"] == [told.format(name) for name in names]
