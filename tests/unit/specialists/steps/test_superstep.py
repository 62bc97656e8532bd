"""What a task reads of its super-step: LangGraph's private key, and the way without it."""

from typing import TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Send

from replan import Host, Specialist, Team, build_graph, run
from replan.base.langgraph_inside import tasks
from replan.testing import ScriptedModel
from states import state_of

PLAN = """\
- [ ] 1. One @a
- [ ] 2. Two @b
- [ ] 3. Three @a @b (after 1, 2)
- [ ] 4. Four @b (if 1 failed)
- [ ] 5. Five @a (after 3)
"""
COMPLETE = "---\nverdict: complete\n---\nThe answer."
KEY = tasks._READ  # noqa: SLF001 - this file guards it


class Small(TypedDict):
    text: str


async def test_this_langgraph_has_the_private_key_that_spares_copies_of_the_state():
    """If this fails, runs go on with the state in every argument; look for the key's new name."""
    seen = []

    def fan_out(state, config):
        seen.append(KEY in config["configurable"])
        return [Send("work", {})]

    def work(sent, config):
        seen.append(config["configurable"][KEY](["text"]))

    graph = StateGraph(Small)
    graph.add_node("plan", lambda state: {"text": "of the super-step"})
    graph.add_node("work", work)
    graph.add_edge(START, "plan")
    graph.add_conditional_edges("plan", fan_out, ["work"])
    await graph.compile().ainvoke({"text": ""})
    assert seen == [True, {"text": "of the super-step"}]


async def whole_run(settings=None):
    def work(context):
        return f"{context.task_description} from {context.inputs}, asked {context.messages[0].text}"

    with ScriptedModel({"feedback": COMPLETE}) as model:
        team = [Specialist(name=name, intended_use="Works.", run=work) for name in "ab"]
        config = Team(host=Host(model=model), specialists=team)
        graph = build_graph(config, checkpointer=InMemorySaver())
        thread = {"configurable": {"thread_id": "t"}}
        return await state_of(
            run(graph, {"messages": [("user", "Go.")], "plan": PLAN}, config=thread)
        )


def told(state):
    results = state["current_specialist_results"].items()
    return {
        "texts": {key: (result.text, result.status) for key, result in results},
        "plan": [(step.id, step.status, step.result) for step in state["current_plan"].steps],
        # The request says how long steps took, so its tokens are not the same each time.
        "usage": (state["usage"].calls, state["usage"].output_tokens),
        "messages": [(message.type, message.text) for message in state["messages"]],
        "ended": (state["outcome"], state["current_round"], state["final_answer"].text),
    }


async def test_a_run_without_the_private_key_ends_as_one_with_it(monkeypatch):
    with_key = told(await whole_run())
    monkeypatch.setattr(tasks, "_READ", "__a_key_that_no_langgraph_has")
    assert told(await whole_run()) == with_key
    assert with_key["texts"]["5/a"][0].startswith("Five from {3: ")
