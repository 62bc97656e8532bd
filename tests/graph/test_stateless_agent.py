"""An agent that keeps nothing: a context goes in, updates come out, any agent goes on."""

import asyncio
import base64
import copy
import json
import random
import re
import threading
import zlib
from datetime import UTC, datetime
from functools import reduce
from itertools import count
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import interrupt
from pydantic import BaseModel

from carried import opened_run, run_in
from replan import (
    ConfigurationError,
    ExecutionContext,
    Host,
    Limits,
    MemoryOptions,
    RunSettings,
    Specialist,
    Team,
    ask_user,
    build_graph,
    run,
)
from replan.errors import ContextError
from replan.ports.ask_user import ask
from replan.sessions import Agent, AgentContext, AgentResult, Message, build_agent
from replan.sessions.carried_run import packed_run, unpacked_run
from replan.sessions.tool_calls import CompletedCalls
from replan.testing import ScriptedModel, always
from scripts import DONE, SIMPLE

KEY = "a key that only the test knows"
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
COMPLETE = "---\nverdict: complete\n---\nPainted."
EMPTY = AgentContext(session_id="s")


def planned(task: str, by: str) -> str:
    """A plan of one step, as a model writes it."""
    return f"---\ncomplexity: complex\n---\n- [ ] 1. {task} @{by}\n"


ONE = planned("The hall", "painter")
TWO = f"{ONE}- [ ] 2. The attic @painter\n"


def working(name: str, run: Any) -> Specialist:
    return Specialist(name, "Works.", run=run, effects="pure")


def paint(context: ExecutionContext) -> str:
    return f"{context.task_description}: {ask_user('Which colour?')}"


def team_of(model: Any, *specialists: Specialist, **options: Any) -> Team:
    team = [working("painter", paint), *specialists]
    return Team(host=Host(model=model), specialists=team, **options)


def agent_of(model: Any, *specialists: Specialist, key: Any = None, **options: Any) -> Agent:
    """An agent whose clock stands still, and which counts its runs."""
    runs = count(1)
    return build_agent(
        team_of(model, *specialists, **options),
        context_key=key,
        clock=lambda: NOON,
        new_id=lambda: f"run-{next(runs)}",
    )


def after(context: AgentContext, result: AgentResult) -> AgentContext:
    """The context as a store gives it back, which keeps no order of keys."""
    changed = context.apply(json.loads(json.dumps(result.context_updates)))
    return AgentContext.from_dict(json.loads(json.dumps(changed.to_dict(), sort_keys=True)))


def said(context: AgentContext) -> list[tuple[str, Any]]:
    return [(each.role, each.content) for each in context.dialogue_history]


async def turn(
    script: Any, said: Any, context: Any, *specialists: Specialist, **options: Any
) -> AgentResult:
    """What a new agent comes to, whose model follows a script to its end."""
    with ScriptedModel(script) as model:
        return await agent_of(model, *specialists, **options).process(said, context)


async def refusal(said: Any, context: Any, key: Any = None) -> str:
    """Why a turn is refused which asks no model and changes nothing."""
    result = await turn({}, said, context, key=key)
    assert (result.success, result.context_updates) == (False, {})
    return str(result.error)


async def waiting(plan: str = ONE, **options: Any) -> AgentContext:
    """A session whose run waits for an answer."""
    result = await turn({"think": plan}, "Paint.", EMPTY, **options)
    assert result.success
    return after(EMPTY, result)


async def test_a_turn_gives_an_answer_and_what_changed():
    before = json.dumps(EMPTY.to_dict())
    result = await turn({"think": f"{SIMPLE}Paris."}, "The capital?", EMPTY)
    assert (result.success, result.response, result.error) == (True, "Paris.", None)
    assert result.context_updates == {
        "dialogue_history": {
            "append": [
                Message(role=role, content=text, timestamp=NOON.isoformat()).to_dict()
                for role, text in (("user", "The capital?"), ("assistant", "Paris."))
            ]
        },
        "current_stage": {"set": "done"},
        "session_metadata": {"last_updated": {"set": NOON.isoformat()}},
    }
    assert result.metadata["outcome"] == "answered"
    assert json.dumps(EMPTY.to_dict()) == before


