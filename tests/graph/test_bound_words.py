"""A person's word counts for what that person was shown, and for nothing else."""

import asyncio

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from replan import (
    ExecutionContext,
    Host,
    InputError,
    Specialist,
    Team,
    ask_user,
    build_graph,
    run,
    waiting_for,
)
from replan.testing import ScriptedModel, always
from scripts import THREAD
from states import said, state_of

DONE = always("---\nverdict: complete\n---\nThe end.")
PLAN = "- [ ] 1. Pay Ann @bank\n"


class Bank:
    """Pays what its model wants to pay, call by call, or what a step says."""

    def __init__(self, **options):
        self.paid, self.options = [], options

    def graph(self, *amounts):
        async def pay(amount: int) -> str:
            """Pay."""
            self.paid.append(amount)
            return f"paid {amount}"

        calls = [
            AIMessage(
                "", tool_calls=[{"name": "pay", "args": {"amount": amount}, "id": str(place)}]
            )
            for place, amount in enumerate(amounts)
        ]
        model = ScriptedModel({"step 1": [*calls, always("Paid.")], "feedback": DONE})
        clerk = Specialist(
            name="bank", intended_use="Pays.", chat_model=model, tools=[pay], approve=["pay"]
        )
        return self.built(model, clerk)

    def by_function(self, *feedback):
        def pay(context: ExecutionContext) -> str:
            self.paid.append(context.task_description)
            return "paid"

        model = ScriptedModel({"feedback": [*feedback, DONE]})
        return self.built(model, Specialist(name="bank", intended_use="Pays.", run=pay))

    def built(self, model, clerk):
        config = Team(host=Host(model=model), specialists=[clerk], **self.options)
        return build_graph(config, checkpointer=InMemorySaver())


def shown(state):
    """What the interrupt of a waiting state shows."""
    return state["__interrupt__"][0].value


async def test_all_that_is_asked_shows_the_same_fields():
    bank = Bank(approval="always")
    state = (await run(bank.graph(5), {"plan": PLAN}, config=THREAD)).state
    (plan,) = shown(state)["questions"]
    bank = Bank()
    state = (await run(bank.graph(5), {"plan": PLAN}, config=THREAD)).state
    (call,) = shown(state)["questions"]
    every = {"key", "kind", "text", "details", "fingerprint", "response_schema"}
    assert every <= plan.keys()
    assert every <= call.keys()
    assert (plan["key"], plan["kind"], plan["text"]) == ("plan", "plan", PLAN)
    assert (call["kind"], call["details"]["arguments"]) == ("approval", {"amount": 5})
    assert plan["response_schema"]["anyOf"][2]["properties"]["plan"]["type"] == "string"


async def test_a_word_about_another_plan_is_refused_and_the_plan_asked_about_again():
    bank = Bank(approval="always")
    graph = bank.by_function()
    state = (await run(graph, {"plan": PLAN}, config=THREAD)).state
    stale = {"action": "approve", "fingerprint": "0" * 16}
    with pytest.raises(InputError, match="does not answer what is asked now"):
        await run(graph, Command(resume=stale), config=THREAD)
    assert bank.paid == []
    seen = {"action": "approve", "fingerprint": waiting_for(state)[0].fingerprint}
    state = (await run(graph, await said(graph, seen, THREAD), config=THREAD)).state
    assert (state["outcome"], bank.paid) == ("completed", ["Pay Ann"])


async def test_a_word_that_comes_before_a_call_is_shown_does_not_approve_it():
    bank = Bank()
    graph = bank.graph(9999)
    async for _ in graph.astream({"plan": PLAN}, THREAD, interrupt_before=["user_input"]):
        pass
    state = (await run(graph, await said(graph, "yes", THREAD), config=THREAD)).state
    assert (state["outcome"], bank.paid) == ("waiting", [])
    state = (await run(graph, None, config=THREAD)).state
    assert (state["outcome"], bank.paid) == ("waiting", [])
    state = (await run(graph, await said(graph, "yes", THREAD), config=THREAD)).state
    assert (state["outcome"], bank.paid) == ("completed", [9999])


async def test_a_person_who_answers_late_does_not_approve_the_next_call():
    bank = Bank()
    graph = bank.graph(5, 9999)
    state = (await run(graph, {"plan": PLAN}, config=THREAD)).state
    (first,) = waiting_for(state)
    yes = {"action": "approve", "fingerprint": first.fingerprint}
    await run(graph, await said(graph, yes, THREAD), config=THREAD)
    # Another person, at another screen, says the same of the same.
    with pytest.raises(InputError, match="does not answer what is asked now"):
        await run(graph, Command(resume=yes), config=THREAD)
    assert bank.paid == [5]
    (second,) = waiting_for((await graph.aget_state(THREAD)).interrupts)
    no = {"answer": "no", "fingerprint": second.fingerprint}
    state = (await run(graph, Command(resume={second.key: no}), config=THREAD)).state
    assert (state["outcome"], bank.paid) == ("completed", [5])


async def test_a_call_that_was_refused_is_not_made_since_one_like_it_was_approved():
    bank = Bank()
    graph = bank.graph(5, 5)
    await run(graph, {"plan": PLAN}, config=THREAD)
    state = (await run(graph, await said(graph, "approve", THREAD), config=THREAD)).state
    assert (state["outcome"], bank.paid) == ("waiting", [5])
    state = (
        await run(graph, await said(graph, "reject: once is enough", THREAD), config=THREAD)
    ).state
    assert (state["outcome"], bank.paid) == ("completed", [5])


@pytest.mark.parametrize("is_bound", [True, False])
async def test_an_answer_to_a_plain_question_may_carry_what_it_is_for(is_bound):
    asker = Specialist(
        name="bank", intended_use="Asks.", run=lambda context: str(ask_user("Which account?"))
    )
    model = ScriptedModel({"feedback": DONE})
    graph = Bank().built(model, asker)
    state = (await run(graph, {"plan": PLAN}, config=THREAD)).state
    (question,) = waiting_for(state)
    given = {"answer": "the first", "fingerprint": question.fingerprint if is_bound else "1" * 16}
    if not is_bound:
        with pytest.raises(InputError, match="does not answer what is asked now"):
            await run(graph, Command(resume=given), config=THREAD)
        return
    state = (await run(graph, Command(resume=given), config=THREAD)).state
    assert state["outcome"] == "completed"
    assert state["current_specialist_results"]["1/bank"].text == "the first"


async def test_a_word_that_comes_before_a_doubt_is_shown_does_not_settle_it():
    at_work, times = asyncio.Event(), []

    async def pay(context):
        times.append(context.attempt)
        at_work.set()
        await asyncio.Event().wait()

    clerk = Specialist(name="bank", intended_use="Pays.", run=pay)
    graph = Bank().built(ScriptedModel({"feedback": DONE}), clerk)
    running = asyncio.ensure_future(state_of(run(graph, {"plan": PLAN}, config=THREAD)))
    await at_work.wait()
    running.cancel()
    await asyncio.wait({running})
    state = (await run(graph, await said(graph, "run again", THREAD), config=THREAD)).state
    assert (state["outcome"], times) == ("waiting", [1])
