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
    RunSettings,
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


async def test_two_steps_ask_at_once_and_are_answered_one_by_one_in_reverse():
    ran = []
    with ScriptedModel({"feedback": COMPLETE}) as model:
        graph = graph_of(asking(ran), model, InMemorySaver())
        state = (await run(graph, given(TWO_ASK), config=THREAD)).state
        assert state["outcome"] == "waiting"
        assert keys(state) == ["2/a/1", "3/a/1"]
        assert sorted(ran) == [1, 6]
        state = await answer(graph, {"3/a/1": "three"})
        assert (keys(state), ran[2:]) == (["2/a/1"], [5])
        state = await answer(graph, "two")
    assert state["outcome"] == "completed"
    assert ran[2:] == [5, 4]
    results = state["current_specialist_results"]
    assert results["2/a"].text == "heard two"
    assert results["3/a"].text == "heard three"


async def test_each_question_is_told_of_once_and_the_run_is_not_over_while_it_waits():
    resumes = [given(TWO_ASK), Command(resume={"3/a/1": "three"}), None, Command(resume="two")]
    with ScriptedModel({"feedback": COMPLETE}) as model:
        graph, told = graph_of(asking([]), model, InMemorySaver()), []
        for resume in resumes:
            told += [[event async for event in stream(graph, resume, config=THREAD)]]
    asked = [
        [event.question.key for event in part if event.type == "input_requested"] for part in told
    ]
    assert asked == [["2/a/1", "3/a/1"], [], [], []]
    events = [event for part in told for event in part]
    assert [event.type for event in events].count("task_completed") == 1
    requested = next(event for event in events if event.type == "input_requested")
    assert (requested.step_id, requested.specialist, requested.attempt) == (2, "a", 1)
    assert requested.question.text == "question 2"
    deferred = [event.step_id for event in events if event.type == "step_deferred"]
    # Once, in the round that asked; what waits for an answer is not sent again.
    assert sorted(deferred) == [4, 5]


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


async def test_a_new_message_settles_an_old_question():
    simple = "---\ncomplexity: simple\n---\nYes."
    with ScriptedModel({"think": simple, "feedback": COMPLETE}) as model:
        graph = graph_of(asking([]), model, InMemorySaver())
        await run(graph, given(TWO_ASK), config=THREAD)
        state = (await run(graph, "Forget it. Are you there?", config=THREAD)).state
        assert (state["outcome"], state["questions"]) == ("answered", {})
        assert waiting_for(state) == ()
        assert (await graph.aget_state(THREAD)).interrupts == ()
        # An answer that comes too late starts nothing.
        state = await answer(graph, {"2/a/1": "two"})
        assert state["final_answer"].text == "Yes."
        # The next run asks anew: an answer belongs to one run.
        state = (await run(graph, given(TWO_ASK), config=THREAD)).state
        assert keys(state) == ["2/a/1", "3/a/1"]
        state = await answer(graph, {"2/a/1": "two", "3/a/1": "three"})
    assert state["outcome"] == "completed"


async def test_one_step_asks_several_questions_one_after_the_other():
    runs = []

    def work(context):
        runs.append(context.plan_step.id)
        first = ask_user("Which colour?")
        return f"{first} and {ask_user('More?')} and {ask_user('More?')}"

    with ScriptedModel({"feedback": COMPLETE}) as model:
        graph = graph_of(work, model, InMemorySaver())
        state, asked = (await run(graph, given(ONE), config=THREAD)).state, []
        for word in ("blue", "green", "red"):
            asked += keys(state)
            state = await answer(graph, word)
    assert asked == ["1/a/1", "1/a/2", "1/a/3"]
    assert state["current_specialist_results"]["1/a"].text == "blue and green and red"
    assert runs == [1] * 4
    assert state["outcome"] == "completed"


async def test_every_specialist_of_a_step_asks_for_itself():
    def work(context):
        return f"heard {ask_user('Which colour?')}"

    with ScriptedModel({"feedback": COMPLETE}) as model:
        graph = graph_of(work, model, InMemorySaver())
        state = (await run(graph, given("- [ ] 1. Ask @a @b\n"), config=THREAD)).state
        assert keys(state) == ["1/a/1", "1/b/1"]
        state = await answer(graph, {"1/b/1": "green"})
        assert keys(state) == ["1/a/1"]
        state = await answer(graph, {"1/a/1": "blue"})
    results = state["current_specialist_results"]
    assert (results["1/a"].text, results["1/b"].text) == ("heard blue", "heard green")


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