@pytest.mark.parametrize("key", [None, KEY])
async def test_any_agent_takes_the_next_turn_of_a_run_that_waits(key):
    context = await waiting(key=key)
    assert context.current_stage == "question"
    assert said(context)[-1] == ("assistant", "Which colour?")
    result = await turn({"feedback": COMPLETE}, "Blue.", context, key=key)
    context = after(context, result)
    assert (result.response, result.metadata["run_id"]) == ("Painted.", "run-1")
    assert "The hall: Blue." in str(context.project_state["plan"])
    assert "run" not in context.project_state
    assert [role for role, _ in said(context)] == ["user", "assistant"] * 2


async def session_of(kind: str) -> list[AgentResult]:
    """All results of a session that asks in one way, with a new agent for each turn."""
    loop = [calling("ship", place="Rome"), AIMessage("shipped")]
    script = {"think": planned("Do it", kind), "step 1": loop, "feedback": always(COMPLETE)}
    options, settings = dict[str, Any](), RunSettings()
    context, results, said = EMPTY, list[AgentResult](), ["Do it.", "Blue", "dark"]
    if kind == "approval":
        script, said = {"think": ONE}, ["Do it."]
        settings = RunSettings(approval="always")
    if kind == "summary":
        memory = MemoryOptions(mode="summary", history_limit=2, summary_trigger_messages=2)
        script = {"think": ONE, "memory_summary": always("They said hello.")}
        options, context, said = {"memory": memory}, spoken(3), ["Paint."]
    model = ScriptedModel(script)
    for text in said:
        agent = agent_of(model, asking([]), paying(model), **options)
        results.append(await agent.process(text, context, settings=settings))
        context = after(context, results[-1])
    return results


@pytest.mark.parametrize("kind", ["painter", "buyer", "approval", "summary"])
async def test_the_same_turns_again_give_equal_results(kind: str):
    first, second = await session_of(kind), await session_of(kind)
    assert first[0].success
    assert but_for_slow_steps(first) == but_for_slow_steps(second)


def but_for_slow_steps(results: list[AgentResult]) -> str:
    """The results without counted tokens: a prompt says how many seconds a step took."""
    text = json.dumps([result.to_dict() for result in results])
    return re.sub(r'"input_tokens": \d+', "", text)


async def test_one_agent_serves_calls_of_the_same_run_at_once_and_keeps_nothing_of_them():
    context = await waiting(limits=Limits(max_model_calls=4))
    with ScriptedModel({"feedback": always(COMPLETE)}) as model:
        agent: Any = agent_of(model, limits=Limits(max_model_calls=4))
        calls = (agent.process("Blue.", context) for _ in range(20))
        results = await asyncio.gather(*calls)
        saver = agent._workplace.graph.checkpointer  # noqa: SLF001 - that nothing stays in it
    assert {each.response for each in results} == {"Painted."}
    # None of them is charged for another one.
    assert {each.metadata["usage"]["calls"] for each in results} == {2}
    assert (dict(saver.storage), dict(saver.writes), dict(saver.blobs)) == ({}, {}, {})


def keys(result: Any) -> list[str]:
    return [each["key"] for each in result.metadata["questions"]]


async def test_one_text_does_not_answer_two_questions_and_answers_by_key_do():
    context = await waiting(TWO)
    asked = await turn({}, "Blue.", context)
    assert asked.success
    assert "1/painter/1" in asked.response
    assert keys(asked) == ["1/painter/1", "2/painter/1"]
    assert "project_state" not in asked.context_updates
    context = after(context, asked)
    first = await turn({}, {"2": "grey"}, context)
    assert keys(first) == ["1/painter/1"]
    context = after(context, first)
    last = await turn({"feedback": COMPLETE}, "blue", context)
    assert last.response == "Painted."
    plan = str(after(context, last).project_state["plan"])
    assert "The hall: blue" in plan
    assert "The attic: grey" in plan


