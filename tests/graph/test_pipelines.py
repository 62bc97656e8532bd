"""Pipelines as specialists of a plan: the same messages, whatever happens in the middle."""

import asyncio
import itertools
import re
from dataclasses import replace
from typing import Any

import pytest
from langgraph.graph import START, MessagesState, StateGraph

import made_pipelines as pipelines
from made_pipelines import Asking, FourDeep, KillingThreads, ModelHandler, texts
from replan import (
    ConfigurationError,
    Host,
    Limits,
    Specialist,
    StorageError,
    Team,
    ask_user,
    build_graph,
    open_runtime,
    open_storage,
)
from replan.assembly.graphs import viewer
from replan.assembly.pipelines import pipeline_agent, run_pipeline
from replan.cli.shared.worst_case import team_of
from replan.pipelines import Response
from replan.pipelines.phases.agent_and_handler import BaseAgent
from replan.pipelines.sub_threads.interaction_unit import InteractionUnit
from replan.pipelines.sub_threads.sub_thread_agent import SubThreadAgent
from replan.pipelines.sub_threads.sub_thread_handlers import NestedSubThreadHandler
from replan.ports.run_context import here
from replan.runs.reports import read_report
from replan.sessions import AgentContext, ClientAgentAdapter, build_agent
from replan.storage.memory_threads import MemoryThreads
from replan.testing import ScriptedModel, always
from replan.views.run.attempts import step_lines
from scripts import END

PLAN = {"plan": "# Write\n\n- [ ] 1. hello @writer\n"}


@pytest.fixture(autouse=True)
def fresh() -> None:
    pipelines.worked.clear()
    pipelines.failing.clear()


@pytest.fixture(params=["memory", "sqlite"])
def where(request: Any, tmp_path: Any) -> Any:
    return ":memory:" if request.param == "memory" else tmp_path / "runs.db"


def team(agent: Any, script: Any = None, *, writer: Any = None, **fields: Any) -> Team:
    model = ScriptedModel(script or {"feedback": always(END)})
    own = Specialist("writer", "Writes.", pipeline=agent, **(writer or {}))
    return Team(Host(model=model), [own], **fields)


async def alone_texts(agent: Any) -> Any:
    repository = MemoryThreads()
    await run_pipeline(agent, "hello", repository=repository)
    found = await repository.get_thread("main")
    assert found is not None
    return texts(found)


async def thread_of(storage: Any, run_id: str) -> Any:
    return await storage.threads.get_thread(f"{run_id}/1.0/writer")


async def test_a_pipeline_does_a_step_tells_of_its_phases_and_goes_with_its_run(where: Any) -> None:
    async with (
        open_storage(where) as storage,
        open_runtime(build_graph(team(FourDeep), storage=storage), storage=storage) as runtime,
    ):
        run = await runtime.start(PLAN, run_id="r")
        result = await run
        assert (result.outcome, result.results[1].text) == ("completed", "one/finish: hello")
        events = [event async for event in run.events()]
        phases = [(e.phase, e.path.count("messages")) for e in events if e.type == "phase_entered"]
        assert phases == [
            ("prepare_subthread", 0),
            ("execute_subthread", 0),
            ("initial_phase", 1),
            ("deepen", 1),
            ("initial_phase", 2),
            ("deepen", 2),
            ("initial_phase", 3),
            ("finish", 3),
            ("finish", 2),
            ("finish", 1),
        ]
        shown = [e.text for e in events if e.type == "placeholder_shown"]
        assert shown == ["Your request is being processed…"] + ["Running deep analysis…"] * 2
        assert texts(await thread_of(storage, "r")) == await alone_texts(FourDeep)
        record = await storage.runs.get("r")
        assert record is not None
        run_kept = await read_report(viewer(storage), storage, record, record.updated_at)
        drawn = step_lines(run_kept, 1)
        assert [line for line in drawn if "thread" in line] == [
            "thread of writer: completed, 2 messages (execute_subthread)",
            "  sub-thread: completed, 5 messages (initial_phase > deepen > finish)",
            "    sub-thread: completed, 5 messages (initial_phase > deepen > finish)",
            "      sub-thread: completed, 3 messages (initial_phase > finish)",
        ]
        await storage.runs.remove("r")
        assert await thread_of(storage, "r") is None


