"""What clients of LangChain's human-in-the-loop shape are shown, and what they resume with."""

import pytest
from langchain.agents.middleware.human_in_the_loop import HITLRequest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from pydantic import TypeAdapter

from replan import ExecutionContext, Host, Specialist, Team, ask_user, build_graph, run, waiting_for
from replan.testing import ScriptedModel
from scripts import THREAD

PLAN = "- [ ] 1. Paint the hall @painter\n- [ ] 2. Paint the attic @painter\n"
REQUEST = TypeAdapter(HITLRequest)


def paint(context: ExecutionContext) -> str:
    return f"{context.plan_step.id}: {ask_user(f'Which colour for {context.plan_step.id}?')}"


def painters(**options):
    team = [Specialist("painter", "Paints.", run=paint, effects="pure")]
    return build_graph(Team(Host("offline"), team, **options), checkpointer=InMemorySaver())


async def asked(graph, given):
    state = (await run(graph, given, config=THREAD)).state
    (interrupt,) = state.get("__interrupt__", ()) or (None,)
    return state, interrupt


def decided(*decisions):
    return Command(resume={"decisions": [*decisions]})


def edit(name, **args):
    return {"type": "edit", "edited_action": {"name": name, "args": args}}


async def test_a_client_gets_questions_as_actions_and_answers_them_in_their_order():
    graph = painters()
    _, interrupt = await asked(graph, {"plan": PLAN})
    request = REQUEST.validate_python(
        {name: interrupt.value[name] for name in ("action_requests", "review_configs")}
    )
    assert [each["description"] for each in request["action_requests"]] == [
        "Which colour for 1?",
        "Which colour for 2?",
    ]
    assert request["review_configs"][0]["allowed_decisions"] == ["respond", "edit"]
    answers = {"type": "respond", "message": "red"}, edit("answer", answer="blue")
    state, _ = await asked(graph, decided(*answers))
    texts = [each.text for each in state["current_specialist_results"].values()]
    assert (state["outcome"], texts) == ("completed", ["1: red", "2: blue"])


@pytest.mark.parametrize(
    ("decisions", "problem"),
    [
        ([], "one decision for each of the 2"),
        ([{"type": "respond", "message": "red"}] * 3, "one decision for each of the 2"),
        ([{"type": "approve"}] * 2, "is answered with 'respond' or 'edit'"),
        ([edit("paint", answer="red")] * 2, "of the name 'answer'"),
        ([{"type": "respond", "message": ""}] * 2, "is empty"),
        ([{"kind": "respond"}] * 2, "wrong field"),
        ("red", "one decision for each"),
    ],
)
async def test_decisions_that_cannot_be_taken_are_asked_for_again(decisions, problem):
    graph = painters()
    await asked(graph, {"plan": PLAN})
    _, interrupt = await asked(graph, Command(resume={"decisions": decisions}))
    assert problem in interrupt.value["problem"]


async def test_the_schema_of_an_interrupt_tells_clients_what_answers_it():
    _, interrupt = await asked(painters(), {"plan": PLAN})
    forms = interrupt.response_schema["anyOf"]
    assert list(forms[0]["properties"]) == ["1/painter/1", "2/painter/1"]
    assert "decisions" in forms[1]["properties"]


@pytest.mark.parametrize(
    ("decision", "outcome", "steps"),
    [
        ({"type": "approve"}, "waiting", 2),
        (edit("run_plan", plan="- [ ] 1. Paint the hall @painter\n"), "waiting", 1),
        ({"type": "reject"}, "rejected", 2),
    ],
)
async def test_a_plan_is_an_action_that_is_approved_edited_or_rejected(decision, outcome, steps):
    graph = painters(approval="always", allow_dynamic_update=False)
    _, interrupt = await asked(graph, {"plan": PLAN})
    (action,) = interrupt.value["action_requests"]
    assert (action["name"], action["args"]["plan"]) == (
        "run_plan",
        interrupt.value["questions"][0]["text"],
    )
    state, _ = await asked(graph, decided(decision))
    assert (state["outcome"], len(state["current_plan"].steps)) == (outcome, steps)


async def test_a_plan_that_was_edited_wrongly_is_shown_with_its_mistakes_and_as_it_was_edited():
    graph = painters(approval="always")
    await asked(graph, {"plan": PLAN})
    wrong = "- [ ] 1. Paint @painter (after 9)\n"
    _, interrupt = await asked(graph, decided(edit("run_plan", plan=wrong)))
    (action,) = interrupt.value["action_requests"]
    assert action["args"]["plan"] == wrong
    assert "step 9" in action["description"]