async def test_a_model_that_a_function_calls_in_its_thread_is_charged_to_its_own_call():
    plan = always(planned("Ask", "asks"))
    with ScriptedModel({"think": plan, "*": always("Yes."), "feedback": always(DONE)}) as m:
        asks = working("asks", lambda _: m.invoke("Well?").text)
        agent = agent_of(m, asks, limits=Limits(max_model_calls=4))
        results = await asyncio.gather(
            *(agent.process("Ask.", EMPTY, run_id="the same") for _ in range(8))
        )
    assert {(each.response, each.metadata["usage"]["calls"]) for each in results} == {("Done.", 3)}


async def test_an_answer_to_what_is_not_asked_names_what_is():
    result = await turn({}, {"7/painter/1": "x"}, await waiting())
    assert "No open question has the key '7/painter/1'." in result.response
    assert "open: '1/painter/1'." in result.response
    assert result.metadata["problem"]


async def test_nothing_said_shows_once_more_what_waits():
    result = await turn({}, None, await waiting())
    assert (result.response, result.metadata["stage"]) == ("Which colour?", "question")


async def test_a_plan_is_approved_by_its_key_and_fingerprint_only():
    settings = RunSettings(approval="always")
    with ScriptedModel({"think": ONE}) as model:
        shown = await agent_of(model).process("Paint.", EMPTY, settings=settings)
    approval: Any = shown.metadata["approval"]
    context = after(EMPTY, shown)
    assert (context.current_stage, approval["key"]) == ("approval", "plan")
    for word in ("approve", {"plan": "approve"}, {"plan": {"action": "approve"}}):
        asked = await turn({}, word, context)
        assert asked.metadata["outcome"] == "waiting"
        assert approval["fingerprint"] in asked.response
    word = {"plan": {"action": "approve", "fingerprint": approval["fingerprint"]}}
    assert (await turn({}, word, context)).response == "Which colour?"


async def test_a_new_request_gives_up_what_waits_and_the_planner_knows_of_it():
    context = await waiting()
    with ScriptedModel({"think": f"{SIMPLE}Paris."}) as model:
        result = await agent_of(model).process("The capital?", context, new_request=True)
        (call,) = model.calls
    assert result.response == "Paris."
    assert "The hall" in "".join(str(each.content) for each in call.messages)
    assert "run" not in after(context, result).project_state


async def test_work_that_fails_keeps_what_was_reached_and_goes_on():
    class AwayError(Exception):
        pass

    done: list[str] = []

    def once(context: ExecutionContext) -> str:
        done.append(context.task_description)
        return "done"

    def failing(*_: Any, **__: Any) -> None:
        raise AwayError("the disk is full")

    worker = Specialist(name="once", intended_use="Works.", run=once, effects="unsafe")
    with ScriptedModel({"think": planned("Once", "once")}) as model:
        agent: Any = agent_of(model, worker)
        # The collector runs when the step is done.
        node = agent._workplace.graph.nodes["result_collector"]  # noqa: SLF001
        node.bound.afunc = failing
        failed = await agent.process("Do it.", EMPTY)
    assert (failed.success, failed.response) == (False, "")
    assert "the disk is full" in str(failed.error)
    context = after(EMPTY, failed)
    assert context.current_stage == "stopped"
    with ScriptedModel({"feedback": COMPLETE}) as model:
        refused = await agent_of(model, worker).process("And now?", context)
        result = await agent_of(model, worker).process(None, context)
    assert (refused.success, refused.context_updates) == (False, {})
    assert "None" in str(refused.error)
    assert (result.response, done) == ("Painted.", ["Once"])


async def test_a_step_that_fails_degrades_the_answer():
    def broken(_: ExecutionContext) -> str:
        raise ValueError("no paint left")

    script = {"think": planned("Paint", "broken"), "feedback": COMPLETE}
    limits = Limits(step_retries=0)
    result: Any = await turn(script, "Go.", EMPTY, working("broken", broken), limits=limits)
    assert (result.success, result.metadata["degraded"]) == (True, True)
    (failure,) = result.metadata["failures"]
    assert failure["step_id"] == 1
    assert "no paint left" in failure["error"]


