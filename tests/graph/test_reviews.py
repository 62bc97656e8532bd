"""What clients of LangChain's human-in-the-loop shape are shown, and what they resume with."""

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from replan import ExecutionContext, Host, Specialist, Team, ask_user, build_graph, run, waiting_for
from replan.testing import ScriptedModel
from scripts import THREAD

PLAN = "- [ ] 1. Paint the hall @painter\n- [ ] 2. Paint the attic @painter\n"


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


async def test_the_schema_of_an_interrupt_tells_clients_what_answers_it():
    _, interrupt = await asked(painters(), {"plan": PLAN})
    forms = interrupt.response_schema["anyOf"]
    assert list(forms[0]["properties"]) == ["1/painter/1", "2/painter/1"]
    assert "decisions" in forms[1]["properties"]


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