def _bank(paid):
    def pay(amount: int) -> str:
        """Pay an amount."""
        paid.append(amount)
        return f"{amount} paid"

    call = {"name": "pay", "args": {"amount": 5}, "id": "c1"}
    return pay, call


@pytest.mark.parametrize(
    ("decision", "paid"),
    [
        ({"type": "approve"}, [5]),
        (edit("pay", amount=3), [3]),
        ({"type": "reject", "message": "Not today."}, []),
    ],
)
async def test_a_call_of_a_tool_is_an_action_under_its_own_name(decision, paid):
    done = []
    pay, call = _bank(done)
    replies = {"specialist": [AIMessage("", tool_calls=[call]), "All is settled."]}
    with ScriptedModel(replies) as model:
        clerk = Specialist("clerk", "Pays.", chat_model=model, tools=[pay], approve=["pay"])
        team = Team(Host("offline"), [clerk])
        graph = build_graph(team, checkpointer=InMemorySaver())
        state, interrupt = await asked(graph, {"plan": "- [ ] 1. Pay Ann @clerk\n"})
        assert state["outcome"] == "waiting"
        (action,) = interrupt.value["action_requests"]
        assert (action["name"], action["args"]) == ("pay", {"amount": 5})
        state, _ = await asked(graph, decided(decision))
    assert (state["outcome"], done) == ("completed", paid)
    assert waiting_for(state) == ()


@pytest.mark.parametrize("wrong", [{"amount": "much"}, {"amount": None}, {"sum": 3}])
async def test_who_edits_a_call_wrongly_is_told_and_the_model_is_not(wrong):
    done = []
    pay, call = _bank(done)
    with ScriptedModel({"specialist": [AIMessage("", tool_calls=[call]), "Settled."]}) as model:
        clerk = Specialist("clerk", "Pays.", chat_model=model, tools=[pay], approve=["pay"])
        graph = build_graph(Team(Host("offline"), [clerk]), checkpointer=InMemorySaver())
        await asked(graph, {"plan": "- [ ] 1. Pay Ann @clerk\n"})
        for _ in range(2):
            _, interrupt = await asked(graph, decided(edit("pay", **wrong)))
            (action,) = interrupt.value["action_requests"]
            refused = action["description"].partition("edited arguments were refused: ")[2]
            assert refused.startswith(("amount: this must be", "amount: this is missing"))
            assert "Input should" not in refused
            assert action["args"] == {"amount": 5}
        assert (done, len(model.calls)) == ([], 1)
        state, _ = await asked(graph, decided(edit("pay", amount=3)))
    assert (state["outcome"], done) == ("completed", [3])


@pytest.mark.parametrize(
    ("response", "paid"),
    [
        ({"type": "accept", "args": {"action": "pay", "args": {"amount": 5}}}, [5]),
        ({"type": "edit", "args": {"action": "pay", "args": {"amount": 3}}}, [3]),
        ({"type": "ignore", "args": None}, []),
        ({"type": "response", "args": "Not today."}, []),
    ],
)
async def test_a_list_of_responses_decides_about_the_call_of_a_tool(response, paid):
    done = []
    pay, call = _bank(done)
    with ScriptedModel({"specialist": [AIMessage("", tool_calls=[call]), "Settled."]}) as model:
        clerk = Specialist("clerk", "Pays.", chat_model=model, tools=[pay], approve=["pay"])
        graph = build_graph(Team(Host("offline"), [clerk]), checkpointer=InMemorySaver())
        await asked(graph, {"plan": "- [ ] 1. Pay Ann @clerk\n"})
        state, _ = await asked(graph, Command(resume=[response]))
    assert (state["outcome"], done) == ("completed", paid)


async def test_a_response_answers_a_question_and_an_ignored_one_is_asked_again():
    graph = painters()
    await asked(graph, {"plan": "- [ ] 1. Paint @painter\n"})
    _, interrupt = await asked(graph, Command(resume=[{"type": "ignore", "args": None}]))
    assert "is answered with 'respond' or 'edit'" in interrupt.value["problem"]
    state, _ = await asked(graph, Command(resume=[{"type": "response", "args": "red"}]))
    assert state["outcome"] == "completed"