def calling(*rooms):
    calls = [
        {"name": "paint", "args": {"room": room}, "id": f"call-{room}", "type": "tool_call"}
        for room in rooms
    ]
    return AIMessage("", tool_calls=calls)


@pytest.mark.parametrize("tool", [paint, apaint], ids=["sync", "async"])
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


@pytest.mark.parametrize(
    "how",
    [
        {"invokable": compiled()},
        {"invokable": RunnableLambda(lambda messages: f"heard {ask_user('Which?')}")},
        {"invokable": lambda messages: f"heard {ask_user('Which?')}"},
        {"streamable": lambda messages: iter([f"heard {ask_user('Which?')}"])},
        {"invokable": in_a_thread},
        {"run": awaiting},
        {"run": lambda context: "done", "asks": True},
    ],
    ids=["graph", "runnable", "function", "pieces", "thread", "task", "sync"],
)
async def test_whatever_works_for_a_step_can_ask(how):
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


async def test_graphs_of_replan_inside_of_steps_ask_at_once_and_get_their_own_answers():
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


async def test_an_empty_question_is_a_fault_of_the_specialist():
    with ScriptedModel({"feedback": COMPLETE}) as model:
        state = (await run(graph_of(lambda context: ask_user(" "), model), given(ONE))).state
    assert "The question is empty" in state["current_specialist_results"]["1/a"].error
    assert state["current_plan"].step(1).retry_count == 0


async def test_a_specialist_that_asks_for_ever_is_stopped_by_the_limit():
    def work(context):
        for number in range(1, 1_000):
            ask_user(f"Question {number}?")
        return "enough"

    with ScriptedModel({"feedback": COMPLETE}) as model:
        graph = graph_of(work, model, InMemorySaver(), limits=Limits(max_questions=15))
        state, turns = (await run(graph, given(ONE), config=THREAD)).state, 0
        while state["outcome"] == "waiting":
            state = await answer(graph, "go on")
            turns += 1
    assert turns == 15
    assert state["outcome"] == "failed"
    assert "max_questions=15" in state["current_specialist_results"]["1/a"].error


async def test_the_limit_of_questions_holds_under_fan_out():
    plan = "".join(f"- [ ] {number}. Ask @a\n" for number in range(1, 41))
    limits = Limits(max_questions=7, max_parallel_steps=40)
    with ScriptedModel({"feedback": always(COMPLETE)}) as model:
        graph = graph_of(lambda context: ask_user("Well?"), model, InMemorySaver(), limits=limits)
        state = (await run(graph, given(plan), config=THREAD)).state
    assert len(keys(state)) == 7
    failed = [r for r in state["current_specialist_results"].values() if r.is_failed]
    assert len(failed) == 33


@pytest.mark.parametrize("scope", ["plan", "ready", "step"])
async def test_rounds_that_ask_are_no_stalls_and_cost_no_round(scope):
    def work(context):
        return f"{ask_user('First?')} {ask_user('Second?')}"

    plan = "- [ ] 1. Ask @a\n- [ ] 2. Ask @a\n- [ ] 3. Ask @b (after 1)\n"
    rounds = 2 if scope == "plan" else 3
    settings = RunSettings(
        round_scope=scope, limits=Limits(max_rounds=rounds, max_stalls=1, max_questions=6)
    )
    with ScriptedModel({"feedback": COMPLETE}) as model:
        graph = graph_of(work, model, InMemorySaver())
        state = (await run(graph, given(plan), config=THREAD, settings=settings)).state
        turns = 0
        while state["outcome"] == "waiting":
            state = await answer(graph, {keys(state)[-1]: "yes"})
            turns += 1
    assert (turns, state["outcome"]) == (6, "completed")
    assert state["max_rounds"] == rounds + 6
    assert state["current_round"] <= state["max_rounds"]


