"""A client keeps sessions: each turn once, whoever delivers it, and whoever else is there."""

import asyncio
import json
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import interrupt

from databases import opened_database
from replan import (
    ExecutionContext,
    Host,
    InputError,
    MemoryOptions,
    Specialist,
    Team,
    ask_user,
    open_runtime,
    open_storage,
)
from replan.errors import ContextError, SessionBusyError, SessionConflictError
from replan.ports.session_store import SessionKey
from replan.sessions import AgentContext, AgentResult, ClientAgentAdapter, build_agent
from replan.sessions.session_runs import lock_name
from replan.state.session import context as session_context
from replan.storage.databases.cipher import Cipher
from replan.storage.sessions import Sessions
from replan.testing import ScriptedModel, always
from scripts import SIMPLE

ONE = "---\ncomplexity: complex\n---\n- [ ] 1. The hall @painter\n"
COMPLETE = "---\nverdict: complete\n---\nPainted."
KEY = "a key that only the test knows"
OVER = datetime(2100, 1, 1, tzinfo=UTC)


@pytest.fixture(params=["memory", "sqlite"])
async def storage(request, tmp_path):
    where = ":memory:" if request.param == "memory" else tmp_path / "runs.sqlite"
    async with open_storage(where) as storage:
        yield storage


@pytest.fixture
async def memory():
    async with open_storage(":memory:") as storage:
        yield storage


@pytest.fixture
async def session_store(tmp_path):
    """A store of sessions alone, which keeps no runs."""
    async with opened_database("memory", tmp_path) as database:
        yield Sessions(database, Cipher())


class Painter:
    """A specialist who asks for the colour first, and knows what it painted."""

    def __init__(self) -> None:
        self.painted: list[tuple[str, str]] = []

    def __call__(self, context: ExecutionContext, idempotency_key: str) -> str:
        colour = ask_user("Which colour?")
        self.painted.append((colour, idempotency_key))
        return f"{context.task_description}: {colour}"


def agent_of(model: Any, painter: Any = None, name: str = "painter") -> Any:
    paint = Specialist(name=name, intended_use="Paints.", run=painter or Painter())
    return build_agent(Team(host=Host(model=model), specialists=[paint]), context_key=KEY)


def client_of(store: Any, model: Any, painter: Any = None, **whose: Any) -> ClientAgentAdapter:
    return ClientAgentAdapter(store, agent_of(model, painter), **whose)


async def texts_of(client, session="s"):
    return [each.content for each in (await client.history(session)).messages]


async def test_a_turn_that_is_delivered_again_gives_the_recorded_result(storage):
    with ScriptedModel({"think": [ONE, f"{SIMPLE}Paris."], "feedback": COMPLETE}) as model:
        painter = Painter()
        client = client_of(storage, model, painter)
        turns = [("1", "Paint."), ("2", "Blue."), ("3", "The capital?")]
        results = []
        for turn, text in turns:
            results.append(await client.process("s", text, turn_id=turn))
            # Another process has it from the storage.
            other = client_of(storage, model, painter)
            again = await other.process("s", text, turn_id=turn)
            assert again == results[-1].replace(context_updates={})
        with pytest.raises(InputError, match="'2' was taken with another input"):
            await client.process("s", "Red.", turn_id="2")
    assert [each.response for each in results] == ["Which colour?", "Painted.", "Paris."]
    assert [each.metadata["version"] for each in results] == [1, 2, 3]
    assert [colour for colour, _ in painter.painted] == ["Blue."]
    assert await texts_of(client) == [
        "Paint.", "Which colour?", "Blue.", "Painted.", "The capital?", "Paris.",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("replies", "apart"),
    [
        ({"think": f"{SIMPLE}Paris."}, []),
        ({"think": SIMPLE, "direct_answer": "Paris."}, ["direct_answer"]),
    ],
)
async def test_an_answer_is_kept_with_its_call(memory, replies, apart):
    with ScriptedModel(replies) as model:
        team = Team(host=Host(model=model), specialists=[Specialist("painter", "Paints.", run=str)])
        result = await ClientAgentAdapter(memory, build_agent(team)).process("s", "The capital?")
        async with open_runtime(team, storage=memory) as runtime:
            thread = {"configurable": {"thread_id": result.metadata["run_id"]}}
            nodes = [each.next async for each in runtime.graph.aget_state_history(thread)]
    assert result.response == "Paris."
    begun = [("__start__",), ("begin",), ("think",), *((node,) for node in apart)]
    assert nodes[::-1] == [*begun, ()]