async def test_studio_s_drawing_shows_the_phases_of_every_level_and_the_nodes_of_graphs() -> None:
    inner = StateGraph(MessagesState)
    inner.add_node("thinks_hard", lambda _: {"messages": []})
    inner.add_edge(START, "thinks_hard")
    both = team(FourDeep)
    both.specialists.append(Specialist("thinker", "Thinks.", invokable=inner.compile()))
    drawing = build_graph(both).get_graph(xray=True).draw_mermaid()
    for node in ("prepare_subthread", "execute_subthread", "deepen", "finish", "thinks_hard"):
        assert node in drawing
    assert drawing.count("initial_phase") >= 3


async def test_an_automatic_attempt_does_the_units_that_are_missing(where: Any) -> None:
    failing = iter([RuntimeError("no figures")])
    count = 0

    class Once(dict[str, Any]):
        def __contains__(self, name: object) -> bool:
            nonlocal count
            count += name == "three/finish"
            return name == "three/finish" and count == 1

        def __getitem__(self, name: str) -> Any:
            return next(failing)

    pipelines.failing, before = Once(), pipelines.failing
    try:
        async with (
            open_storage(where) as storage,
            open_runtime(build_graph(team(FourDeep), storage=storage), storage=storage) as runtime,
        ):
            run = await runtime.start(PLAN, run_id="r")
            result = await run
            thread = await thread_of(storage, "r")
            (retried,) = [e async for e in run.events() if e.type == "specialist_retried"]
    finally:
        pipelines.failing = before
    worked = dict(pipelines.worked)
    assert re.fullmatch(r"@\w+ in the phase 'finish': RuntimeError: no figures\.", retried.error)
    assert (result.outcome, texts(thread)[:3]) == ("completed", await alone_texts(FourDeep))
    # The work of the first attempt stays: no earlier sub-thread, and no unit runs again but one.
    assert "_thread_history" not in thread.messages[1].meta
    assert {name for name, times in worked.items() if times > 1} <= {"three/finish"}


async def test_a_question_in_the_third_level_is_answered_in_another_process(tmp_path: Any) -> None:
    where = tmp_path / "runs.db"
    async with open_runtime(team(Asking), storage=where) as runtime:
        waits = await runtime.run(PLAN, run_id="r")
        assert waits.outcome == "waiting"
        assert pipelines.worked == {
            "one/initial_phase": 1,
            "two/initial_phase": 1,
            "three/initial_phase": 1,
        }
    async with (
        open_storage(where) as storage,
        open_runtime(build_graph(team(Asking), storage=storage), storage=storage) as runtime,
    ):
        view = await runtime.get("r")
        (ask,) = view.pending_questions
        result = await (await runtime.answer("r", {ask.key: "blue"}))
        assert result.outcome == "completed"
        thread = await thread_of(storage, "r")
    assert "'three/initial_phase: blue'" in repr(texts(thread))
    assert pipelines.worked["one/initial_phase"] == pipelines.worked["two/initial_phase"] == 1
    assert pipelines.worked["three/initial_phase"] == 2


async def test_the_same_words_in_another_round_are_another_question(tmp_path: Any) -> None:
    class Painting(SubThreadAgent):
        async def _initialize_interaction_units(self) -> None:
            kind = type("Painter", (pipelines.WritingHandler,), {"asks": True})
            walls, doors = kind(phase="walls", next_phase="doors"), kind(phase="doors")
            self.interaction_units = {
                each.phase: await InteractionUnit.create(state_handler=each)
                for each in (walls, doors)
            }

    async with open_runtime(
        team(pipelines.pipeline(Painting)), storage=tmp_path / "runs.db"
    ) as runtime:
        result = await runtime.run(PLAN, run_id="r")
        for colour in ("red", "blue"):
            (ask,) = (await runtime.get("r")).pending_questions
            result = await (await runtime.answer("r", {ask.key: colour}))
    assert (result.outcome, result.results[1].text) == ("completed", "/doors: blue")