async def test_a_stopped_turn_goes_on_later():
    began, stop = asyncio.Event(), asyncio.Event()

    async def slow(_: ExecutionContext) -> str:
        began.set()
        await stop.wait()
        return "done"

    script = {"think": planned("Wait", "slow"), "feedback": COMPLETE}
    with ScriptedModel(script) as model:
        agent = agent_of(model, working("slow", slow))
        turn = asyncio.ensure_future(agent.process("Wait.", EMPTY, stop=stop))
        await began.wait()
        stop.set()
        stopped = await turn
        assert (stopped.success, stopped.metadata["stage"]) == (True, "stopped")
        result = await agent.process(None, after(EMPTY, stopped))
    assert result.response == "Painted."


async def test_a_turn_that_is_cancelled_ends_and_leaves_nothing():
    began, ended = asyncio.Event(), asyncio.Event()

    async def slow(_: ExecutionContext) -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    with ScriptedModel({"think": [planned("Wait", "slow")] * 2}) as model:
        agent: Any = agent_of(model, working("slow", slow))
        turn = asyncio.ensure_future(agent.process("Wait.", EMPTY))
        await began.wait()
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        assert ended.is_set()
        began.clear(), ended.clear()
        events = agent.stream("Wait.", EMPTY)
        async for event in events:
            if getattr(event, "type", "") == "specialist_invoked":
                break
        await began.wait()
        await events.aclose()
        assert ended.is_set()
        assert dict(agent._workplace.graph.checkpointer.storage) == {}  # noqa: SLF001


async def test_a_stream_has_the_events_that_process_reports_and_ends_with_its_result():
    with ScriptedModel({"think": [f"{SIMPLE}Paris."] * 2}) as model:
        told = [each async for each in agent_of(model).stream("The capital?", EMPTY)]
        heard: list[Any] = []
        options: Any = {"on_event": heard.append}
        result = await agent_of(model).process("The capital?", EMPTY, **options)
    assert told[-1] == result
    types = [each.type for each in told[:-1]]  # type: ignore[union-attr]
    assert [each.type for each in heard] == types
    assert (types[0], types[-1]) == ("run_started", "task_completed")
    assert "answer_token" in types


async def test_the_thread_of_a_turn_is_written_when_the_turn_comes_to_rest(monkeypatch):
    agent: Any = agent_of(model := ScriptedModel({"think": TWO, "feedback": COMPLETE}))
    saver, steps = agent._workplace.graph.checkpointer, []  # noqa: SLF001
    put = saver.aput

    async def counted(config: Any, checkpoint: Any, metadata: Any, versions: Any) -> Any:
        steps.append(metadata["step"])
        return await put(config, checkpoint, metadata, versions)

    monkeypatch.setattr(saver, "aput", counted)
    with model:
        result = await agent.process("Paint.", EMPTY)
        asked = steps.copy()
        steps.clear()
        context = after(EMPTY, result)
        answers = {each["key"]: "Blue." for each in result.metadata["questions"]}
        assert (await agent.process(answers, context)).response == "Painted."
    # Before it is written what a context carried.
    assert (len(asked), len(steps)) == (1, 2)


async def test_events_of_a_run_inside_of_a_step_are_not_told_as_those_of_the_turn():
    inner = build_graph(team_of(ScriptedModel({"think": f"{SIMPLE}Inner."})))

    async def ask(_: ExecutionContext) -> str:
        return str((await run(inner, "Which?")).text)

    script = {"think": planned("Ask", "asks"), "feedback": COMPLETE}
    with ScriptedModel(script) as model:
        agent = agent_of(model, working("asks", ask))
        told: list[Any] = [each async for each in agent.stream("Go.", EMPTY)]
    assert told[-1].response == "Painted."
    assert {each.run_id for each in told[:-1]} == {"run-1"}
    assert [each.type for each in told[:-1]].count("run_started") == 1


