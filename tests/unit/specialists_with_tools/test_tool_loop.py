"""A specialist with tools: called, told of failures, bounded, interrupted, never wedged."""

import asyncio
import sys
from typing import Any

import pytest
from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import BaseTool, ToolException, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from replan import (
    ConfigurationError,
    ExecutionStatus,
    StorageError,
    run,
    stream,
)
from replan.errors import UnpricedModelError
from replan.testing import Reply, ScriptedModel, always


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def multiply(a: int, b: int) -> int:
    """Multiply two numbers."""
    await asyncio.sleep(0)
    return a * b


@tool
def negate(a: int) -> int:
    """Negate a number."""
    return -a


class Square(BaseTool):
    name: str = "square"
    description: str = "Square a number."

    def _run(self, a: int) -> int:
        return a * a


def told(model):
    """What the model was told by its tools, before its last call of step 1."""
    calls = [call for call in model.calls if call.step == 1]
    return [m for m in calls[-1].messages if isinstance(m, ToolMessage)]


async def test_functions_coroutines_and_langchain_tools_are_called(graph, script, call, result_of):
    first = call(("add", {"a": 1, "b": 2}), ("multiply", {"a": 3, "b": 4}))
    second = call(("negate", {"a": 5}), ("square", {"a": 6}))
    with ScriptedModel(script(first, second, "Done.")) as model:
        state = (await run(graph(model, tools=[add, multiply, negate, Square()]), "Count.")).state
    assert [message.content for message in told(model)] == ["3", "12", "-5", "36"]
    assert model.bound_tools[-1] == ("add", "multiply", "negate", "square")
    assert result_of(state).text == "Done."
    assert result_of(state).usage.calls == 3


async def test_front_matter_is_read_from_the_last_message_alone(graph, script, call, result_of):
    head = "---\nstatus: partial\nconfidence: 0.4\nreplan_needed: true\n---\n"
    replies = (call(("add", {"a": 1, "b": 2}), said="---\nstatus: failed\n---"), head + "Half.")
    with ScriptedModel(script(*replies)) as model:
        result = result_of((await run(graph(model, tools=[add]), "Count.")).state)
    assert (result.status, result.confidence) == (ExecutionStatus.PARTIAL, 0.4)
    assert result.replan_needed
    assert result.text == "Half."


async def test_a_failing_tool_is_told_to_the_model_without_secrets(graph, script, call, result_of):
    def look(key: str) -> str:
        """Look."""
        raise ConnectionError("no way to https://me:pass@host with api_key=sk-1234567890abcdef")

    @tool
    async def refuse() -> str:
        """Refuse."""
        raise ToolException("never")

    calls = call(("look", {"key": "a"}), ("refuse", {}))
    with ScriptedModel(script(calls, "I could not look.")) as model:
        state = (await run(graph(model, tools=[look, refuse]), "Look.")).state
    first, second = told(model)
    assert first.status == second.status == "error"
    assert "ConnectionError" in first.content
    assert "sk-1234567890abcdef" not in first.content
    assert "pass" not in first.content
    assert "never" in second.content
    assert result_of(state).status is ExecutionStatus.SUCCESS


async def test_wrong_arguments_and_unknown_tools_are_told_to_the_model(graph, script, call):
    calls = call(("add", {"a": "many"}), ("subtract", {"a": 1}))
    with ScriptedModel(script(calls, "I give up.")) as model:
        await run(graph(model, tools=[add]), "Count.")
    first, second = told(model)
    assert first.status == second.status == "error"
    assert "b" in first.content
    assert "add" in second.content


async def test_a_tool_that_ends_the_process_is_told_to_the_model(graph, script, call):
    async def leave() -> str:
        """Leave."""
        sys.exit(3)

    def leave_too() -> str:
        """Leave, too."""
        sys.exit(4)

    calls = call(("leave", {}), ("leave_too", {}))
    with ScriptedModel(script(calls, "Still here.")) as model:
        await run(graph(model, tools=[leave, leave_too]), "Leave.")
    assert ["SystemExit" in message.content for message in told(model)] == [True, True]