async def test_a_question_travels_with_the_context_of_a_stateless_agent() -> None:
    model = ScriptedModel(
        {"think": "---\ncomplexity: complex\n---\n" + PLAN["plan"], "feedback": END}
    )
    writer = Specialist("writer", "Writes.", pipeline=Asking)
    first, second = (
        build_agent(Team(Host(model=model), [writer]), context_key="k" * 16) for _ in "12"
    )
    context = AgentContext(session_id="s")
    asked = await first.process("hello", context)
    assert asked.metadata["outcome"] == "waiting", asked
    context = AgentContext.from_dict(context.apply(asked.context_updates).to_dict())
    answered = await second.process("blue", context)
    assert (answered.success, answered.response) == (True, "The end.")
    assert pipelines.worked["one/initial_phase"] == pipelines.worked["two/initial_phase"] == 1
    model.assert_finished()


class Drafting(SubThreadAgent):
    async def _initialize_interaction_units(self) -> None:
        handlers = [
            ModelHandler(phase="draft", next_phase="critique"),
            ModelHandler(phase="critique", next_phase="revision"),
            ModelHandler(phase="revision"),
        ]
        self.interaction_units = {
            each.phase: await InteractionUnit.create(state_handler=each) for each in handlers
        }


ASKED = pipelines.pipeline(Drafting)


async def test_a_limit_in_the_middle_gives_a_part_that_names_the_phase() -> None:
    script = {"unit draft": "A draft.", "unit critique": "Too long.", "feedback": END}
    model = ScriptedModel(script)
    limits = Limits(max_model_calls=3)
    async with open_runtime(
        team(ASKED, writer={"unit_model": model}, limits=limits), storage=":memory:"
    ) as runtime:
        result = await runtime.run(PLAN)
    text = result.results[1].text
    assert (result.outcome, result.limit_reached) == ("partial", "max_model_calls")
    assert "Too long." in text or "A draft." in text
    assert "The work ended in the phase" in text


async def test_a_stop_ends_a_session_s_turn_after_the_phase_at_any_depth() -> None:
    stop = asyncio.Event()

    async def handle(self: Any, task: Any, thread: Any, agent: Any) -> Any:
        stop.set()
        while not here().is_stopping():  # noqa: ASYNC110 - what is seen here has no event
            await asyncio.sleep(0)
        return await pipelines.WritingHandler.handle(self, task, thread, agent)

    level = pipelines.level
    deep = pipelines.pipeline(level("one", level("two", level("three", handle=handle))))
    agent, context = pipeline_agent(deep), AgentContext(session_id="s")
    stopped = await agent.process("hello", context, stop=stop)
    assert (stopped.success, stopped.response) == (True, "")
    assert stopped.metadata["outcome"] == "interrupted"
    assert "three/finish" not in pipelines.worked
    context = context.apply(stopped.context_updates)
    assert context.current_stage == "stopped"
    ended = await agent.process(None, context)
    assert ended.response == "one/finish: hello"
    assert set(pipelines.worked.values()) == {1}


