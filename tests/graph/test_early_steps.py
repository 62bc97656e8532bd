"""Pure steps begin while the host still writes their plan; what the plan does not hold ends."""

import asyncio
import gc

import pytest
from langchain_core.tools import StructuredTool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import interrupt
from pydantic import PrivateAttr

from replan import (
    Fallback,
    Host,
    Limits,
    Specialist,
    Team,
    ask_user,
    build_graph,
    open_runtime,
    stream,
)
from replan.server import response_schemas
from replan.testing import Reply, Reset, ScriptedModel, always
from replan.views.run.step_states import step_states

pytestmark = pytest.mark.one_store

HEAD = "---\ncomplexity: complex\nreasoning: Work.\n---\n"
END = "---\nverdict: complete\nfeedback: Done.\n---\nThe end."
AGAIN = "---\nverdict: continue\nfeedback: More.\n---\n"
ONE, TWO = "- [ ] 1. One @a\n  Of it.\n", "- [ ] 2. Two @a (after 1)\n"
LAST = "- [ ] 9. Last @a (after 1)\n"
SECONDS = 20


class Pausing(ScriptedModel):
    """A model that does not write on before something has happened."""

    _waits: dict = PrivateAttr(default_factory=dict)

    def before(self, piece, event):
        """Wait for an event before this piece of a reply."""
        self._waits[piece] = event
        return self

    async def _astream(self, messages, *args, **options):
        async for chunk in super()._astream(messages, *args, **options):
            if (event := self._waits.get(chunk.text)) is not None:
                await asyncio.wait_for(event.wait(), SECONDS)
            yield chunk


class Desk:
    """Work that is counted; steps in `held` wait until they are let go."""

    def __init__(self, held=()):
        self.did, self.inputs, self.cancelled = [], {}, []
        self.began = {step: asyncio.Event() for step in range(1, 30)}
        self.ended = {step: asyncio.Event() for step in range(1, 30)}
        self.leave = {step: asyncio.Event() for step in range(1, 30)}
        self.held, self.at_once, self.most = set(held), 0, 0
        self.newest = asyncio.Queue()

    async def work(self, context):
        step = context.plan_step.id
        self.did.append(f"{step} {context.task_description}")
        self.inputs[step] = dict(context.inputs)
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        self.began[step].set()
        self.newest.put_nowait(step)
        try:
            if step in self.held:
                await asyncio.wait_for(self.leave[step].wait(), SECONDS)
        except asyncio.CancelledError:
            self.cancelled.append(step)
            raise
        finally:
            self.at_once -= 1
        self.ended[step].set()
        return f"result {step}"

    async def next_begun(self):
        return await asyncio.wait_for(self.newest.get(), SECONDS)

    def member(self, name="a", **fields):
        return Specialist(name=name, intended_use="Works.", run=self.work, **fields)


def written(*pieces, head=HEAD):
    """A plan that comes in these pieces."""
    return Reply(text=head + "".join(pieces), chunks=[head, *pieces])


async def ran(team, where):
    """A run to where it rests: its result, its events, and the report of it."""
    async with open_runtime(team, storage=where) as runtime:
        result = await runtime.run("Go.", run_id="r")
        return result, [each async for each in runtime.events("r")], await runtime.get("r")


def kinds(events, *wanted):
    found = [(each.type, getattr(each, "step_id", None)) for each in events]
    return [each for each in found if each[0] in wanted]


async def test_a_step_that_cannot_begin_in_its_round_is_told_once():
    def fails(_):
        raise ValueError("no paint")

    failing = Specialist("a", "Fails.", run=fails, effects="pure")
    with ScriptedModel({"think": written(ONE, TWO, LAST), "feedback": END}) as model:
        graph = build_graph(Team(Host(model), [failing]))
        events = [each async for each in stream(graph, "Go.")]
    assert sorted(kinds(events, "step_deferred")) == [("step_deferred", 2), ("step_deferred", 9)]