async def test_when_the_rounds_are_used_up_nothing_but_answers_is_waited_for():
    def work(context):
        return ask_user("Well?") if context.plan_step.id == 1 else "done"

    plan = "- [ ] 1. Ask @a\n- [ ] 2. Two @a\n- [ ] 3. Three @a\n"
    settings = RunSettings(round_scope="step", limits=Limits(max_rounds=2))
    with ScriptedModel({"feedback": COMPLETE}) as model:
        graph = graph_of(work, model, InMemorySaver())
        state = (await run(graph, given(plan), config=THREAD, settings=settings)).state
        assert keys(state) == ["1/a/1"]
        assert sorted(state["current_specialist_results"]) == ["2/a"]
        state = await answer(graph, "yes")
    assert (state["outcome"], state["limit_reached"]) == ("partial", "max_rounds")
    assert sorted(state["current_specialist_results"]) == ["1/a", "2/a"]


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


async def test_a_failure_beside_a_question_is_judged_and_the_question_stays_open():
    def work(context):
        if context.plan_step.id == 1:
            raise TypeError("broken")
        return f"heard {ask_user('Which?')}"

    plan = "- [ ] 1. Fails @a\n- [ ] 2. Ask @b\n"
    with ScriptedModel({"feedback": [COMPLETE, COMPLETE]}) as model:
        graph = graph_of(work, model, InMemorySaver())
        state = (await run(graph, given(plan), config=THREAD)).state
        # A run is not over while a required step can still be done.
        assert keys(state) == ["2/b/1"]
        state = await answer(graph, "blue")
    assert state["outcome"] == "partial"
    assert state["current_specialist_results"]["2/b"].text == "heard blue"


async def test_a_revision_that_asks_for_something_else_withdraws_the_question():
    def work(context):
        if context.plan_step.id == 1:
            raise TypeError("broken")
        return f"heard {ask_user(context.task_description)}"

    plan = "- [ ] 1. Fails @a\n- [ ] 2. Which colour? @b\n- [ ] 3. Which room? @b\n"
    revised = "---\nverdict: continue\n---\n- [-] 1. Fails @a\n- [ ] 2. Which tone? @b\n"
    revised += "- [ ] 3. Which room? @b\n"
    with ScriptedModel({"feedback": [revised, COMPLETE]}) as model:
        graph = graph_of(work, model, InMemorySaver())
        state = (await run(graph, given(plan), config=THREAD)).state
        assert {q.key: q.text for q in waiting_for(state)} == {
            "3/b/1": "Which room?",
            "2/b/2": "Which tone?",
        }
        state = await answer(graph, {"2/b/2": "soft", "3/b/1": "hall"})
    assert state["outcome"] == "completed"
    assert state["current_specialist_results"]["2/b"].text == "heard soft"


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


async def test_answers_that_are_handed_in_go_to_their_places():
    def work(context):
        return f"{ask_user('First?')} {ask_user('Second?')}"

    with ScriptedModel({"feedback": COMPLETE}) as model:
        graph = graph_of(work, model, InMemorySaver())
        state = (await run(graph, given(ONE) | {"answers": {"1/a/2": "two"}}, config=THREAD)).state
        assert [(q.key, q.text) for q in waiting_for(state)] == [("1/a/1", "First?")]
        state = await answer(graph, "one")
    assert state["current_specialist_results"]["1/a"].text == "one two"
    assert state["answers"] is None


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