async def test_a_limit_of_a_session_s_turn_gives_a_part_and_the_next_turn_goes_on() -> None:
    script = {"unit draft": "A draft.", "unit critique": "Too long.", "unit revision": "Shorter."}
    with ScriptedModel(script) as model:
        agent = pipeline_agent(ASKED, model=model, limits=Limits(max_model_calls=2))
        context = AgentContext(session_id="s")
        cut = await agent.process("hello", context)
        assert (cut.success, cut.metadata["outcome"]) == (True, "partial")
        assert "Too long.\n\n(The work ended in the phase 'revision'" in cut.response
        assert cut.metadata["usage"]["calls"] == 2  # type: ignore[index,call-overload]
        context = context.apply(cut.context_updates)
        assert context.current_stage == "stopped"
        result = await agent.process(None, context)
        assert (result.success, result.response) == (True, "Shorter.")
    count = pipelines.worked

    class Painter(pipelines.WritingHandler):
        async def handle(self, task: Any, thread: Any, agent: Any) -> Any:
            colour = ask_user("Which colour?")
            count["painted"] += 1
            if count["painted"] == 1:
                raise RuntimeError("no brush")
            return Response(str(colour))

    painting, context = pipeline_agent(_one_phase(Painter)), AgentContext(session_id="s")
    for said, response in (("hello", "Which colour?"), ("blue", "blue")):
        result = await painting.process(said, context)
        assert result.response == response, said
        context = context.apply(result.context_updates)
    slow = type("Slow", (pipelines.WritingHandler,), {"handle": _forever})
    waits = await pipeline_agent(_one_phase(slow), limits=Limits(max_seconds=0.05)).process(
        "hello", AgentContext(session_id="s")
    )
    assert (waits.metadata["stage"], waits.metadata["limit_reached"]) == ("stopped", "max_seconds")
    assert waits.response == "- 1. hello: not run, the limit max_seconds was reached"


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda _: 7, "project_state.threads.s: this must have fields"),
        (lambda rows: {**rows, "": 7}, "its row cannot be read"),
        (lambda rows: {**rows, "messages.0": 7}, "its row 'messages.0' cannot be read"),
        (lambda rows: _with_setting(rows, "_questions", [7]), "settings._questions[0]"),
        (lambda rows: _with_setting(rows, "_next_tasks", [{}]), "settings._next_tasks[0].name"),
        (lambda rows: _with_setting(rows, "brief_status", {"round": "x"}), "brief_status.round"),
    ],
)
async def test_a_damaged_thread_is_found_before_anything_works_on_it(change: Any, named: str):
    asks = type("Asks", (pipelines.WritingHandler,), {"asks": False})
    context = AgentContext(session_id="s")
    done = await pipeline_agent(_one_phase(asks)).process("hello", context)
    data: Any = context.apply(done.context_updates).to_dict()
    threads = data["project_state"]["threads"]
    threads["s"] = change(threads["s"])
    before = pipelines.worked.total()
    result = await pipeline_agent(_one_phase(asks)).process("blue", data)
    assert (result.success, result.context_updates) == (False, {})
    assert named in str(result.error)
    assert pipelines.worked.total() == before


def _with_setting(rows: Any, name: str, value: Any) -> Any:
    header = rows[""]
    return {**rows, "": {**header, "settings": {**header["settings"], name: value}}}


async def test_a_pipeline_that_asks_forever_ends_at_its_questions() -> None:
    class Curious(pipelines.WritingHandler):
        async def handle(self, task: Any, thread: Any, agent: Any) -> Any:
            for number in itertools.count():
                ask_user(f"Question {number}?")

    agent = pipeline_agent(_one_phase(Curious), limits=Limits(max_questions=2))
    context, told = AgentContext(session_id="s"), list[str]()
    for said in ("hello", "one", "two", None, "anew"):
        result = await agent.process(said, context)
        context = context.apply(result.context_updates)
        told.append(result.response)
    assert told[:2] == ["Question 0?", "Question 1?"]
    assert "The limit max_questions=2 is reached" in told[2]
    # What was answered is not asked again by work that goes on.
    assert told[3:] == ["Question 2?", "Question 0?"]


async def _forever(*_: Any) -> Any:
    await asyncio.Event().wait()


def _one_phase(kind: Any) -> Any:
    class Main(BaseAgent):
        async def _initialize_state_handlers(self) -> None:
            self.state_handlers = {"tea_tasting": kind(phase="tea_tasting")}

    return Main