async def test_calls_without_ids_with_the_same_id_or_broken_arguments_get_their_answers(
    graph, script, result_of
):
    def named(name: str) -> str:
        """Name."""
        return name

    def nothing() -> str:
        """Do nothing."""
        raise AssertionError

    kind = {"type": "tool_call"}
    odd = AIMessage(
        "",
        tool_calls=[
            {"name": "named", "args": {"name": "a"}, "id": "same", **kind},
            {"name": "named", "args": {"name": "b"}, "id": "same", **kind},
            {"name": "named", "args": {"name": "c"}, "id": None, **kind},
        ],
        invalid_tool_calls=[
            {
                "name": "nothing",
                "args": "{oh",
                "id": "x",
                "error": None,
                "type": "invalid_tool_call",
            }
        ],
    )
    with ScriptedModel(script(odd, "Done.")) as model:
        state = (await run(graph(model, tools=[named, nothing]), "Name them.")).state
    answers = told(model)
    assert [message.content for message in answers[:3]] == ["a", "b", "c"]
    assert "not JSON" in answers[3].content
    asked = next(m for m in model.calls[-2].messages if isinstance(m, AIMessage))
    assert [c["id"] for c in asked.tool_calls] == [m.tool_call_id for m in answers]
    assert len({message.tool_call_id for message in answers}) == 4
    assert result_of(state).text == "Done."


async def test_one_round_of_tools_too_many_fails_the_step_once(graph, script, call, result_of):
    again = [call(("add", {"a": 1, "b": 2}))] * 3
    worker = {"tools": [add], "max_tool_rounds": 2}
    with ScriptedModel(script(*again)) as model:
        result = result_of((await run(graph(model, **worker), "Count.")).state)
    assert result.status is ExecutionStatus.FAILED
    assert "max_tool_rounds" in result.error
    assert result.retry_count == 0


async def test_a_storage_that_fails_in_a_tool_ends_the_run_and_is_not_told_to_the_model(
    graph, script, call
):
    def count() -> int:
        """Count what is stored."""
        raise StorageError("runs.db", "The disk is full.", "Make room.")

    with ScriptedModel(script(call(("count", {})), always("Done."))) as model:
        with pytest.raises(StorageError, match="The disk is full"):
            await run(graph(model, tools=[count]), "Count.")
        assert len(model.calls) == 2


async def test_a_tool_whose_model_has_no_price_fails_its_step_and_is_not_told_to_the_model(
    graph, script, call, result_of
):
    def count() -> int:
        """Count with a model."""
        raise UnpricedModelError("prices", "counter")

    with ScriptedModel(script(call(("count", {})))) as model:
        state = (await run(graph(model, tools=[count]), "Count.")).state
    assert "this model has no price" in result_of(state).error


async def test_a_tool_that_cancels_itself_fails_no_more_than_its_step(graph, script, call):
    async def cancel() -> str:
        """Cancel."""
        raise asyncio.CancelledError

    with ScriptedModel(script(call(("cancel", {})))) as model:
        state = (await run(graph(model, tools=[cancel]), "Cancel.")).state
    assert state["is_completed"]


async def test_what_a_tool_gives_is_cut_and_the_cut_is_marked(graph, script, call):
    def flood() -> str:
        """Flood."""
        return "x" * 1_000_000

    with ScriptedModel(script(call(("flood", {})), "Much.")) as model:
        await run(graph(model, tools=[flood]), "Flood.")
    (message,) = told(model)
    assert len(message.content) < 60_000


async def test_tokens_of_the_answer_are_shown(graph, script, call):
    replies = (call(("add", {"a": 1, "b": 2})), Reply("It is three.", chunks=["It ", "is three."]))
    with ScriptedModel(script(*replies)) as model:
        events = [event async for event in stream(graph(model, tools=[add]), "Count.")]
    tokens = [event.text for event in events if event.type == "specialist_token"]
    assert tokens == ["It ", "is three."]


async def test_a_question_in_a_tool_waits_and_the_answer_reaches_it(graph, script, call, result_of):
    asked = []

    @tool
    def ask(question: str) -> str:
        """Ask a person."""
        asked.append(question)
        return interrupt(question)

    counted = []

    def count() -> int:
        """Count."""
        counted.append(1)
        return len(counted)

    calls = call(("count", {}), ("ask", {"question": "Which?"}))
    config: dict[str, Any] = {"configurable": {"thread_id": "t"}}
    with ScriptedModel(script(calls, "The red one.")) as model:
        whole = graph(model, tools=[ask, count], checkpointer=InMemorySaver())
        state = (await run(whole, "Choose.", config=config)).state
        assert state["outcome"] == "waiting"
        assert state["__interrupt__"][0].value == "Which?"
        state = (await run(whole, Command(resume="red"), config=config)).state
    assert "red" in [message.content for message in told(model)]
    assert result_of(state).text == "The red one."
    assert state["outcome"] == "completed"
    # What was done before the question is not done again: neither the call nor the other tool.
    assert counted == [1]
    assert len([c for c in model.calls if c.step == 1]) == 2