async def test_what_is_told_in_a_thread_is_heard_in_the_loop(monkeypatch):
    where = threading.get_ident()
    threads = set[int]()

    def add(a: int) -> str:
        """Add one.

        Args:
            a: The number.
        """
        threads.add(threading.get_ident())
        return str(a + 1)

    heard = set[int]()

    class Loud(CompletedCalls):
        def take(self, event: Any) -> None:
            heard.add(threading.get_ident())
            super().take(event)

    def work(_: ExecutionContext) -> str:
        return str(tool(add).invoke({"a": 1}))

    monkeypatch.setattr("replan.sessions.turn.CompletedCalls", Loud)
    script = {"think": planned("Add", "adds"), "feedback": COMPLETE}
    result = await turn(script, "Add.", EMPTY, working("adds", work))
    assert where not in threads
    assert [each.tool_name for each in result.tool_execution_results] == ["add"]
    assert heard == {where}


async def test_a_history_that_no_store_keeps_is_refused_before_a_model_is_asked():
    told = Message(role="user", content="half: \ud83d", timestamp=NOON.isoformat())
    refused = await refusal("Go.", EMPTY.replace(dialogue_history=(told,)))
    assert "The messages cannot be kept." in refused


async def test_calls_of_tools_stand_in_the_history():
    def add(a: int, b: int) -> int:
        """Add two numbers.

        Args:
            a: The first.
            b: The second.
        """
        if a < 0:
            raise ValueError("it is negative")
        return a + b

    def calling(a: int) -> AIMessage:
        call = {"name": "add", "args": {"a": a, "b": 2}, "id": f"c{a}", "type": "tool_call"}
        return AIMessage("", tool_calls=[call])

    loop = [calling(1), calling(-1), "Three."]
    script = {"think": planned("Add", "adder"), "step 1": loop, "feedback": COMPLETE}
    with ScriptedModel(script) as model:
        adder = Specialist(name="adder", intended_use="Adds.", chat_model=model, tools=[add])
        result = await agent_of(model, adder).process("Add.", EMPTY)
    done, failed = result.tool_execution_results
    assert (done.id, done.tool_name, done.success) == ("c1", "add", True)
    assert done.arguments == {"a": 1, "b": 2}
    assert (done.result, done.error, done.started_at) == ("3", None, NOON.isoformat())
    assert (failed.success, failed.result) == (False, None)
    assert "it is negative" in str(failed.error)
    history = after(EMPTY, result).tool_execution_history
    assert history == result.tool_execution_results


def spoken(turns: int) -> AgentContext:
    """A session of many turns."""
    roles = ("user", "assistant")
    history = [
        Message(role=roles[n % 2], content=f"word {n}", timestamp=NOON.isoformat())  # type: ignore[arg-type]
        for n in range(2 * turns)
    ]
    return EMPTY.replace(dialogue_history=tuple(history))


async def test_the_graph_gets_what_memory_shows_and_no_more():
    with ScriptedModel({"think": f"{SIMPLE}Yes."}) as model:
        told = [each async for each in agent_of(model).stream("Well?", spoken(500))]
        (call,) = model.calls
    seen = "".join(str(each.content) for each in call.messages)
    assert "word 999" in seen
    assert "word 990" not in seen
    (applied,) = [each for each in told if getattr(each, "type", "") == "memory_applied"]
    assert (applied.visible, applied.omitted) == (9, 992)  # type: ignore[union-attr]
    updates: Any = told[-1].context_updates  # type: ignore[union-attr]
    assert len(updates["dialogue_history"]["append"]) == 2


async def test_a_summary_stands_for_the_beginning_in_the_next_turn_too():
    memory = MemoryOptions(mode="summary", history_limit=4, summary_trigger_messages=6)
    script = {"think": f"{SIMPLE}Yes.", "memory_summary": "They spoke of words."}
    context = after(spoken(5), await turn(script, "Well?", spoken(5), memory=memory))
    summary: Any = context.project_state["memory_summary"]
    assert summary["text"] == "They spoke of words."
    assert summary["last_covered_id"] == f"m{summary['covered'] - 1}"
    with ScriptedModel({"think": f"{SIMPLE}No."}) as model:
        await agent_of(model, memory=memory).process("And now?", context)
        (call,) = model.calls
    told = "".join(str(each.content) for each in call.messages)
    assert "They spoke of words." in told
    assert "word 0" not in told
    assert "word 9" in told


