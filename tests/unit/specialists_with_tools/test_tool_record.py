"""What a tool loop has on record: replies and calls are not made again, unless they may be."""

import asyncio
from typing import Annotated, Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import BaseTool, InjectedToolCallId, StructuredTool, tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.types import Command, interrupt

from replan import (
    ConfigurationError,
    Host,
    Specialist,
    Team,
    ask_user,
    build_graph,
    run,
    waiting_for,
)
from replan.testing import ScriptedModel, always
from states import said, state_of

CONFIG: dict[str, Any] = {"configurable": {"thread_id": "t"}}
PLAN = {"messages": [("user", "Go.")], "plan": "- [ ] 1. Do it @worker\n"}
DONE = always("---\nverdict: complete\n---\nThe end.")


class World:
    """What is outside: it counts, and can hold a call until the run is cancelled."""

    def __init__(self):
        self.keys, self.done = [], []
        self.arrived, self.hold = asyncio.Event(), False

    async def effect(self, name, key=""):
        self.done.append(name)
        self.keys.append(key)
        if self.hold:
            self.arrived.set()
            await asyncio.Event().wait()
        return f"receipt {len(self.done)}"

    def tools(self):
        async def pay(amount: int, idempotency_key: str) -> str:
            """Pay."""
            return await self.effect("pay", idempotency_key)

        async def mail(to: str) -> str:
            """Send a mail."""
            return await self.effect("mail")

        async def look() -> str:
            """Look."""
            return await self.effect("look")

        reading = StructuredTool.from_function(coroutine=look, metadata={"effects": "pure"})
        return [pay, mail, reading]


@pytest.fixture
def world():
    return World()


@pytest.fixture
def team(storage):
    def build(model, tools, *, on_doubt="ask", **worker):
        member = Specialist(
            name="worker", intended_use="Works.", chat_model=model, tools=tools, **worker
        )
        config = Team(host=Host(model=model), specialists=[member], on_doubt=on_doubt)
        return build_graph(config, storage=storage)

    return build


@pytest.fixture
def cut_off(world):
    """Start a run, and cancel it while a tool is in the middle of its effect."""

    async def start(graph, given=PLAN):
        world.hold = True
        running = asyncio.ensure_future(state_of(run(graph, given, config=CONFIG)))
        await asyncio.wait_for(world.arrived.wait(), 20)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        world.hold = False

    return start


CALLS = {
    "pay": ("pay", {"amount": 5}),
    "mail": ("mail", {"to": "Ann"}),
    "look": ("look", {}),
}


def told(model):
    return [m for m in model.calls[-2].messages if isinstance(m, ToolMessage)]


def result_of(state):
    return state["current_specialist_results"]["1/worker"]


async def test_what_the_model_said_is_on_record_before_its_tools_run(storage, team, call):
    seen = {}

    async def look() -> str:
        """Look."""
        seen.update(await storage.log.notes("r"))
        return "seen"

    with ScriptedModel({"step 1": [call(("look", {})), "Done."], "feedback": DONE}) as model:
        await run(team(model, [look]), PLAN, config=CONFIG, run_id="r")
    (_, reply, begun) = sorted(
        seen, key=lambda key: ["began", "reply", "call"].index(key.split("/")[0])
    )
    assert reply.startswith("reply/")
    assert reply.endswith("/0")
    assert begun.startswith("call/")
    assert begun.endswith("/0.0/begun")
    assert seen[begun]["tool"] == "look"
    # What came of the step is on record itself, so its loop is not any more, but that it acted.
    assert list(await storage.log.notes("r")) == ["began", "acted/1/worker"]


