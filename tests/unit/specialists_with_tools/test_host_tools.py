"""A host with tools: for the answer to a simple request, and for nothing else."""

import asyncio

import pytest
from langchain_core.messages import AIMessageChunk, ToolMessage
from langchain_core.tools import tool

from replan import (
    ConfigurationError,
    Host,
    Limits,
    Specialist,
    Team,
    build_graph,
    run,
    stream,
)
from replan.testing import Reply, Reset, ScriptedModel
from states import state_of

SIMPLE = "---\ncomplexity: simple\n---\n"
LONG = "The long answer goes on. " * 20


@tool
def weather(town: str) -> str:
    """Return the weather of a town."""
    return f"rain in {town}"


def graph_of(model, *tools, checkpointer=None, max_tool_rounds=25, **options):
    config = Team(
        host=Host(model=model, tools=tools, max_tool_rounds=max_tool_rounds),
        specialists=[Specialist(name="worker", intended_use="Works.", chat_model=model)],
        **options,
    )
    return build_graph(config, checkpointer=checkpointer)


def said(events):
    """The answer's tokens, and where it was begun again."""
    return [
        event.text if event.type == "answer_token" else event.type
        for event in events
        if event.type.startswith("answer")
    ]


async def events_of(graph):
    return [event async for event in stream(graph, "How is the weather in Bonn?")]


@pytest.fixture
def look(call):
    return call(("weather", {"town": "Bonn"}))


async def test_a_tool_is_called_for_the_direct_answer(look):
    with ScriptedModel({"think": SIMPLE, "direct_answer": [look, "It rains."]}) as model:
        state = (await run(graph_of(model, weather), "How is the weather in Bonn?")).state
    last = model.calls[-1].messages[-1]
    assert isinstance(last, ToolMessage)
    assert last.content == "rain in Bonn"
    assert state["final_answer"].text == "It rains."
    assert [message.type for message in state["messages"]] == ["human", "ai"]
    assert state["usage"].calls == 3
    assert model.bound_tools == [("weather",)] * len(model.bound_tools)


async def test_thinking_does_not_answer_where_the_host_has_tools(look):
    script = {"think": SIMPLE + "Sunny, I guess.", "direct_answer": "It rains."}
    with ScriptedModel(script) as model:
        events = await events_of(graph_of(model, weather))
    assert "".join(said(events)) == "It rains."


async def test_a_remark_before_a_tool_call_is_not_shown(call):
    remark = call(("weather", {"town": "Bonn"}), said="Let me look that up for you.")
    answer = Reply("It rains in Bonn.", chunks=["It rains ", "in Bonn."])
    with ScriptedModel({"think": SIMPLE, "direct_answer": [remark, answer]}) as model:
        events = await events_of(graph_of(model, weather))
    assert "".join(said(events)) == "It rains in Bonn."
    assert len(said(events)) > 1


async def test_a_long_answer_is_shown_before_it_is_whole(look):
    broken = Reply(LONG, fault=Reset(after=60))
    with ScriptedModel({"think": SIMPLE, "direct_answer": [broken, look, LONG]}) as model:
        events = await events_of(graph_of(model, weather))
    shown = said(events)
    assert LONG.startswith("".join(shown[: shown.index("answer_reset")]))
    assert "".join(shown[shown.index("answer_reset") + 1 :]) == LONG.strip()


async def test_what_was_shown_by_mistake_is_taken_back(call):
    remark = call(("weather", {"town": "Bonn"}), said=LONG)
    with ScriptedModel({"think": SIMPLE, "direct_answer": [remark, "It rains."]}) as model:
        events = await events_of(graph_of(model, weather))
    shown = said(events)
    assert "".join(shown[: shown.index("answer_reset")]) == LONG.strip()
    assert shown[shown.index("answer_reset") + 1 :] == ["It rains."]


async def test_the_messages_mode_shows_the_answer_and_no_call_of_a_tool(call):
    remark = call(("weather", {"town": "Bonn"}), said="Let me look.")
    with ScriptedModel({"think": SIMPLE, "direct_answer": [remark, "It rains."]}) as model:
        parts = [
            message
            async for message, _ in graph_of(model, weather).astream(
                {"messages": [("user", "Weather?")]}, stream_mode="messages"
            )
        ]
    assert "".join(message.text for message in parts) == "It rains."
    assert not any(getattr(message, "tool_call_chunks", None) for message in parts)


async def test_the_checker_of_the_configuration_decides_what_is_shown(call):
    heard = []

    async def waits_for_the_end(chunks):
        pieces = [chunk async for chunk in chunks]
        heard.append(pieces)
        return any(chunk.tool_call_chunks for chunk in pieces)

    remark = call(("weather", {"town": "Bonn"}), said=LONG)
    script = {"think": SIMPLE, "direct_answer": [remark, "It rains."]}
    with ScriptedModel(script) as model:
        graph = graph_of(model, weather, stream_tool_call_checker=waits_for_the_end)
        events = await events_of(graph)
    assert "".join(said(events)) == "It rains."
    assert len(heard) == 2
    assert all(isinstance(piece, AIMessageChunk) for piece in heard[0])


async def test_the_final_answer_of_a_plan_uses_no_tools():
    script = {
        "think": "---\ncomplexity: complex\n---\n- [ ] 1. Do it @worker",
        "step 1": "Done.",
        "feedback": "---\nverdict: complete\n---\nThe end.",
    }
    with ScriptedModel(script) as model:
        state = (await run(graph_of(model, weather), "Do it.")).state
    assert state["final_answer"].text == "The end."
    assert model.bound_tools == []


async def test_a_hanging_tool_of_the_host_is_told_to_the_model(call):
    @tool
    async def hang() -> str:
        """Hang."""
        await asyncio.Event().wait()

    script = {"think": SIMPLE, "direct_answer": [call(("hang", {})), "I cannot know."]}
    with ScriptedModel(script) as model:
        state = await state_of(
            run(graph_of(model, hang, limits=Limits(step_timeout=0.1)), "Weather?")
        )
    assert "was cut off" in model.calls[-1].messages[-1].text
    assert state["final_answer"].text == "I cannot know."


def test_a_bound_below_one_is_refused():
    with pytest.raises(ConfigurationError, match=r"host\.max_tool_rounds"):
        graph_of(ScriptedModel([]), weather, max_tool_rounds=0)