async def test_pictures_travel():
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
    blocks = [{"type": "text", "text": "What is it?"}, picture]
    with ScriptedModel({"think": [f"{SIMPLE}A cat."] * 2}) as model:
        result = await agent_of(model).process(blocks, EMPTY)
        context = after(EMPTY, result)
        await agent_of(model).process("Really?", context)
        told = [each.content for each in model.calls[1].messages]
    assert context.dialogue_history[0].content == tuple(blocks)
    assert any(isinstance(each, list) and picture in each for each in told)


@pytest.mark.parametrize(
    ("given", "context", "named"),
    [
        ("", EMPTY, "is empty"),
        (" \n", EMPTY, "is empty"),
        ([], EMPTY, "is empty"),
        (None, EMPTY, "nothing to continue"),
        ({"1": "x"}, EMPTY, "Nothing is asked"),
        ([{"no": "type"}], EMPTY, "user_input"),
        ("half \ud800", EMPTY, "user_input"),
        (3, EMPTY, "user_input"),
        ("Hi", {"dialogue_history": [{"role": "robot"}]}, "dialogue_history[0].role"),
        ("Hi", {"session_id": "s", "project_state": {"run": 3}}, "project_state.run"),
        ("Hi", {"session_id": "s", "project_state": {"memory_summary": 3}}, "memory_summary"),
        ("Hi", None, "this must have fields"),
    ],
)
async def test_bad_input_is_a_result_that_names_it(given, context, named):
    assert named in await refusal(given, context)


@pytest.mark.parametrize("change", ["state", "session", "signature", "unsigned"])
async def test_a_run_that_somebody_changed_is_refused(change):
    data: Any = (await waiting(key=KEY)).to_dict()
    run = data["project_state"]["run"]
    if change == "state":
        with opened_run(data) as inside:
            inside["state"]["settings"]["limits"] = {"max_model_calls": 10**6}
    elif change == "session":
        data["session_id"] = "another"
    elif change == "signature":
        run["signature"] = "0" * 64
    else:
        del run["signature"]
        run["packed"] = "not read"
    refused = await refusal("Blue.", data, KEY)
    assert "project_state.run.signature" in refused
    assert "packed" not in refused


async def test_a_store_that_writes_numbers_in_its_own_way_breaks_no_signature():
    def as_javascript(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: as_javascript(value[key]) for key in sorted(value)}
        if isinstance(value, list):
            return [as_javascript(each) for each in value]
        return int(value) if isinstance(value, float) and value.is_integer() else value

    data = as_javascript((await waiting(key=KEY)).to_dict())
    assert (await turn({"feedback": COMPLETE}, "Blue.", data, key=KEY)).response == "Painted."


class Found(BaseModel):
    value: Any


@pytest.mark.parametrize("value", [1e300, -0.0, 2**63 - 1, reduce(lambda v, _: [v], range(98), 1)])
async def test_whatever_a_step_may_give_travels_with_its_run(value):
    def look(_: ExecutionContext) -> Found:
        return Found(value=value)

    plan = f"{ONE}- [ ] 2. Look @looker\n"
    looker = Specialist("looker", "Looks.", run=look, effects="pure", output_type=Found)
    with ScriptedModel({"think": plan, "feedback": COMPLETE}) as model:
        asked = await agent_of(model, looker, key=KEY).process("Paint.", EMPTY)
        context = after(EMPTY, asked)
        result = await agent_of(model, looker, key=KEY).process("Blue.", context)
    assert (asked.metadata["stage"], result.response) == ("question", "Painted."), result.error


def test_a_short_key_is_refused_without_telling_it():
    with pytest.raises(ConfigurationError, match="context_key") as refused:
        agent_of(ScriptedModel({}), key="hunter2")
    assert "hunter2" not in str(refused.value)


def asking(done: list[str], **options: Any) -> Specialist:
    """A specialist that is a graph, which does something before it asks."""

    def look(_: MessagesState) -> dict[str, Any]:
        done.append("looked")
        return {}

    def ask(_: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage(str(interrupt("Which colour?")))]}

    graph = StateGraph(MessagesState).add_node("look", look).add_node("ask", ask)
    inner = graph.add_edge(START, "look").add_edge("look", "ask").compile(**options)
    outer = StateGraph(MessagesState).add_node("inner", inner).add_edge(START, "inner").compile()
    return Specialist(name="graph", intended_use="Paints.", invokable=outer)