async def test_a_session_that_another_client_holds_costs_nobody_a_model_call(memory):
    with ScriptedModel({"think": f"{SIMPLE}Paris."}) as model:
        client = client_of(memory, model)
        async with memory.holds.lock(lock_name(SessionKey("", "", "s"))):
            with pytest.raises(SessionBusyError, match="'s'"):
                await client.process("s", "The capital?")
        # Another session, and this one later.
        assert (await client.process("s", "The capital?")).response == "Paris."


async def test_of_two_clients_who_race_none_loses_a_turn_or_pays_for_one_in_vain(storage):
    with ScriptedModel({"think": always(f"{SIMPLE}Paris.")}) as model:
        clients = [client_of(storage, model) for _ in range(2)]
        results = list[Any]()
        for number in range(5):
            both = (each.process("s", f"{number}/{n}") for n, each in enumerate(clients))
            results += await asyncio.gather(*both, return_exceptions=True)
        taken = [each for each in results if isinstance(each, AgentResult)]
        # Who waited for more than a second was refused, and sends the turn again.
        assert all(isinstance(each, AgentResult | SessionBusyError) for each in results)
        assert len(taken) >= 5
        assert len(model.calls) == len(taken)
    kept = await clients[0].export("s")
    assert len(kept.dialogue_history) == 2 * len(taken)
    assert sorted(each.metadata["version"] for each in taken) == [*range(1, len(taken) + 1)]  # type: ignore[type-var]


async def test_a_store_that_cannot_hold_refuses_the_second_one_who_names_both_versions(
    session_store,
):
    with ScriptedModel({"think": always(f"{SIMPLE}Paris.")}) as model:
        clients = [client_of(session_store, model) for _ in range(3)]
        both = (each.process("s", "Hello.") for each in clients)
        results = await asyncio.gather(*both, return_exceptions=True)
        refused = [each for each in results if isinstance(each, SessionConflictError)]
        assert [(each.expected, each.found) for each in refused] == [(0, 1)] * 2
        assert (await clients[0].process("s", "Hello.")).metadata["version"] == 2
    assert len(await texts_of(clients[0])) == 4


@pytest.mark.parametrize("keeps_runs", [True, False])
async def test_a_turn_is_taken_back_and_another_one_takes_its_place(keeps_runs, session_store):
    with ScriptedModel({"think": ONE, "feedback": always(COMPLETE)}) as model:
        painter = Painter()
        async with open_storage(":memory:") as storage:
            client = client_of(storage if keeps_runs else session_store, model, painter)
            await client.process("s", "Paint.")
            await client.process("s", "Blue.", turn_id="blue")
            taken = await client.undo("s")
            assert [each.content for each in taken.messages] == ["Blue.", "Painted."]
            assert "outside stays" in taken.note
            assert (await client.export("s")).current_stage == "question"
            assert await texts_of(client) == ["Paint.", "Which colour?"]
            # A message that is delivered late once more is none to do again.
            assert (await client.process("s", "Blue.", turn_id="blue")).response == "Painted."
            await client.process("s", "Red.")
            last = await client.process("s", "Green.", edit=True)
            assert await texts_of(client) == ["Paint.", "Which colour?", "Green.", "Painted."]
            await client.undo("s")
            assert (await texts_of(client))[2:] == ["Red.", "Painted."]
            for _ in range(2):
                await client.undo("s")
            with pytest.raises(InputError, match="no turn to take back"):
                await client.undo("s")
    assert "The hall: Green." in str(last.metadata["plan"])
    assert [colour for colour, _ in painter.painted] == ["Blue.", "Red.", "Green."]
    # A service that knows keys sees the same work for the same colour only.
    assert len({key for _, key in painter.painted}) == 1