async def test_a_step_begins_when_its_line_and_brief_are_written(where):
    desk = Desk()
    with Pausing({"think": written(ONE, TWO, LAST), "feedback": END}) as model:
        model.before(LAST, desk.ended[1])
        team = Team(Host(model), [desk.member(effects="pure")])
        result, events, report = await ran(team, where)
    assert (result.outcome, result.text, result.warnings) == ("completed", "The end.", ())
    assert sorted(desk.did) == ["1 One", "2 Two", "9 Last"]
    assert desk.inputs[2] == {1: "result 1"}
    found = kinds(events, "specialist_invoked", "specialist_completed", "plan_created")
    assert found[:2] == [("specialist_invoked", 1), ("specialist_completed", 1)]
    assert found.index(("plan_created", None)) > 1
    assert len([each for each in found if each[1] == 1]) == 2
    assert [each.status.value for each in report.steps] == ["completed"] * 3
    assert all(each.round == 1 for each in events if each.type == "specialist_invoked")


@pytest.mark.parametrize(
    ("member", "host", "options"),
    [
        ({"effects": "unsafe"}, {}, {}),
        ({"effects": "keyed"}, {}, {}),
        ({}, {}, {}),
        ({"effects": "pure", "approve": True}, {}, {}),
        ({"effects": "pure"}, {"early_steps": False}, {}),
        ({"effects": "pure"}, {}, {"approval": "plan"}),
        ({"effects": "pure"}, {}, {"round_scope": "ready"}),
    ],
    ids=["unsafe", "keyed", "undeclared", "approved", "off", "plan waits", "ready steps only"],
)
async def test_nothing_else_begins_early(where, member, host, options):
    desk = Desk()
    with ScriptedModel({"think": written(ONE, TWO, LAST), "feedback": always(END)}) as model:
        team = Team(Host(model, **host), [desk.member(**member)], **options)
        _, events, _ = await ran(team, where)
    found = [each.type for each in events]
    begun = found.index("specialist_invoked") if "specialist_invoked" in found else len(found)
    assert "plan_created" in found[:begun]


def tool(effects, name="look"):
    metadata = {} if effects is None else {"effects": effects}
    about = {"name": name, "description": "Look.", "metadata": metadata}
    return StructuredTool.from_function(lambda words: words, **about)


@pytest.mark.parametrize(
    ("tools", "fields", "begins"),
    [
        ([tool("pure")], {}, True),
        ([tool("pure"), tool(None, "find")], {}, False),
        ([tool("pure"), tool(None, "find")], {"effects": "pure"}, True),
        ([tool("unsafe")], {"effects": "pure"}, False),
        ([tool("pure")], {"approve": ["look"]}, False),
        ([tool("pure")], {"queue": "far"}, False),
        (["web_search"], {"effects": "pure"}, False),
        ([], {"effects": "pure"}, True),
        ([], {}, False),
        ([], {"effects": "pure", "remembers": True}, False),
    ],
)
def test_a_chat_model_begins_early_if_all_that_it_calls_is_declared_pure(tools, fields, begins):
    model = ScriptedModel({})
    member = Specialist(name="a", intended_use="Works.", chat_model=model, tools=tools, **fields)
    assert member.begins_early is begins


async def test_nothing_begins_early_where_the_usage_of_a_stream_would_be_unknown():
    class Uncounted(ScriptedModel):
        stream_usage: bool = False

    model = Uncounted({"think": written(ONE, TWO, LAST), "feedback": END})
    graph = build_graph(Team(Host(model), [Desk().member(effects="pure")]))
    given = {"messages": [("user", "Go.")]}
    events = [each async for each in graph.astream(given, stream_mode="custom")]
    begun = kinds(events, "plan_created", "specialist_invoked")
    assert begun[0] == ("plan_created", None)


async def test_a_step_that_asks_for_approval_in_its_line_does_not_begin_early(where):
    desk, first = Desk(), "- [ ] 1. One @a (ask first)\n"
    with ScriptedModel({"think": written(first, "- [ ] 2. Two @a\n", LAST)}) as model:
        team = Team(Host(model), [desk.member(effects="pure")])
        result, events, _ = await ran(team, where)
    assert result.outcome == "waiting"
    assert kinds(events, "specialist_invoked")[0] == ("specialist_invoked", 2)
    assert desk.did == ["2 Two"]