class Seen(AsyncCallbackHandler):
    def __init__(self):
        self.seen = []

    async def on_chat_model_start(self, serialized, messages, *, tags=None, metadata=None, **_):
        self.seen.append((messages[0][-1].text, "mine" in (tags or ()), (metadata or {}).get("t")))


async def test_callbacks_tags_and_metadata_reach_the_models_inside_of_tools(graph, script, call):
    with ScriptedModel(["sync", "async"]) as inner:

        def ask_sync() -> str:
            """Ask."""
            return inner.invoke("sync").text

        async def ask_async() -> str:
            """Ask."""
            return (await inner.ainvoke("async")).text

        names = ("ask_sync", {}), ("ask_async", {})
        with ScriptedModel(script(call(names[0]), call(names[1]), "Done.")) as model:
            seen = Seen()
            config = {"callbacks": [seen], "tags": ["mine"], "metadata": {"t": 7}}
            await run(graph(model, tools=[ask_sync, ask_async]), "Ask.", config=config)
    assert len(seen.seen) == 7
    assert all(tagged and value == 7 for _, tagged, value in seen.seen)
    assert {"sync", "async"} <= {text for text, _, _ in seen.seen}


@pytest.mark.parametrize(
    ("tools", "problem"),
    [
        ([lambda x: x], "this is not a tool"),
        ([3], "of type int, and cannot be called"),
        ([add, add], "another tool has this name"),
    ],
)
def test_what_is_no_tool_is_refused_with_its_place(graph, tools, problem):
    with pytest.raises(ConfigurationError, match=r"specialists\[0\]\.tools\[") as caught:
        graph(ScriptedModel([]), tools=tools)
    assert problem in str(caught.value)


def test_a_model_that_cannot_call_tools_is_refused(graph):
    class Plain(ScriptedModel):
        bind_tools = ScriptedModel.__mro__[1].bind_tools

    with pytest.raises(ConfigurationError, match="cannot call tools"):
        graph(Plain([]), tools=[add])


def test_a_missing_langchain_is_named_with_its_mend(graph, monkeypatch):
    monkeypatch.setitem(sys.modules, "langchain.agents", None)
    monkeypatch.delitem(sys.modules, "replan.specialists.tool_loop", raising=False)
    with pytest.raises(ConfigurationError, match=r'pip install "replan\[tools\]"'):
        graph(ScriptedModel([]), tools=[add])


async def test_a_result_that_was_cut_off_is_asked_for_again_without_calling_a_tool_again(
    graph, script, call
):
    calls = []

    def pay(amount: int) -> str:
        """Pay an amount."""
        calls.append(amount)
        return f"paid {amount}"

    half = Reply("I paid fi", finish_reason="length")
    replies = script(call(("pay", {"amount": 5})), half, "Paid.")
    with ScriptedModel(replies) as model:
        state = (await run(graph(model, tools=[pay]), "Pay.")).state
    result = state["current_specialist_results"]["1/worker"]
    assert (result.text, result.cut, calls) == ("Paid.", "", [5])
    asked = [call.messages for call in model.calls if call.step == 1]
    assert "shorter" in asked[-1][-3].text
    assert [message.text for message in asked[-1][-1:]] == ["paid 5"]


A_TEXT = {"type": "text", "text": "a"}
PICTURE = {"type": "image", "base64": "A" * 100, "mime_type": "image/png"}


@pytest.mark.parametrize(
    ("blocks", "kept"),
    [
        ([A_TEXT, PICTURE], [A_TEXT, PICTURE]),
        (
            [{"type": "text", "text": "x" * 60_000}, A_TEXT, A_TEXT],
            [
                {"type": "text", "text": f"{'x' * 50_000}\n[… 10000 characters cut]"},
                "[… 2 more parts of the result cut]",
            ],
        ),
        (
            [{**PICTURE, "base64": "A" * 6_000_000}, A_TEXT],
            ["[image is too large, and left out]", "[… 1 more parts of the result cut]"],
        ),
    ],
)
async def test_a_result_in_blocks_is_cut_as_a_text_is(blocks, kept, graph, script, call):
    def look() -> list:
        """Look."""
        return blocks

    with ScriptedModel(script(call(("look", {})), "Seen.")) as model:
        await run(graph(model, tools=[look]), "Look.")
    assert [message.content for message in told(model)] == [kept]
