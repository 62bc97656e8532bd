"""What makes a step the same step beside what its page shows: steps whose tools act."""

from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver

from replan import (
    Host,
    Limits,
    Specialist,
    Team,
    build_graph,
    run,
    waiting_for,
)
from replan.plan import parse_plan_from_markdown
from replan.testing import ScriptedModel, always
from scripts import COMPLETE, THREAD
from states import said

CONTINUE = "---\nverdict: continue\nupdate: Again.\n---\n"


class Bank:
    """A tool that pays, and a model that fails after it."""

    def __init__(self):
        self.paid = []

    def clerk(self, *replies, **tool):
        async def pay(amount: int) -> str:
            """Pay an amount."""
            self.paid.append(amount)
            return f"paid {amount}"

        model = ScriptedModel({"step 1": list(replies), "step 2": list(replies)})
        return Specialist(
            name="clerk", intended_use="Pays.", chat_model=model, tools=[pay], **tool
        ), model


PAY = AIMessage("", tool_calls=[{"name": "pay", "args": {"amount": 5}, "id": "1"}])


async def test_a_failed_tool_loop_that_is_opened_again_goes_on_and_pays_nothing_twice():
    bank = Bank()
    clerk, model = bank.clerk(PAY, "---\nstatus: failed\n---\nNo receipt.", "It is paid.")
    replies = {"feedback": [CONTINUE + "- [ ] 1. Pay @clerk (priority 2)\n", COMPLETE]}
    config = Team(
        host=Host(model=ScriptedModel(replies)),
        specialists=[clerk],
        limits=Limits(step_retries=0),
    )
    state = (await run(build_graph(config), {"plan": "- [ ] 1. Pay @clerk\n"})).state
    assert state["current_specialist_results"]["1/clerk"].text == "It is paid."
    assert bank.paid == [5]
    assert len(model.calls) == 3


async def test_a_tool_loop_that_paid_asks_before_it_is_done_once_more():
    bank = Bank()
    clerk, _ = bank.clerk(PAY, "It is paid.", PAY, "It is paid again.")
    config = Team(
        host=Host(model=ScriptedModel({"feedback": always(COMPLETE)})),
        specialists=[clerk],
    )
    graph = build_graph(config, checkpointer=InMemorySaver())
    await run(graph, {"plan": "- [ ] 1. Pay @clerk\n"}, config=THREAD)
    plan = parse_plan_from_markdown("- [ ] 1. Pay @clerk\n")
    await graph.aupdate_state(THREAD, {"current_plan": plan}, as_node="plan_creation")
    state = await graph.ainvoke(None, THREAD)
    (question,) = waiting_for(state)
    assert "was done in attempt 1" in question.text
    assert bank.paid == [5]
    state = await graph.ainvoke(await said(graph, "run again", THREAD), THREAD)
    assert state["current_specialist_results"]["1/clerk"].text == "It is paid again."
    assert bank.paid == [5, 5]


async def test_who_did_a_part_with_tools_goes_on_with_the_rest_unasked():
    bank = Bank()
    clerk, _ = bank.clerk(PAY, "---\nstatus: partial\n---\nHalf of it.", PAY, "It is paid.")
    model = ScriptedModel({"feedback": [f"{CONTINUE}- [ ] 1. Pay the rest @clerk\n", COMPLETE]})
    state = (await run(Team(Host(model), [clerk]), {"plan": "- [ ] 1. Pay @clerk\n"})).state
    assert (state["outcome"], bank.paid) == ("completed", [5, 5])