async def test_a_graph_that_asks_by_itself_ends_the_turn_and_the_session_stays():
    done: list[str] = []
    result = await turn({"think": planned("Paint", "graph")}, "Paint.", EMPTY, asking(done))
    assert (result.success, result.context_updates, done) == (False, {}, ["looked"])
    for part in ("@graph", "so far: look", "undeclared, so unsafe", "ask_user", "storage"):
        assert part in str(result.error)


async def test_a_graph_that_declares_interrupts_is_refused_before_the_turn():
    done: list[str] = []
    graph = asking(done, interrupt_before=["ask"])
    result = await agent_of(ScriptedModel({}), graph).process("Paint.", EMPTY)
    assert (result.success, result.context_updates, done) == (False, {}, [])
    assert "@graph is compiled with interrupt_before" in str(result.error)


def secretive(context: ExecutionContext) -> str:
    return f"used {ask('The PIN?', secret=True)} and {ask('Which colour?')}"


@pytest.mark.parametrize("key", [None, KEY])
async def test_what_a_person_said_in_secret_is_encrypted_in_the_context(key):
    asks = working("asks", secretive)
    with ScriptedModel({"think": planned("Ask", "asks"), "feedback": DONE}) as model:
        agent = agent_of(model, asks, key=key)
        context = after(EMPTY, await agent.process("Ask.", EMPTY))
        context = after(context, await agent.process("4821", context))
        assert "4821" not in json.dumps(context.to_dict())
        carried: Any = context.project_state["run"]
        assert carried["is_encrypted"]
        with pytest.raises(ContextError, match="damaged"):
            unpacked_run(carried["packed"])
        # Bound to its session, and to its key.
        moved = {**context.to_dict(), "session_id": "other"}
        strange = await agent.process("Blue", moved)
        other = agent_of(ScriptedModel({}), asks, key=key and "another key of the test")
        refused = await other.process("Blue", context)
        assert (strange.success, refused.success) == (False, False)
        assert "project_state.run" in str(strange.error)
        assert "project_state.run" in str(refused.error)
        result = await agent.process("Blue", context)
    assert result.response == "Done."


async def test_a_run_that_is_too_large_when_it_is_unpacked_is_refused():
    bomb = base64.b64encode(zlib.compress(b"[" + b"0," * 20_000_000)).decode()
    data: Any = (await waiting()).to_dict()
    data["project_state"]["run"]["packed"] = bomb
    assert "more than 32,000,000 bytes" in await refusal("Blue.", data)


@pytest.mark.parametrize("packed", ["", "!", "AAAA", "eJw=", 3])
async def test_a_run_that_is_damaged_is_an_error_of_ours(packed):
    data: Any = (await waiting()).to_dict()
    data["project_state"]["run"]["packed"] = packed
    assert "project_state.run.packed" in await refusal("Blue.", data)


def paying(model: Any) -> Specialist:
    def pay(amount: int, idempotency_key: str) -> str:
        """Pay.

        Args:
            amount: How much.
        """
        return f"paid {amount} under {idempotency_key}"

    def ship(place: str) -> str:
        """Ship it.

        Args:
            place: Where to.
        """
        return f"shipped to {place}"

    return Specialist("buyer", "Buys.", chat_model=model, tools=[pay, ship], approve=["ship"])


def calling(tool: str, **arguments: Any) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": tool, "args": arguments, "id": tool}])