async def test_no_unit_is_asked_again_whose_message_is_stored(tmp_path: Any) -> None:
    where, stop = tmp_path / "runs.db", {}

    async def critique(messages: Any) -> str:
        await stop["run"].stop()
        return "Too long."

    script = {
        "unit draft": "A draft.",
        "unit critique": [critique, "Too long."],
        "unit revision": "Shorter.",
    }
    with ScriptedModel(script) as model:
        writer = {"unit_model": model}
        async with open_runtime(team(ASKED, writer=writer), storage=where, grace=0) as runtime:
            stop["run"] = await runtime.start(PLAN, run_id="r")
            stopped = await stop["run"]
        assert stopped.outcome == "interrupted"
        # The unit that was cut off is asked again, the one before it is not.
        async with open_runtime(team(ASKED, writer=writer), storage=where) as runtime:
            result = await runtime.resume("r")
        assert result.results[1].text == "Shorter."
        assert result.usage.calls > 0


async def test_a_team_with_a_pipeline_that_cannot_be_walked_is_refused() -> None:
    with pytest.raises(
        ConfigurationError, match="this is not the class of a pipeline's main agent"
    ):
        team("no class")
    broken = type("Broken", (FourDeep,), {"_initialize_state_handlers": _nothing})
    with pytest.raises(
        ConfigurationError, match=r"Broken\.state_handlers: the agent has no phases"
    ):
        build_graph(team(broken))


class Deeper(NestedSubThreadHandler):
    phase = "deepen"


class Endless(SubThreadAgent):
    async def _initialize_interaction_units(self) -> None:
        self.interaction_units = {"deepen": await InteractionUnit.create(state_handler=Deeper())}


@pytest.mark.parametrize(
    ("below", "told"),
    [
        (Endless, r"its sub-threads have no end .got 'Main -> Endless -> Endless'"),
        (None, r"Deeper\.sub_thread_agent: it names no agent of a sub-thread\. Give"),
        (FourDeep, r"Deeper\.sub_thread_agent: it names no agent of a sub-thread"),
        (pipelines.level("a", pipelines.level("b", Endless)), "its sub-threads have no end"),
    ],
)
@pytest.mark.parametrize("form", ["team", "session", "alone"])
async def test_levels_that_cannot_be_walked_are_refused_before_anything_is_done(
    below: Any, told: str, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Deeper, "sub_thread_agent", below)
    agent, repository = pipelines.pipeline(Endless), MemoryThreads()

    async def begin() -> None:
        if form == "team":
            build_graph(team(agent))
        elif form == "session":
            pipeline_agent(agent)
        else:
            await run_pipeline(agent, "hello", repository=repository)

    with pytest.raises(ConfigurationError, match=told):
        await begin()
    assert await repository.get_thread("main") is None


async def _nothing(self: Any) -> None:
    pass


async def test_a_pipeline_is_an_agent_whose_questions_travel_with_the_context() -> None:
    context = AgentContext(session_id="s")
    asked = await pipeline_agent(Asking).process("hello", context)
    assert (asked.success, asked.response, asked.metadata["stage"]) == (
        True,
        "Which colour?",
        "question",
    )
    context = AgentContext.from_dict(context.apply(asked.context_updates).to_dict())
    heard = [each async for each in pipeline_agent(Asking).stream("blue", context)]
    result: Any = heard[-1]
    assert (result.success, result.response) == (True, "one/finish: hello")
    assert [each.phase for each in heard[:-1] if each.type == "phase_entered"][-3:] == [
        "finish"
    ] * 3
    context = context.apply(result.context_updates)
    assert [each.content for each in context.dialogue_history] == [
        "hello",
        "Which colour?",
        "blue",
        "one/finish: hello",
    ]
    assert pipelines.worked["two/initial_phase"] == 1
    # A failure keeps what there is: the session goes on where it failed.
    pipelines.failing["one/finish"] = RuntimeError("no figures")
    failed = await pipeline_agent(FourDeep).process("more", context)
    assert (failed.success, failed.metadata["outcome"]) == (False, "failed")
    assert "phase 'finish'" in str(failed.error)
    assert "no figures" in str(failed.error)
    context = context.apply(failed.context_updates)
    pipelines.failing.clear()
    again = await pipeline_agent(FourDeep).process(None, context)
    assert (again.response, again.metadata["outcome"]) == ("one/finish: more", "completed")