async def test_after_a_question_nothing_is_asked_or_done_again(team, call, world):
    async def ask(what: str) -> str:
        """Ask a person."""
        return str(ask_user(what))

    calls = call(CALLS["mail"], ("ask", {"what": "Red?"}), CALLS["pay"])
    with ScriptedModel({"step 1": [calls, "Done."], "feedback": DONE}) as model:
        graph = team(model, [*world.tools(), ask])
        state = (await run(graph, PLAN, config=CONFIG)).state
        (question,) = waiting_for(state)
        assert question.text == "Red?"
        state = (await run(graph, Command(resume="blue"), config=CONFIG)).state
        answers = [m.content for m in told(model)]
    assert sorted(world.done) == ["mail", "pay"]
    assert "blue" in answers
    assert len([c for c in model.calls if c.step == 1]) == 2
    assert result_of(state).text == "Done."


@pytest.mark.parametrize(("name", "times"), [("pay", 2), ("look", 2), ("mail", 1)])
async def test_a_call_that_was_cut_off_is_made_again_only_if_it_may_be(
    team, call, world, cut_off, name, times
):
    script = {"step 1": [call(CALLS[name]), "Done."], "feedback": DONE}
    with ScriptedModel(script) as model:
        graph = team(model, world.tools())
        await cut_off(graph)
        state = (await run(graph, None, config=CONFIG)).state
        assert len(world.done) == times
        if name == "mail":
            (question,) = waiting_for(state)
            assert question.kind == "unknown_outcome"
            assert "The call of mail was cut off in attempt 1" in question.text
            assert question.details["arguments"] == {"to": "Ann"}
            state = (
                await run(graph, await said(graph, "it is done: sent as 7", CONFIG), config=CONFIG)
            ).state
            assert [m.content for m in told(model)] == ["sent as 7"]
    # The same call has the same key, and the model was asked for it once.
    assert len(set(world.keys)) == 1
    assert (world.keys[0] != "") == (name == "pay")
    assert len(world.done) == times
    assert len([c for c in model.calls if c.step == 1]) == 2
    assert state["outcome"] == "completed"


@pytest.mark.parametrize(
    ("answer", "times", "hears"),
    [
        ("Run again, please", 2, "receipt 2"),
        ({"action": "run again"}, 2, "receipt 2"),
        ("done", 1, "Done."),
        ({"action": "done", "text": "It was sent."}, 1, "It was sent."),
        ("fail: it never came", 1, "Error: it never came"),
    ],
)
async def test_a_person_says_what_became_of_an_unsafe_call(
    team, call, world, cut_off, answer, times, hears
):
    script = {"step 1": [call(CALLS["mail"]), "Done."], "feedback": DONE}
    with ScriptedModel(script) as model:
        graph = team(model, world.tools())
        await cut_off(graph)
        await run(graph, None, config=CONFIG)
        await run(graph, await said(graph, answer, CONFIG), config=CONFIG)
        assert [m.content for m in told(model)] == [hears]
    assert len(world.done) == times


@pytest.mark.parametrize(
    ("calls", "done"),
    [
        (("look",), ["look", "look"]),
        (("look", "mail"), ["look", "mail"]),
        (("pay",), ["pay"]),
    ],
)
async def test_a_retry_begins_anew_only_if_nothing_was_done_that_counts(
    team, call, world, calls, done
):
    failed = []

    def answer(messages):
        heard = [m for m in messages if isinstance(m, ToolMessage)]
        if not heard:
            return call(*(CALLS[name] for name in calls))
        if not failed:
            failed.append(True)
            return ConnectionError("reset")
        return "Done."

    with ScriptedModel({"step 1": [always(answer)], "feedback": DONE}) as model:
        state = (await run(team(model, world.tools()), PLAN, config=CONFIG)).state
    assert sorted(world.done) == sorted(done)
    assert result_of(state).retry_count == 1
    assert result_of(state).text == "Done."


async def test_an_unsafe_call_that_ran_out_of_time_is_asked_about_and_not_made_again(
    team, call, world
):
    world.hold = True
    script = {"step 1": [call(CALLS["mail"]), "Done."], "feedback": DONE}
    with ScriptedModel(script) as model:
        graph = team(model, world.tools())
        # Long enough for what follows the answer, on a busy machine, too.
        given = {"plan": "- [ ] 1. Do it @worker (timeout 4s)\n"}
        state = (await run(graph, given, config=CONFIG)).state
        (question,) = waiting_for(state)
        assert question.kind == "unknown_outcome"
        state = (await run(graph, await said(graph, "done", CONFIG), config=CONFIG)).state
    assert state["outcome"] == "completed"
    assert world.done == ["mail"]


