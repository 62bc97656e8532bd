"""Specialists that ask a person: which step waits, who goes on, what is kept, who is asked."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from operator import add
from typing import Annotated, TypedDict

import pytest
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt

from replan import (
    Host,
    InputError,
    Limits,
    QuestionError,
    Specialist,
    Team,
    ask_user,
    build_graph,
    run,
    stream,
    waiting_for,
)
from replan.ports.ask_user import ask
from replan.testing import ScriptedModel, always
from scripts import COMPLETE, THREAD, given

ONE = "- [ ] 1. Ask @a\n"
TWO_ASK = """\
- [ ] 1. One @a
- [ ] 2. Ask @a (after 1)
- [ ] 3. Ask @a (after 1)
- [ ] 4. After two @a (after 2)
- [ ] 5. After three @a (after 3)
- [ ] 6. Aside @a
"""


def graph_of(work, model, checkpointer=None, **options):
    way = {"run": work, "effects": "pure"}
    team = [Specialist(name=name, intended_use="Works.", **way) for name in ("a", "b")]
    config = Team(host=Host(model=model), specialists=team, **options)
    return build_graph(config, checkpointer=checkpointer)


def graph_with(specialist, model, checkpointer):
    config = Team(host=Host(model=model), specialists=[specialist])
    return build_graph(config, checkpointer=checkpointer)


def log_of(graph):
    return graph.nodes["user_input"].bound.afunc.keywords["services"].log


def keys(state):
    return [question.key for question in waiting_for(state)]


async def answer(graph, answers):
    return (await run(graph, Command(resume=answers), config=THREAD)).state


def asking(ran):
    def work(context):
        step = context.plan_step.id
        if step in (2, 3):
            return f"heard {ask_user(f'question {step}')}"
        ran.append(step)
        return f"text {step}"

    return work


async def test_what_is_answered_beside_an_answer_on_record_is_taken_too():
    with ScriptedModel({"feedback": COMPLETE}) as model:
        graph = graph_of(asking([]), model, InMemorySaver())
        state = (await run(graph, given(TWO_ASK), config=THREAD)).state
        await log_of(graph).note(state["run_id"], "answer/3/a/1", "three")
        state = await answer(graph, {"2/a/1": "two"})
    assert state["outcome"] == "completed"


async def test_a_question_that_was_asked_in_a_round_which_was_cut_off_is_not_told_of_again():
    cut_off, asked, at_work = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def work(context):
        if context.plan_step.id == 1:
            return f"heard {ask_user('Which colour?')}"
        if not cut_off.is_set():
            at_work.set()
            await asyncio.Event().wait()
        return "done"

    plan = "- [ ] 1. Ask @a\n- [ ] 2. Slow @b\n"
    with ScriptedModel({"feedback": COMPLETE}) as model:
        graph, events = graph_of(work, model, InMemorySaver()), []

        async def follow(resume):
            async for event in stream(graph, resume, config=THREAD):
                events.append(event)
                if event.type == "input_requested":
                    asked.set()

        running = asyncio.ensure_future(follow(given(plan)))
        await at_work.wait()
        await asked.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        cut_off.set()
        await follow(None)
        state = await answer(graph, "blue")
    assert [event.type for event in events].count("input_requested") == 1
    assert state["current_specialist_results"]["1/a"].text == "heard blue"


def paint(room: str) -> str:
    """Paint a room.

    Args:
        room: Which one.
    """
    return f"{room} is {ask_user(f'Which colour for the {room}?')}"


async def apaint(room: str) -> str:
    """Paint a room.

    Args:
        room: Which one.
    """
    return paint(room)


apaint.__name__ = "paint"


async def agrouped(room: str) -> str:
    """Paint a room.

    Args:
        room: Which one.
    """
    async with asyncio.TaskGroup() as group:
        painted = group.create_task(apaint(room))
    return painted.result()


agrouped.__name__ = "paint"


def calling(*rooms):
    calls = [
        {"name": "paint", "args": {"room": room}, "id": f"call-{room}", "type": "tool_call"}
        for room in rooms
    ]
    return AIMessage("", tool_calls=calls)


@pytest.mark.parametrize("tool", [paint, apaint, agrouped], ids=["sync", "async", "group"])
async def test_tools_that_are_called_at_once_ask_at_once_and_get_their_own_answers(tool):
    def reply(messages):
        heard = sorted(message.text for message in messages if message.type == "tool")
        return "; ".join(heard) if heard else calling("hall", "attic")

    with ScriptedModel({"step 1": always(reply), "feedback": COMPLETE}) as model:
        painter = Specialist(name="a", intended_use="Paints.", chat_model=model, tools=[tool])
        graph = graph_with(painter, model, InMemorySaver())
        state = (await run(graph, given(ONE), config=THREAD)).state
        asked = {question.text.split()[-1]: question.key for question in waiting_for(state)}
        assert set(asked) == {"hall?", "attic?"}
        state = await answer(graph, {asked["attic?"]: "grey"})
        # A step goes on when all that it asked at once is answered.
        assert keys(state) == [asked["hall?"]]
        state = await answer(graph, "blue")
    assert state["current_specialist_results"]["1/a"].text == "attic is grey; hall is blue"
    assert state["outcome"] == "completed"


class Talk(TypedDict):
    messages: Annotated[list, add]


def compiled():
    talk = StateGraph(Talk)
    talk.add_node("ask", lambda state: {"messages": [AIMessage(f"heard {ask_user('Which?')}")]})
    talk.add_edge(START, "ask")
    return talk.compile()


async def in_a_thread(messages):
    return await asyncio.to_thread(lambda: f"heard {ask_user('Which?')}")


def in_a_task(messages):
    async def ask():
        return f"heard {ask_user('Which?')}"

    return asyncio.ensure_future(ask())


async def awaiting(context):
    return await in_a_task(context)


async def grouped(context):
    async with asyncio.TaskGroup() as group:
        first = group.create_task(awaiting(context))
    return first.result()


@pytest.mark.parametrize(
    "how",
    [
        {"invokable": compiled()},
        {"invokable": RunnableLambda(lambda messages: f"heard {ask_user('Which?')}")},
        {"invokable": lambda messages: f"heard {ask_user('Which?')}"},
        {"streamable": lambda messages: iter([f"heard {ask_user('Which?')}"])},
        {"invokable": in_a_thread},
        {"run": awaiting},
        {"run": grouped},
        {"run": lambda context: "done", "asks": True},
    ],
    ids=["graph", "runnable", "function", "pieces", "thread", "task", "group", "sync"],
)
async def test_whatever_works_for_a_step_can_ask(how, caplog):
    if how.pop("asks", False):
        how = {"run": lambda context: f"heard {ask_user('Which?')}"}
    with ScriptedModel({"feedback": COMPLETE}) as model:
        graph = graph_with(
            Specialist(name="a", intended_use="Asks.", **how), model, InMemorySaver()
        )
        state = (await run(graph, given(ONE), config=THREAD)).state
        assert keys(state) == ["1/a/1"]
        state = await answer(graph, "blue")
    assert state["current_specialist_results"]["1/a"].text == "heard blue"
    assert "failed" not in caplog.text


async def test_graphs_of_replan_inside_of_steps_ask_at_once_and_get_their_own_answers(caplog):
    ran, runs = [], set()

    def inside(context):
        if context.plan_step.id == 1:
            ran.append("prepared")
            return "prepared"
        return f"heard {ask_user('Which?')}"

    with ScriptedModel({"feedback": always(COMPLETE)}) as model:
        inner = graph_of(inside, model)

        async def work(context):
            if context.plan_step.id == 2:
                return f"outside {ask_user('Which?')}"
            plan = "- [ ] 1. Prepare @a\n- [ ] 2. Ask @a (after 1)\n"
            state = (await run(inner, given(plan))).state
            runs.add(state["run_id"])
            return state["current_specialist_results"]["2/a"].text

        graph = graph_of(work, model, InMemorySaver())
        plan = "- [ ] 1. Inside @a\n- [ ] 2. Outside @a\n- [ ] 3. Inside @a\n"
        # LangChain tells the graphs inside of the steps this name, too; they share nothing for it.
        state = (await run(graph, given(plan), config=THREAD, run_id="outer")).state
        # Whose graph was the first to come to its question does not matter.
        assert sorted(keys(state)) == ["1/a/2/a/1", "3/a/2/a/1"]
        with pytest.raises(InputError, match=r"open: '[13]/a/2/a/1', '[13]/a/2/a/1'"):
            await answer(graph, "blue")
        state = await answer(graph, {"3/a/2/a/1": "three"})
        assert keys(state) == ["1/a/2/a/1"]
        state = await answer(graph, "one")
        assert keys(state) == ["2/a/1"]
        state = await answer(graph, "two")
    texts = {key: result.text for key, result in state["current_specialist_results"].items()}
    assert texts == {"1/a": "heard one", "2/a": "outside two", "3/a": "heard three"}
    assert ran == ["prepared"] * 2
    assert len(runs) == 2
    assert "failed" not in caplog.text


@pytest.mark.parametrize("is_broken", [False, True], ids=["alone", "with an error"])
async def test_teams_that_a_step_runs_in_a_task_group_ask_one_after_the_other(is_broken, caplog):
    with ScriptedModel({"feedback": always(COMPLETE)}) as model:
        inner = graph_of(lambda context: f"heard {ask_user('Which?')}", model)

        async def work(context):
            async def one():
                state = (await run(inner, given(ONE))).state
                return state["current_specialist_results"]["1/a"].text

            async def broken():
                raise ValueError("It is broken.")

            async with asyncio.TaskGroup() as group:
                texts = [group.create_task(one()) for _ in range(2)]
                if is_broken:
                    group.create_task(broken())
            return "; ".join(text.result() for text in texts)

        graph = graph_of(work, model, InMemorySaver())
        state = (await run(graph, given(ONE), config=THREAD)).state
        if is_broken:
            assert "ValueError: It is broken." in state["current_specialist_results"]["1/a"].error
            return
        assert keys(state) == ["1/a/1/a/1"]
        state = await answer(graph, "one")
        assert keys(state) == ["1/a/1/a/1"]
        state = await answer(graph, "two")
    assert state["current_specialist_results"]["1/a"].text == "heard one; heard two"
    assert "failed" not in caplog.text


async def test_a_question_cannot_be_swallowed():
    def work(context):
        try:
            return f"heard {ask_user('Which?')}"
        except Exception:  # noqa: BLE001 - as foreign code does it
            return "nobody there"

    def broken(context):
        try:
            return f"heard {ask_user('Which?')}"
        except Exception as error:
            raise RuntimeError("nobody there") from error

    for does in (work, broken):
        with ScriptedModel({"feedback": COMPLETE}) as model:
            graph = graph_of(does, model, InMemorySaver())
            state = (await run(graph, given(ONE), config=THREAD)).state
            assert keys(state) == ["1/a/1"]
            state = await answer(graph, "blue")
        assert state["current_specialist_results"]["1/a"].text == "heard blue"


def test_nobody_can_be_asked_outside_of_a_step():
    with pytest.raises(QuestionError, match="outside a specialist's step"):
        ask_user("Is anybody there?")


async def test_who_is_left_behind_by_a_step_or_has_lost_its_context_cannot_ask():
    left, errors = [], []

    async def work(context):
        async def later():
            await over.wait()
            ask_user("Still there?")

        left.append(asyncio.ensure_future(later()))
        with ThreadPoolExecutor(1) as pool:
            errors.append(pool.submit(ask_user, "Who am I?").exception())
        return "done"

    over = asyncio.Event()
    with ScriptedModel({"feedback": COMPLETE}) as model:
        state = (await run(graph_of(work, model), given(ONE))).state
    over.set()
    (late,) = await asyncio.gather(*left, return_exceptions=True)
    assert state["outcome"] == "completed"
    assert "outside a" in str(errors[0])
    assert "is over" in str(late)


async def test_the_model_calls_of_a_try_that_asked_are_counted_once():
    async def work(context, config):
        await model.ainvoke("Hi", config)
        return f"heard {ask_user('Which?')}"

    with ScriptedModel({"*": always("Yes."), "feedback": COMPLETE}) as model:
        graph = graph_of(work, model, InMemorySaver())
        state = (await run(graph, given(ONE), config=THREAD)).state
        assert state["usage"].by["a"].calls == 1
        state = await answer(graph, "blue")
    assert state["usage"].by["a"].calls == 2
    assert state["usage"].calls == len(model.calls) == 3


async def test_a_try_that_asked_stands_in_the_ledger():
    with ScriptedModel({}) as model:
        graph = graph_of(lambda context: ask_user("Well?"), model, InMemorySaver())
        state = (await run(graph, given(ONE), config=THREAD)).state
        (entry,) = await log_of(graph).ledger(state["run_id"])
    assert (entry.step_id, entry.outcome) == (1, "waiting")


async def test_without_a_checkpointer_a_run_ends_with_its_questions_and_a_fresh_one_goes_on():
    ran = []
    with ScriptedModel({"feedback": COMPLETE}) as model:
        graph = graph_of(asking(ran), model)
        state = (await run(graph, given(TWO_ASK))).state
        assert (state["outcome"], sorted(state["questions"])) == ("waiting", ["2/a/1", "3/a/1"])
        assert "final_answer" not in state or state["final_answer"] is None
        answers = {"3/a/1": "three", "2/a/1": "two"}
        state = (
            await run(
                graph,
                {
                    "messages": state["messages"],
                    "plan": state["current_plan"].content,
                    "answers": answers,
                },
            )
        ).state
    assert (state["outcome"], sorted(ran)) == ("completed", [1, 4, 5, 6])
    results = state["current_specialist_results"]
    assert (results["2/a"].text, results["3/a"].text) == ("heard two", "heard three")


@pytest.mark.parametrize("kind", ["approval", "unknown_outcome"])
async def test_an_answer_that_is_handed_in_settles_plain_questions_only(kind):
    def work(context):
        word = ask("Pay 9999 to somebody?", kind=kind, details={"tool": "pay"})
        return f"{word} {ask_user('Which colour?')}"

    with ScriptedModel({"feedback": COMPLETE}) as model:
        graph = graph_of(work, model, InMemorySaver())
        answers = {"1/a/1": "yes", "1/a/2": "blue"}
        state = (await run(graph, given(ONE) | {"answers": answers}, config=THREAD)).state
        assert [(q.key, q.kind) for q in waiting_for(state)] == [("1/a/3", kind)]
        said = {"approval": "reject", "unknown_outcome": "done"}
        state = await answer(graph, {"1/a/3": said[kind]})
    said = {"approval": "{'action': 'reject'} blue", "unknown_outcome": "done blue"}
    assert state["current_specialist_results"]["1/a"].text == said[kind]


async def test_a_step_that_interrupts_by_itself_and_one_that_asks_wait_side_by_side():
    def work(context):
        if context.plan_step.id == 1:
            return f"heard {ask_user('Ours?')}"
        return f"heard {interrupt('Theirs?')}"

    plan = "- [ ] 1. Ask @a\n- [ ] 2. Interrupt @b\n"
    with ScriptedModel({"feedback": COMPLETE}) as model:
        graph = graph_of(work, model, InMemorySaver())
        state = (await run(graph, given(plan), config=THREAD)).state
        (theirs,) = waiting_for(state)
        assert (theirs.text, theirs.key) == ("Theirs?", state["__interrupt__"][0].id)
        state = await answer(graph, {theirs.key: "two"})
        assert keys(state) == ["1/a/1"]
        state = await answer(graph, "one")
    results = state["current_specialist_results"]
    assert (results["1/a"].text, results["2/b"].text) == ("heard one", "heard two")


async def test_a_question_is_asked_though_only_the_call_for_the_answer_is_left():
    model = ScriptedModel({"think": f"---\ncomplexity: complex\n---\n{ONE}", "feedback": COMPLETE})
    limits = Limits(max_model_calls=2)
    graph = graph_of(lambda _: ask_user("Which?"), model, InMemorySaver(), limits=limits)
    result = await run(graph, "Go.", config=THREAD)
    assert (result.outcome, len(model.calls)) == ("waiting", 1)
    result = await run(graph, Command(resume="red"), config=THREAD)
    assert (result.outcome, result.limit_reached, len(model.calls)) == ("completed", "", 2)


async def test_answers_that_lead_to_failures_leave_the_other_questions_open():
    def work(_):
        if ask_user("Which?") == "none":
            raise ValueError("there is none")
        return "done"

    limits = Limits(max_stalls=2, step_retries=0)
    model = ScriptedModel({"feedback": always(COMPLETE)})
    graph = graph_of(work, model, InMemorySaver(), limits=limits)
    plan = "".join(f"- [ ] {step}. Ask @a\n" for step in range(1, 5))
    await run(graph, {"plan": plan}, config=THREAD)
    for step in (1, 2, 3):
        result = await run(graph, Command(resume={f"{step}/a/1": "none"}), config=THREAD)
    assert [each.key for each in result.pending_questions] == ["4/a/1"]
    result = await run(graph, Command(resume={"4/a/1": "red"}), config=THREAD)
    assert (result.outcome, result.results["4/a"].text) == ("partial", "done")