async def test_a_session_is_unknown_to_others_and_goes_with_all_that_belongs_to_it(storage):
    with ScriptedModel({"think": [ONE, f"{SIMPLE}Hello, Tom."]}) as model:
        client = client_of(storage, model, user="anna", tenant="shop")
        await client.process("s", "Paint.")
        tom = client.as_user("tom", "shop")
        for asked in (tom.export("s"), tom.history("s"), tom.undo("s"), tom.delete("s")):
            with pytest.raises(InputError, match="no session 's' here"):
                await asked
        assert await tom.sessions() == []
        await tom.process("s", "Hello.")
        (record,) = await client.sessions()
        assert (record.session_id, record.title, record.stage) == ("s", "Paint.", "question")
        runs = await storage.runs.recent(9)
        assert {each.labels["user"] for each in runs} == {"anna", "tom"}
        (own,) = [each.run_id for each in runs if each.labels["user"] == "anna"]
        assert await storage.log.events(own)
        await client.delete("s")
        assert [each.labels["user"] for each in await storage.runs.recent(9)] == ["tom"]
        assert not await storage.log.events(own)
        assert not await storage.log.ledger(own)
        config: Any = {"configurable": {"thread_id": own}}
        assert await storage.checkpointer.aget_tuple(config) is None
        assert await client.sessions() == []
        assert (await tom.export("s")).current_stage == "done"
        # What nobody used for long goes by itself.
        assert await client.expire(OVER) == 0
        assert await tom.expire(datetime.now(UTC) - timedelta(days=1)) == 0
        assert await client.expire(OVER, everybody=True) == 1
        assert await storage.runs.recent(9) == []


async def test_a_session_moves_to_another_storage_with_the_run_that_waits(memory):
    with ScriptedModel({"think": ONE, "feedback": COMPLETE}) as model:
        client = client_of(memory, model)
        await client.process("s", "Paint.")
        sent = json.loads(json.dumps((await client.export("s")).to_dict()))
        async with open_storage(":memory:") as elsewhere:
            there = client_of(elsewhere, model)
            assert await there.adopt(sent) == 1
            assert (await there.process("s", "Blue.")).response == "Painted."
            for old in (sent, (await client.export("s"))):
                with pytest.raises(SessionConflictError, match="version 2, and this is from ve"):
                    await there.adopt(old)
            wrong = {**sent, "session_id": "t", "project_state": {"memory_summary": {"text": 1}}}
            with pytest.raises(ContextError, match="memory_summary"):
                await there.adopt(wrong)
            back = await there.export("s")
        assert await client.adopt(back) == 2
    assert await texts_of(client) == ["Paint.", "Which colour?", "Blue.", "Painted."]
    with pytest.raises(InputError, match="no turn to take back"):
        await client.undo("s")


async def test_a_session_whose_graph_waits_goes_on_in_its_storage_only(storage, memory):
    done: list[str] = []

    def look(_: Any) -> dict[str, Any]:
        done.append("looked")
        return {}

    def ask(_: Any) -> dict[str, Any]:
        first = interrupt("Which?")
        return {"messages": [AIMessage(f"{first} {interrupt('And?')}")]}

    def client(store: Any, model: Any) -> ClientAgentAdapter:
        graph = StateGraph(MessagesState).add_node("look", look).add_node("ask", ask)
        inner = graph.add_edge(START, "look").add_edge("look", "ask").compile()
        asks = Specialist("painter", "Paints.", invokable=inner)
        agent = build_agent(Team(host=Host(model=model), specialists=[asks]), context_key=KEY)
        return ClientAgentAdapter(store, agent)

    with ScriptedModel({"think": ONE, "feedback": COMPLETE}) as model:
        here = client(storage, model)
        assert (await here.process("s", "Paint.")).response == "Which?"
        assert (await here.process("s", None)).response == "Which?"
        second = await client(storage, model).process("s", "Blue", turn_id="t")
        again = await here.process("s", "Blue", turn_id="t")
        assert (second.response, again.response) == ("And?", "And?")
        there = client(memory, model)
        await there.adopt((await here.export("s")).to_dict())
        lost = await there.process("s", "Red")
        last = await here.process("s", "Red")
    assert "only the storage that it began in" in str(lost.error)
    assert (last.error, last.response, done) == (None, "Painted.", ["looked"])
    assert "Blue Red" in str(last.metadata["plan"])


async def test_the_run_of_another_session_is_none_to_go_on_with():
    async with open_storage(":memory:") as storage:
        with ScriptedModel({"think": ONE}) as model:
            agent = build_agent(agent_team(model))
            anna = ClientAgentAdapter(storage, agent, user="anna")
            await anna.process("s", "Paint.")
            stolen = await anna.export("s")
            eve = anna.as_user("eve")
            await eve.adopt(stolen)
            refused = await eve.process("s", "Blue.")
            with pytest.raises(InputError, match="another session"):
                await eve.adopt(stolen.replace(session_metadata={"version": 9}))
        assert "another session" in str(refused.error)
        assert len(await storage.runs.recent(9)) == 1