async def test_declared_effects_count_for_tools_that_do_not_say_themselves(
    team, call, world, cut_off
):
    script = {"step 1": [call(CALLS["mail"]), "Done."], "feedback": DONE}
    with ScriptedModel(script) as model:
        graph = team(model, world.tools(), effects="pure")
        await cut_off(graph)
        state = (await run(graph, None, config=CONFIG)).state
    assert world.done == ["mail", "mail"]
    assert state["outcome"] == "completed"


class Charge(BaseTool):
    name: str = "charge"
    description: str = "Charge."

    def _run(self, amount: int, idempotency_key: str = "") -> str:
        return f"{amount} {len(idempotency_key)}"


def charged(amount: int, idempotency_key: str) -> str:
    """Charge."""
    return f"{amount} {len(idempotency_key)}"


SCHEMA = {
    "type": "object",
    "properties": {"amount": {"type": "integer"}, "idempotency_key": {"type": "string"}},
    "required": ["amount", "idempotency_key"],
}


@pytest.mark.parametrize(
    "one",
    [
        charged,
        tool(charged),
        Charge(),
        StructuredTool.from_function(charged, name="charged", args_schema=SCHEMA),
    ],
)
async def test_the_model_neither_sees_nor_chooses_the_key(team, call, one):
    name = getattr(one, "name", "charged")
    calls = call((name, {"amount": 5, "idempotency_key": "mine"}))
    bound = []

    class Model(ScriptedModel):
        def bind_tools(self, tools, **options):
            bound.extend(convert_to_openai_tool(each) for each in tools)
            return super().bind_tools(tools, **options)

    with Model({"step 1": [calls, "Done."], "feedback": DONE}) as model:
        await run(team(model, [one]), PLAN, config=CONFIG)
        assert [m.content for m in told(model)] == ["5 32"]
    shown = bound[0]["function"]["parameters"]
    assert list(shown["properties"]) == ["amount"]
    assert shown["required"] == ["amount"]


@pytest.mark.parametrize(
    ("answer", "hears", "done"),
    [
        ("approve", "receipt 1", [("mail", "Ann")]),
        (True, "receipt 1", [("mail", "Ann")]),
        (
            {"action": "edit", "arguments": {"to": "Bob"}},
            "A person changed the arguments to {'to': 'Bob'}.\nreceipt 1",
            [("mail", "Bob")],
        ),
        ("reject: not now", "Error: A person did not allow this call: not now", []),
        (False, "Error: A person did not allow this call: no reason given", []),
    ],
)
async def test_a_tool_that_needs_approval_waits_for_it(team, call, answer, hears, done):
    sent = []

    async def mail(to: str) -> str:
        """Send a mail."""
        sent.append(("mail", to))
        return f"receipt {len(sent)}"

    with ScriptedModel({"step 1": [call(CALLS["mail"]), "Done."], "feedback": DONE}) as model:
        graph = team(model, [mail], approve=["mail"])
        state = (await run(graph, PLAN, config=CONFIG)).state
        (question,) = waiting_for(state)
        assert (question.kind, sent) == ("approval", [])
        called = {"tool": "mail", "arguments": {"to": "Ann"}, "call": "0.0"}
        called["description"] = "Send a mail."
        assert question.details == called
        state = (await run(graph, await said(graph, answer, CONFIG), config=CONFIG)).state
        assert [m.content for m in told(model)] == [hears]
    assert sent == done
    assert state["outcome"] == "completed"


async def test_an_approved_call_that_was_cut_off_is_not_asked_about_again(
    team, call, world, cut_off
):
    with ScriptedModel({"step 1": [call(CALLS["pay"]), "Done."], "feedback": DONE}) as model:
        graph = team(model, world.tools(), approve=["pay"])
        await run(graph, PLAN, config=CONFIG)
        await cut_off(graph, await said(graph, "approve", CONFIG))
        state = (await run(graph, None, config=CONFIG)).state
    assert state["outcome"] == "completed"
    assert world.done == ["pay", "pay"]
    assert len(set(world.keys)) == 1