async def test_a_damaged_note_is_found_before_anything_runs():
    plan = planned("Buy it", "buyer")
    loop = [calling("pay", amount=5), calling("ship", place="Rome")]
    with ScriptedModel({"think": plan, "step 1": loop}) as model:
        asked = await agent_of(model, paying(model)).process("Buy.", EMPTY)
    whole = after(EMPTY, asked).to_dict()
    notes: Any = run_in(whole)["rows"]["notes"]
    damaged = set()
    for place, (key, note) in enumerate(notes):
        if not isinstance(note, dict) or key.startswith("answer_reported/"):
            continue
        damaged.add(key.partition("/")[0])
        changed = copy.deepcopy(whole)
        with opened_run(changed) as inside:
            inside["rows"]["notes"][place][1] = []
        with ScriptedModel({}) as model:
            result = await agent_of(model, paying(model)).process("yes", changed)
        assert (result.success, result.context_updates) == (False, {})
        assert f"project_state.run.rows.notes[{place}][1]" in str(result.error)
    assert damaged == {"reply", "call", "question"}


@pytest.mark.parametrize("key", ["x", "1", "1/painter", "1/painter/x", "2/painter/1", "1/p/1"])
async def test_a_question_of_another_key_is_found_before_anything_runs(key):
    for where, of_run in (
        ("state.questions['1/painter/1'].key", lambda it: it["state"]["questions"]["1/painter/1"]),
        ("rows.notes[1][1].key", lambda it: it["rows"]["notes"][1][1]),
    ):
        data: Any = (await waiting()).to_dict()
        with opened_run(data) as inside:
            of_run(inside)["key"] = key
        assert f"project_state.run.{where}" in await refusal("Blue.", data)


@pytest.mark.parametrize("is_missing", [True, False])
async def test_a_plan_that_no_run_can_have_is_found_before_anything_runs(is_missing):
    data: Any = (await waiting(TWO)).to_dict()
    with opened_run(data) as inside:
        if is_missing:
            del inside["state"]["current_plan"]
        else:
            inside["state"]["current_plan"]["steps"][1]["id"] = 1
    assert "project_state.run.state.current_plan" in await refusal({"1": "blue"}, data)


async def test_a_damaged_run_is_an_error_of_ours_and_runs_nothing_else():
    whole = json.dumps((await waiting(TWO)).to_dict())
    draw = random.Random(14)  # noqa: S311 - no secret
    odd = [None, True, -1, "", "x", [], {}, [[]], {"type": "ai"}, 2**63]

    def mutated(value: Any) -> Any:
        if isinstance(value, dict) and value and draw.random() < 0.9:
            name = draw.choice(sorted(value))
            return {**value, name: mutated(value[name])}
        if isinstance(value, list) and value and draw.random() < 0.9:
            place = draw.randrange(len(value))
            return [mutated(each) if n == place else each for n, each in enumerate(value)]
        return draw.choice(odd)

    outcomes = set()
    with ScriptedModel({"*": always("Nothing.")}) as model:
        agent = agent_of(model)
        for _ in range(60):
            data = json.loads(whole)
            data["project_state"]["run"]["packed"] = packed_run(mutated(run_in(data)))
            result = await agent.process({"1": "blue", "2": "grey"}, data)
            outcomes.add(result.success)
            assert result.success or result.error
    assert outcomes == {True, False}


async def test_a_context_that_nobody_signed_loosens_neither_settings_nor_steps() -> None:
    written = (await waiting()).to_dict()
    loose = {"on_doubt": "ask", "limits": {"max_rounds": 1000, "max_tokens": None}}
    with opened_run(written) as inside:
        inside["state"]["settings"] |= {**loose, "user": "somebody else", "approval": "never"}
        (step,) = inside["state"]["current_plan"]["steps"]
        step |= {"timeout": 1000, "max_retries": 100, "parameters": {"memory_mode": "full"}}
    with ScriptedModel({}) as model:
        agent = agent_of(
            model, approval="plan", on_doubt="fail", limits=Limits(max_rounds=3, max_tokens=900)
        )
        forged = AgentContext.from_dict(written)
        result = await agent.process(None, forged, stop=None)
    kept: Any = run_in(after(forged, result).to_dict())["state"]
    settings = RunSettings(**kept["settings"])
    assert (settings.approval, settings.on_doubt, settings.user) == ("plan", "fail", "")
    assert settings.limits == Limits(max_rounds=3, max_tokens=900)
    (step,) = kept["current_plan"]["steps"]
    assert not step.keys() & {"timeout", "max_retries", "parameters"}