async def test_what_the_finished_plan_does_not_hold_is_cancelled_told_and_counted(where):
    """The first reply has a mistake in its last line; the second one has another step 1."""
    desk = Desk(held={1})
    wrong = "- [ ] 3. Three @nobody\n"
    other = "- [ ] 1. Other @b\n"
    script = {
        "think": written(ONE, "- [ ] 2. Two @a\n", "- [ ] 4. Four @a (after 1)\n", wrong),
        "plan_creation": written(other, "- [ ] 2. Two @a\n", head=""),
        "specialist": always("Thought."),
        "feedback": END,
    }
    with Pausing(script) as model:
        model.before(wrong, desk.ended[2])
        thinker = Specialist(name="b", intended_use="Thinks.", chat_model=model, effects="pure")
        team = Team(Host(model), [desk.member(effects="pure"), thinker])
        result, events, report = await ran(team, where)
        assert result.usage.calls == len(model.calls)
    assert result.outcome == "completed"
    assert desk.did == ["1 One", "2 Two"]
    assert desk.cancelled == [1]
    dropped = [each for each in events if each.type == "early_step_dropped"]
    told = [(each.step_id, each.specialist, each.task) for each in dropped]
    assert told == [(1, "a", "One"), (4, "a", "Four")]
    told = [each.type for each in events]
    assert told.index("early_step_dropped") < told.index("plan_created")
    assert [each.step.description for each in report.steps] == ["Other", "Two"]
    assert [each.status.value for each in report.steps] == ["completed"] * 2
    ends = {(e.entry.step_id, e.entry.specialist): e.outcome for e in report.attempts}
    assert ends == {(1, "a"): "cancelled", (2, "a"): "done", (1, "b"): "done"}


async def test_the_calls_of_a_dropped_step_are_in_the_usage_of_the_run(where):
    done = asyncio.Event()

    class Telling(Pausing):
        async def _agenerate(self, messages, *args, **options):
            made = await super()._agenerate(messages, *args, **options)
            done.set()
            return made

    script = {
        "think": written(ONE, "- [ ] 2. Two @a\n", "- [ ] 3. Three @nobody\n"),
        "plan_creation": written("- [ ] 5. Only @a\n", head=""),
        "specialist": always("Thought."),
        "feedback": END,
    }
    with Telling(script) as model:
        model.before("- [ ] 3. Three @nobody\n", done)
        thinker = Specialist(name="a", intended_use="Thinks.", chat_model=model, effects="pure")
        result, _, report = await ran(Team(Host(model), [thinker]), where)
        assert result.outcome == "completed"
        assert result.usage.calls == len(model.calls) == report.calls.calls
        assert {each.step for each in model.calls} >= {1, 5}


async def test_no_more_steps_are_at_work_than_the_limit_allows_early_ones_included(where):
    desk = Desk(held=range(1, 9))
    lines = [f"- [ ] {step}. Part {step} @a\n" for step in range(1, 9)]
    with Pausing({"think": written(*lines), "feedback": END}) as model:
        model.before(lines[-1], desk.began[2])
        limits = Limits(max_parallel_steps=2)
        team = Team(Host(model), [desk.member(effects="pure")], limits=limits)
        async with open_runtime(team, storage=where) as runtime:
            run = await runtime.start("Go.", run_id="r")
            at_work = [await desk.next_begun(), await desk.next_begun()]
            for _ in range(6):
                desk.leave[at_work.pop(0)].set()
                at_work.append(await desk.next_begun())
            for step in at_work:
                desk.leave[step].set()
            assert (await run).outcome == "completed"
    assert desk.most == 2
    assert len(desk.did) == 8