class Own:
    """A store of one's own, as its owner wrote it: it knows nothing of turns."""

    def __init__(self) -> None:
        self.kept: dict[str, Any] = {}

    def load_session_context(self, session_id: str) -> Any:
        return self.kept.get(session_id)

    def update_session_context(self, session_id: str, updates: dict[str, Any]) -> None:
        before = self.kept.get(session_id) or {"session_id": session_id}
        after = AgentContext.from_dict(before).apply(updates).to_dict()
        self.kept[session_id] = json.loads(json.dumps(after))


class OwnAsync(Own):
    async def load_session_context(self, session_id: str) -> Any:  # type: ignore[override]
        await asyncio.sleep(0)
        return super().load_session_context(session_id)

    async def update_session_context(self, session_id, updates) -> None:  # type: ignore[override]
        await asyncio.sleep(0)
        super().update_session_context(session_id, updates)


@pytest.mark.parametrize("kind", [Own, OwnAsync])
async def test_an_object_with_two_methods_is_a_store(kind):
    own = kind()
    with ScriptedModel({"think": [ONE], "feedback": COMPLETE}) as model:
        client = client_of(own, model, user="anna")
        await client.process("s", "Paint.", turn_id="1")
        assert (await client.process("s", "Paint.", turn_id="1")).response == "Which colour?"
        assert (await client.process("s", "Blue.")).response == "Painted."
    assert (await client.history("s", limit=2)).before == 2
    with pytest.raises(InputError, match="can load and update only"):
        await client.undo("s")
    with pytest.raises(InputError, match="no session 's' here"):
        await client.as_user("tom").export("s")


@pytest.mark.parametrize("kind", [Own, OwnAsync])
async def test_clients_of_a_store_that_cannot_hold_take_turns_in_one_process(kind):
    own = kind()
    with ScriptedModel({"think": always(f"{SIMPLE}Paris.")}) as model:
        clients = [client_of(own, model) for _ in range(2)]
        turns = [clients[n % 2].process("s", f"{n}") for n in range(5)]
        streams = [each async for each in clients[0].stream("s", "streamed")]
        results = await asyncio.gather(*turns, clients[1].process("other", "Hello."))
        assert len(model.calls) == 7
    assert streams[-1].metadata["version"] == 1
    versions = [each.metadata["version"] for each in results]
    assert (sorted(versions[:5]), versions[5]) == ([2, 3, 4, 5, 6], 1)
    assert len((await clients[0].export("s")).dialogue_history) == 12


async def test_of_two_processes_with_such_a_store_the_later_one_is_refused():
    here, there = Own(), Own()
    there.kept = here.kept
    asked: list[Any] = []

    async def answer(request: Any) -> str:
        asked.append(request)
        if len(asked) == 1:
            # While this turn asks its model, the other process takes one and is done.
            await client_of(here, model).process("s", "Hello.")
        return f"{SIMPLE}Paris."

    with (
        ScriptedModel({"think": always(answer)}) as model,
        pytest.raises(SessionConflictError) as refused,
    ):
        await client_of(there, model).process("s", "Hello.")
    assert (refused.value.expected, refused.value.found) == (0, 1)
    assert len(here.kept["s"]["dialogue_history"]) == 2


class Mixed(Own):
    """A store that answers with another session."""

    def load_session_context(self, session_id: str) -> Any:
        return super().load_session_context("other")


class MixedTurns(Sessions):
    async def load(self, key, version=None):
        return await super().load(key._replace(session_id="other"), version)


@pytest.mark.parametrize("has_turns", [False, True])
async def test_a_store_that_answers_with_another_session_is_refused(has_turns, tmp_path):
    async with opened_database("memory", tmp_path) as database:
        await refused_as_mixed(MixedTurns(database, Cipher()) if has_turns else Mixed())


async def refused_as_mixed(store):
    with ScriptedModel({"think": [f"{SIMPLE}Paris."]}) as model:
        client = client_of(store, model)
        await client.process("other", "The capital?")
        for asked in (client.process("s", "Hello."), client.export("s")):
            with pytest.raises(ContextError, match=r"session_id.*asked for the session 's'"):
                await asked
        assert len(model.calls) == 1


class OwnLarge(Own):
    """A store whose sessions may have any size."""

    def update_session_context(self, session_id: str, updates: dict[str, Any]) -> None:
        before = self.kept.get(session_id) or {"session_id": session_id}
        after = AgentContext.from_dict(before, most_bytes=10**15).apply(updates).to_dict()
        self.kept[session_id] = json.loads(json.dumps(after))