@pytest.mark.parametrize(
    ("worker", "problem"),
    [
        ({"approve": ["post"]}, r"specialists\[0\]\.approve: it has no tool with this name"),
        ({"effects": "harmless"}, r"specialists\[0\]\.effects: this is not one of the choices"),
    ],
)
async def test_what_is_no_tool_and_no_kind_of_effects_is_refused(team, world, worker, problem):
    with pytest.raises(ConfigurationError, match=problem):
        team(ScriptedModel([]), world.tools(), **worker)


async def test_approval_without_tools_and_odd_metadata_are_refused(team, world):
    with pytest.raises(ConfigurationError, match="it has no tools"):
        team(ScriptedModel([]), [], approve=["mail"])
    (_, _, look) = world.tools()
    look.metadata = {"effects": "none"}
    with pytest.raises(ConfigurationError, match=r"tools\[0\]\.metadata\.effects"):
        team(ScriptedModel([]), [look])


async def test_the_messages_of_a_command_are_kept(team, call):
    made = []

    @tool
    def note(text: str, tool_call_id: Annotated[str, InjectedToolCallId]) -> Command:
        """Note."""
        made.append(text)
        return Command(update={"messages": [ToolMessage("noted", tool_call_id=tool_call_id)]})

    async def ask() -> str:
        """Ask a person."""
        return str(ask_user("Well?"))

    calls = call(("note", {"text": "a"}), ("ask", {}))
    with ScriptedModel({"step 1": [calls, "Done."], "feedback": DONE}) as model:
        graph = team(model, [note, ask])
        await run(graph, PLAN, config=CONFIG)
        await run(graph, await said(graph, "fine", CONFIG), config=CONFIG)
        assert {m.content for m in told(model)} == {"noted", "fine"}
    assert made == ["a"]


async def test_broken_arguments_stay_broken_behind_a_foreign_interrupt(team, call):
    called = []

    async def count(n: int = 0) -> str:
        """Count."""
        called.append(n)
        return "counted"

    async def ask() -> str:
        """Ask a person."""
        return interrupt("Well?")

    broken = {"name": "count", "args": "{oh", "id": "x", "error": None, "type": "invalid_tool_call"}
    reply = call(("ask", {})).model_copy(update={"invalid_tool_calls": [broken]})
    with ScriptedModel({"step 1": [reply, "Done."], "feedback": DONE}) as model:
        graph = team(model, [count, ask])
        await run(graph, PLAN, config=CONFIG)
        await run(graph, await said(graph, "fine", CONFIG), config=CONFIG)
        assert {m.content for m in told(model)} == {
            "fine",
            "Error: The arguments are not JSON: {oh",
        }
    assert called == []


MAIL = {"name": "mail", "args": {"to": "Ann"}, "id": "1", "type": "tool_call"}


async def test_the_host_is_told_of_a_call_of_its_own_that_was_cut_off(storage, world, cut_off):
    def mail(messages):
        heard = [m.content for m in messages if isinstance(m, ToolMessage)]
        if heard:
            return heard[0]
        return AIMessage("", tool_calls=[MAIL])

    script = {"think": "---\ncomplexity: simple\n---\n", "direct_answer": [always(mail)]}
    with ScriptedModel(script) as model:
        config = Team(
            host=Host(model=model, tools=world.tools()),
            specialists=[Specialist(name="worker", intended_use="Works.", chat_model=model)],
        )
        graph = build_graph(config, storage=storage)
        await cut_off(graph, "Write to Ann.")
        state = (await run(graph, None, config=CONFIG)).state
    assert "The call of mail was cut off" in state["final_answer"].text
    assert world.done == ["mail"]
    assert len([c for c in model.calls if c.node == "direct_answer"]) == 2