async def test_a_new_step_of_a_revision_begins_while_the_revision_is_written(where):
    desk = Desk()
    three, four = "- [ ] 3. Three @a (after 1)\n", "- [ ] 4. Four @a (after 3)\n"
    first = "- [x] 1. One @a\n"
    script = {
        "think": written("- [ ] 1. One @a\n"),
        "feedback": [written(first, three, four, "- [ ] 5. Five @a\n", head=AGAIN), END],
    }
    with Pausing(script) as model:
        model.before("- [ ] 5. Five @a\n", desk.ended[3])
        team = Team(Host(model), [desk.member(effects="pure")])
        result, events, _ = await ran(team, where)
    assert (result.outcome, result.plan.version) == ("completed", 2)
    assert desk.did[:2] == ["1 One", "3 Three"]
    assert sorted(desk.did) == ["1 One", "3 Three", "4 Four", "5 Five"]
    found = [(each.type, getattr(each, "step_id", None), each.round) for each in events]
    revised = next(
        at for at, each in enumerate(events) if each.type == "plan_updated" and each.changes
    )
    assert found.index(("specialist_completed", 3, 2)) < revised


async def test_a_step_that_begins_early_may_ask_and_its_answer_is_taken(where):
    asked = asyncio.Event()

    def work(context):
        if context.plan_step.id != 1:
            return "done"
        asked.set()
        return f"They said {ask_user('Which year?')}."

    with Pausing({"think": written(ONE, TWO, LAST), "feedback": END}) as model:
        model.before(LAST, asked)
        member = Specialist(name="a", intended_use="Works.", run=work, effects="pure")
        async with open_runtime(Team(Host(model), [member]), storage=where) as runtime:
            result = await runtime.run("Go.", run_id="r")
            assert result.outcome == "waiting"
            (question,) = (await runtime.get("r")).pending_questions
            assert (question.text, question.step_id) == ("Which year?", 1)
            result = await (await runtime.answer("r", {question.key: "1999"}))
            events = [each async for each in runtime.events("r")]
    assert result.outcome == "completed"
    assert result.results["1/a"].text == "They said 1999."
    assert len(kinds(events, "input_requested")) == 1


async def test_a_step_that_fails_early_fails_as_any_other(where):
    failed = asyncio.Event()

    def work(context):
        if context.plan_step.id == 1:
            failed.set()
            raise ValueError("no such table")
        return "done"

    with Pausing({"think": written(ONE, TWO, LAST), "feedback": END}) as model:
        model.before(LAST, failed)
        member = Specialist(name="a", intended_use="Works.", run=work, effects="pure")
        team = Team(Host(model), [member], limits=Limits(step_retries=1))
        result, _, report = await ran(team, where)
    assert report.by_id[1].status.value == "failed"
    assert [each.outcome for each in report.attempts_of(1)] == ["failed", "failed"]
    assert result.outcome == "failed"


async def test_a_run_that_is_stopped_leaves_no_early_step_at_work(where):
    desk = Desk(held={1})
    never = asyncio.Event()
    with Pausing({"think": [written(ONE, TWO, LAST)] * 2, "feedback": END}) as model:
        model.before(LAST, never)
        team = Team(Host(model), [desk.member(effects="pure")])
        async with open_runtime(team, storage=where) as runtime:
            run = await runtime.start("Go.", run_id="r")
            await asyncio.wait_for(desk.began[1].wait(), SECONDS)
            await runtime.stop("r", force=True)
            assert (await run).outcome == "interrupted"
            assert desk.cancelled == [1]
            report = await runtime.get("r")
            assert [each.outcome for each in report.attempts] == ["cancelled"]
            (step,) = report.steps
            told = step_states(report)[step.step.id].text
            assert (step.step.description, told) == ("One", "cut off, before the plan")
            (shown,) = response_schemas.Run.of(report).steps
            assert (shown.specialist, shown.status, shown.before_plan) == ("a", "pending", True)
            desk.held.clear()
            never.set()
            assert (await runtime.resume("r")).outcome == "completed"
    assert sorted(desk.did) == ["1 One", "1 One", "2 Two", "9 Last"]


async def test_an_answer_without_a_plan_begins_nothing():
    desk = Desk()
    simple = HEAD.replace("complexity: complex", "complexity: simple") + "Paris.\n\nIn France.\n"
    with ScriptedModel({"think": simple}) as model:
        graph = build_graph(Team(Host(model), [desk.member(effects="pure")]))
        state = await graph.ainvoke({"messages": [("user", "Go.")]})
    assert desk.did == []
    assert state["final_answer"].text == "Paris.\n\nIn France."