@pytest.mark.parametrize(
    ("answers", "problem"),
    [({"1": "x"}, "not the key of a question"), ({"1/a/1": " "}, "1/a/1 is empty")],
)
async def test_answers_that_cannot_be_used_are_refused(answers, problem):
    with ScriptedModel({}) as model:
        graph = graph_of(lambda context: "done", model)
        with pytest.raises(InputError, match=problem):
            await run(graph, given(ONE) | {"answers": answers})


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"2/a/1": " "}, "The answer to 2/a/1 is empty"),
        ({"2/a/1": None}, "The answer to 2/a/1 is empty"),
        ({"2/a/1": {"a", "set"}}, "The answer to 2/a/1 is set"),
    ],
)
async def test_what_is_no_answer_is_asked_for_again_and_nothing_is_lost(wrong, problem):
    ran = []
    with ScriptedModel({"feedback": COMPLETE}) as model:
        graph = graph_of(asking(ran), model, InMemorySaver())
        state = (await run(graph, given(TWO_ASK), config=THREAD)).state
        state = await answer(graph, wrong)
        assert state["outcome"] == "waiting"
        assert problem in state["__interrupt__"][0].value["problem"]
        assert keys(state) == ["2/a/1", "3/a/1"]
        assert sorted(ran) == [1, 6]
        state = await answer(graph, {"2/a/1": "two", "3/a/1": "three"})
    assert state["outcome"] == "completed"


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ("blue", "It is not clear which question"),
        ({"9/a/1": "blue"}, "No open question has the key '9/a/1'"),
        ({"2/a/1": "two", "x": 1}, "No open question has the key 'x'"),
        # LangGraph alone would not resume with this one, and break on the next one.
        ({}, "There is no answer"),
        (None, "It is not clear which question"),
        (["two", "three"], "It is not clear which question"),
    ],
)
async def test_what_names_no_open_question_is_refused_before_anything_resumes(wrong, problem):
    ran = []
    with ScriptedModel({"feedback": COMPLETE}) as model:
        graph = graph_of(asking(ran), model, InMemorySaver())
        await run(graph, given(TWO_ASK), config=THREAD)
        with pytest.raises(InputError, match=f"{problem}.*open: '2/a/1', '3/a/1'"):
            await answer(graph, wrong)
        assert sorted(ran) == [1, 6]
        state = await answer(graph, {"2/a/1": "two", "3/a/1": "three"})
    assert state["outcome"] == "completed"


@pytest.mark.parametrize("wrong", ["", "  ", b"blue", None])
async def test_a_wrong_answer_to_the_only_question_is_asked_for_again(wrong):
    with ScriptedModel({"feedback": COMPLETE}) as model:
        graph = graph_of(lambda context: str(ask_user("Well?")), model, InMemorySaver())
        await run(graph, given(ONE), config=THREAD)
        state = await answer(graph, wrong)
        assert keys(state) == ["1/a/1"]
        assert state["__interrupt__"][0].value["problem"]
        state = await answer(graph, 0)
    assert state["current_specialist_results"]["1/a"].text == "0"


COLOURS = ["Red", "dark green"]


@pytest.mark.parametrize("wrong", ["blue", "red and dark green", 7, {"1/a/1": ["Red"]}])
async def test_of_choices_one_is_the_answer_and_nothing_else(wrong):
    with ScriptedModel({"feedback": COMPLETE}) as model:
        graph = graph_of(lambda _: str(ask_user("Which?", COLOURS)), model, InMemorySaver())
        state = (await run(graph, given(ONE), config=THREAD)).state
        (asked,) = waiting_for(state)
        assert (asked.text, asked.choices) == ("Which? (one of: Red, dark green)", (*COLOURS,))
        assert asked.payload["response_schema"] == {"enum": COLOURS}
        state = await answer(graph, wrong)
        assert "must be one of: Red, dark green (got " in state["__interrupt__"][0].value["problem"]
        state = await answer(graph, " DARK green ")
    assert state["current_specialist_results"]["1/a"].text == "dark green"


async def test_an_answer_that_came_before_its_question_is_one_of_the_choices_or_is_asked_for():
    def work(context):
        return f"{ask_user('Which?', COLOURS)} {ask_user('And?', COLOURS)}"

    with ScriptedModel({"feedback": COMPLETE}) as model:
        graph = graph_of(work, model, InMemorySaver())
        early = {"1/a/1": "red", "1/a/2": "blue"}
        state = (await run(graph, given(ONE) | {"answers": early}, config=THREAD)).state
        (asked,) = waiting_for(state)
        assert asked.text == "And? (one of: Red, dark green)"
        assert 'must be one of: Red, dark green (got "blue")' in asked.problem
        state = await answer(graph, "dark green")
    assert state["current_specialist_results"]["1/a"].text == "Red dark green"


@pytest.mark.parametrize("choices", ["red", [1, 2], ["a", "A"], ["a", ""], [" a"]])
async def test_choices_that_are_none_are_a_fault_of_the_specialist(choices):
    with ScriptedModel({"feedback": COMPLETE}) as model:
        graph = graph_of(lambda _: ask_user("Which?", choices), model)
        state = (await run(graph, given(ONE))).state
    assert "The choices " in state["current_specialist_results"]["1/a"].error


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