@pytest.mark.parametrize("kind", ["storage", "own store"])
async def test_a_session_in_a_store_goes_on_beyond_the_bound_of_a_carried_one(
    storage, kind, monkeypatch
):
    monkeypatch.setattr(session_context, "MOST_ENTRIES", 4)
    with ScriptedModel({"think": always(f"{SIMPLE}Paris.")}) as model:
        client = client_of(storage if kind == "storage" else OwnLarge(), model)
        turns = [await client.process("s", "The capital?") for _ in range(4)]
        assert [each.response for each in turns] == ["Paris."] * 4
        whole = (await client.export("s")).to_dict()
    assert len(whole["dialogue_history"]) == 8
    with pytest.raises(ContextError, match=r"has 8 entries; at most 4 are read.*oldest"):
        AgentContext.from_dict(whole)
    assert AgentContext.from_dict(whole, most_bytes=10**9).to_dict() == whole


async def test_a_carried_session_beyond_the_bound_is_refused_before_its_turn_and_goes_on_when_cut(
    monkeypatch, caplog
):
    monkeypatch.setattr(session_context, "MOST_ENTRIES", 4)
    with ScriptedModel({"think": always(f"{SIMPLE}Paris.")}) as model:
        agent = agent_of(model, None)
        context = {"session_id": "s"}
        for _ in range(3):
            result = await agent.process("The capital?", context)
            assert result.success
            context = AgentContext.from_dict(context).apply(result.context_updates).to_dict()
        assert len(context["dialogue_history"]) == 6
        assert caplog.text.count("leave out its oldest entries") > 0
        calls = len(model.calls)
        refused = await agent.process("The capital?", context)
        assert "dialogue_history: it has 6 entries; at most 4 are read" in refused.error
        assert "Leave out the oldest" in refused.error
        assert (len(model.calls), refused.context_updates) == (calls, {})
        context["dialogue_history"] = context["dialogue_history"][-2:]
        assert (await agent.process("The capital?", context)).response == "Paris."


async def test_a_turn_is_streamed_and_who_leaves_it_can_go_on_with_it(storage):
    with ScriptedModel({"think": [ONE, f"{SIMPLE}Paris."], "feedback": always(COMPLETE)}) as model:
        client = client_of(storage, model)
        heard = [each async for each in client.stream("s", "Paint.", turn_id="1")]
        assert isinstance(heard[-1], AgentResult)
        assert heard[-1].metadata["version"] == 1
        again = [each async for each in client.stream("s", "Paint.", turn_id="1")]
        assert again == [heard[-1].replace(context_updates={})]
        async with aclosing(client.stream("s", "Blue.", turn_id="2")) as parts:
            async for part in parts:
                if getattr(part, "type", "") == "specialist_completed":
                    break
        # Nothing of the turn is kept, and it goes on where it was left.
        assert len(await texts_of(client)) == 2
        went_on = await client.process("s", "Blue.", turn_id="2")
        assert went_on.response == "Painted.", went_on
        assert (await client.process("s", "The capital?")).response == "Paris."


@pytest.mark.parametrize("word", ["yes, blue", {"1": "yes, blue"}])
async def test_a_message_answers_nothing_that_its_user_has_not_seen(storage, word, monkeypatch):
    def paint(_: ExecutionContext) -> str:
        return f"{ask_user('Which colour?')}, {ask_user('Paint over everything?')}"

    async def killed(*_: Any) -> None:
        raise asyncio.CancelledError

    with ScriptedModel({"think": ONE, "feedback": COMPLETE}) as model:
        painter = Specialist(name="painter", intended_use="Paints.", run=paint, effects="pure")
        agent = build_agent(Team(host=Host(model=model), specialists=[painter]))
        client = ClientAgentAdapter(storage, agent)
        await client.process("s", "Paint.")
        with monkeypatch.context() as patch:
            patch.setattr(storage.sessions, "append", killed)
            with pytest.raises(asyncio.CancelledError):
                await client.process("s", "Blue.", turn_id="2")
        # Another turn than the one that was killed; its user has seen the first question only.
        asked = await client.process("s", word)
        assert "does not answer what is asked now" in str(asked.metadata["problem"])
        assert asked.response.endswith("Paint over everything?")
        done = await client.process("s", "No.")
    assert "Blue., No." in str(done.metadata["plan"])