async def test_a_turn_whose_storage_fails_after_any_write_goes_on_from_there(
    tmp_path: Any,
) -> None:
    gone = StorageError("the storage", "It is gone.", "Bring it back.")
    turns, counts, writes, is_over = ("hello", "blue", "more"), list[int](), 0, False
    async with open_storage(tmp_path / "runs.db") as storage:
        whole = ClientAgentAdapter(storage, pipeline_agent(Asking))
        while not is_over:
            pipelines.worked.clear()
            told, is_over, session = list[str](), True, f"{writes}"
            for said in turns:
                failing: Any = KillingThreads(storage.threads, writes, gone)
                broken = replace(storage, threads=failing)
                client = ClientAgentAdapter(broken, pipeline_agent(Asking))
                result = await client.process(session, said, turn_id=said)
                if not result.success:
                    assert "It is gone" in str(result.error)
                    result, is_over = await whole.process(session, None), False
                told.append(result.response)
            assert told == ["Which colour?", "one/finish: hello", "Which colour?"], writes
            rows: Any = (await whole.export(session)).project_state["threads"]
            heard = [each["text"] for each in rows[session].values() if "text" in each]
            assert (rows[session][""]["id"], heard[0]) == (session, "hello"), writes
            counts.append(sum(pipelines.worked.values()))
            writes += 3
    # Only the handler that was cut off works again, once in each turn.
    assert len(counts) > 4
    assert max(counts) <= counts[-1] + 3, counts


async def test_the_turns_of_a_pipeline_are_runs_that_go_with_their_session() -> None:
    async with open_storage(":memory:") as storage:
        client = ClientAgentAdapter(storage, pipeline_agent(FourDeep))
        told = [(await client.process("s", said)).response for said in ("hello", "more")]
        assert told == ["one/finish: hello", "one/finish: more"]
        runs = await storage.runs.recent(9, {"session": "s"})
        assert [(each.title, each.outcome) for each in runs] == [
            ("more", "completed"),
            ("hello", "completed"),
        ]
        assert await storage.threads.rows(runs[0].run_id)
        await client.undo("s")
        rows: Any = (await client.export("s")).project_state["threads"]
        assert "more" not in str(rows["s"])
        await client.delete("s")
        assert not [rows for run in runs for rows in await storage.threads.rows(run.run_id)]


async def test_the_outlook_counts_the_rounds_that_there_may_be() -> None:
    asks = team_of(team(ASKED, writer={"unit_model": "offline"}))
    rules = team_of(team(FourDeep))
    # The preparation, and 20 rounds of the sub-thread; two calls for each reply.
    assert (asks.per_try, rules.per_try) == ({"writer": 42}, {"writer": 0})


async def test_a_run_whose_storage_fails_after_any_write_goes_on_from_there(tmp_path: Any) -> None:
    whole = await alone_texts(FourDeep)
    gone = StorageError("the storage", "It is gone.", "Bring it back.")
    async with open_storage(tmp_path / "runs.db") as storage:
        for writes in range(1, 30, 6):
            pipelines.worked.clear()
            killing: Any = KillingThreads(storage.threads, writes, gone)
            failing = replace(storage, threads=killing)
            config: Any = {"configurable": {"thread_id": f"t{writes}"}}
            graph: Any = build_graph(team(FourDeep), storage=failing)
            with pytest.raises(StorageError, match="It is gone"):
                await graph.ainvoke(PLAN, config)
            graph = build_graph(team(FourDeep), storage=storage)
            state = await graph.ainvoke(None, config)
            assert state["outcome"] == "completed", writes
            thread = await thread_of(storage, state["run_id"])
            assert texts(thread) == whole, writes
            assert set(pipelines.worked.values()) == {1}, writes