async def test_what_an_early_step_streams_is_its_specialists():
    model = ScriptedModel(
        {"think": written(ONE, TWO, LAST), "specialist": always("Text."), "feedback": END}
    )
    member = Specialist(name="a", intended_use="Works.", chat_model=model, effects="pure")
    graph = build_graph(Team(Host(model), [member]))
    begun, nodes = [], {}
    given = {"messages": [("user", "Go.")]}
    async for mode, part in graph.astream(given, stream_mode=["custom", "messages"]):
        if mode == "custom":
            begun.append(part.type)
        else:
            nodes[part[1]["langgraph_node"]] = part[0].text
    assert begun.index("specialist_invoked") < begun.index("plan_created")
    assert nodes.keys() == {"specialist_a", "feedback"}


async def test_a_model_that_breaks_off_in_its_plan_is_replaced_by_its_fallback():
    """Nobody saw the beginning of the reply but the steps that began, which go on."""
    desk = Desk()
    broken = Reply(text=HEAD + ONE + TWO + LAST, chunks=[HEAD, ONE, TWO, LAST], fault=Reset(3))
    first = ScriptedModel({"think": always(broken), "feedback": always(broken)})
    other = ScriptedModel({"think": written(ONE, TWO, LAST), "feedback": END})
    host = Host(Fallback(first, other))
    state = await build_graph(Team(host, [desk.member(effects="pure")])).ainvoke(
        {"messages": [("user", "Go.")]}
    )
    assert (state["outcome"], state["final_answer"].text) == ("completed", "The end.")
    assert sorted(desk.did) == ["1 One", "2 Two", "9 Last"]


async def test_a_team_inside_an_early_step_ends_no_early_step_of_the_team_around_it():
    began, go = asyncio.Event(), asyncio.Event()

    async def inside(context):
        began.set()
        await asyncio.wait_for(go.wait(), SECONDS)
        return "done"

    async def around(context):
        if context.plan_step.id != 1:
            return "done"
        script = {"think": written(ONE, TWO), "feedback": END.replace("The end", "From inside")}
        inner = Team(Host(ScriptedModel(script)), [Specialist("a", "Works.", run=inside)])
        state = await build_graph(inner).ainvoke({"messages": [("user", "Go.")]})
        return state["final_answer"].text

    with Pausing({"think": written(ONE, "- [ ] 2. Two @a\n", LAST), "feedback": END}) as model:
        model.before(LAST, began)
        member = Specialist("a", "Works.", run=around, effects="pure")
        async with open_runtime(Team(Host(model), [member]), storage=":memory:") as runtime:
            run = await runtime.start("Go.", run_id="r")
            await asyncio.wait_for(began.wait(), SECONDS)
            go.set()
            result = await asyncio.wait_for(run, SECONDS)
            events = [each async for each in runtime.events("r")]
    assert (result.outcome, result.results["1/a"].text) == ("completed", "From inside.")
    assert kinds(events, "early_step_dropped") == []


async def test_nothing_is_complained_about_where_a_dropped_step_was_a_graph_that_asked():
    complaints, asked = [], asyncio.Event()
    asyncio.get_running_loop().set_exception_handler(lambda _, about: complaints.append(about))

    async def ask(state):
        asked.set()
        interrupt("Which year?")

    graph = StateGraph(MessagesState).add_node("ask", ask).add_edge(START, "ask").compile()
    wrong = "- [ ] 3. Three @nobody\n"
    script = {
        "think": written(ONE, "- [ ] 2. Two @b\n", wrong),
        "plan_creation": written("- [ ] 1. Other @b\n", head=""),
        "feedback": END,
    }
    with Pausing(script) as model:
        model.before(wrong, asked)
        asking = Specialist("a", "Asks.", invokable=graph, effects="pure")
        team = Team(Host(model), [asking, Desk().member("b", effects="pure")])
        async with open_runtime(team, storage=":memory:") as runtime:
            assert (await runtime.run("Go.")).outcome == "completed"
    del asking, team, runtime
    gc.collect()
    await asyncio.sleep(0)
    assert complaints == []