async def test_the_summary_is_written_when_the_answer_is_out_and_kept(storage):
    is_asked, goes_on = asyncio.Event(), asyncio.Event()

    async def summary(_: Any) -> str:
        is_asked.set()
        await goes_on.wait()
        return "They greeted each other."

    replies = {"think": always(f"{SIMPLE}Hello."), "memory_summary": always(summary)}
    memory = MemoryOptions(mode="summary", history_limit=2, summary_trigger_messages=2)
    with ScriptedModel(replies) as model:
        painter = Specialist(name="painter", intended_use="Paints.", run=Painter())
        team = Team(host=Host(model=model), specialists=[painter], memory=memory)
        async with ClientAgentAdapter(storage, build_agent(team)) as client:
            while not is_asked.is_set():
                result = await client.process("s", "Hello.")
                assert result.success
                if result.metadata["summary_due"]:
                    await is_asked.wait()
            kept = await client.export("s")
            assert "memory_summary" not in kept.project_state
            goes_on.set()
        summed = await client.export("s")
        written: Any = summed.project_state["memory_summary"]
        assert written["text"] == "They greeted each other."
        assert summed.dialogue_history == kept.dialogue_history
        taken = await client.undo("s")
        assert [each.content for each in taken.messages] == ["Hello."] * 2
        assert "memory_summary" not in (await client.export("s")).project_state


async def test_the_runs_of_a_session_are_seen_by_everybody_who_looks(memory):
    with ScriptedModel({"think": ONE}) as model:
        client = client_of(memory, model, user="anna")
        result = await client.process("s", "Paint.")
        async with open_runtime(agent_team(model), storage=memory) as runtime:
            (view,) = await runtime.runs(labels={"session": "s", "user": "anna"})
            assert (view.run_id, view.outcome) == (result.metadata["run_id"], "waiting")
            assert [ask.key for ask in view.pending_questions] == ["1/painter/1"]
            kinds = [event.type async for event in runtime.events(view.run_id)]
    assert "input_requested" in kinds


def agent_team(model: Any) -> Team:
    paint = Specialist(name="painter", intended_use="Paints.", run=Painter())
    return Team(host=Host(model=model), specialists=[paint])


async def test_a_team_that_lost_a_specialist_refuses_the_turn_and_the_session_stays(memory):
    is_slow = asyncio.Event()

    async def slow(_: ExecutionContext) -> str:
        if is_slow.is_set():
            return "painted"
        is_slow.set()
        return await asyncio.Event().wait()  # type: ignore[return-value]

    with ScriptedModel({"think": ONE, "feedback": COMPLETE}) as model:
        paint = Specialist(name="painter", intended_use="Paints.", run=slow, effects="pure")
        team = Team(host=Host(model=model), specialists=[paint])
        client = ClientAgentAdapter(memory, build_agent(team))
        turn = asyncio.ensure_future(client.process("s", "Paint.", turn_id="1"))
        await is_slow.wait()
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        lost = ClientAgentAdapter(memory, agent_of(model, name="plumber"))
        refused = await lost.process("s", "Paint.", turn_id="1")
        assert not refused.success
        assert "@painter" in str(refused.error)
        assert (await client.process("s", "Paint.", turn_id="1")).response == "Painted."


async def test_what_cannot_be_done_is_told_and_the_session_stays(memory):
    picture = [{"type": "text", "text": "What is this?"}, {"type": "image", "url": "data:x"}]
    with ScriptedModel({"think": [ONE, f"{SIMPLE}A cat."], "feedback": COMPLETE}) as model:
        client = client_of(memory, model)
        for nothing in ("", "  ", [], {}):
            refused = await client.process("s", nothing)
            assert (refused.success, refused.context_updates) == (False, {})
            assert "is empty" in str(refused.error)
        with pytest.raises(InputError, match="no session 's' here"):
            await client.export("s")
        for bad in ("", "\0", "\ud800"):
            with pytest.raises(ContextError, match="session_id"):
                await client.process(bad, "Paint.")
        with pytest.raises(InputError, match="turn_id cannot be kept"):
            await client.process("s", "Paint.", turn_id="\0")
        await client.process("s", "Paint.")
        before = await client.export("s")
        wrong = await client.process("s", {"7": "Blue."})
        assert "No open question has the key '7'" in str(wrong.metadata["problem"])
        kept = await client.export("s")
        assert kept.project_state["run"] == before.project_state["run"]
        assert (await client.process("s", "Blue.")).response == "Painted."
        assert (await client.process("s", picture)).response == "A cat."
    assert list((await client.history("s", limit=2)).messages[0].content) == picture
