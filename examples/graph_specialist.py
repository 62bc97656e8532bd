"""A compiled LangGraph graph as a specialist.

    python examples/graph_specialist.py

Any graph with a `messages` key will do, also LangChain's `create_agent(model, tools)`. It gets the
messages of the step, and its last message is the result. This one has two nodes and no model of its
own; the plan is handed in, so the host, offline or the one of REPLAN_MODEL, only joins the results.
"""

# LangGraph leaves type arguments of its builder open.
# pyright: reportUnknownMemberType=false

import os

from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph

from replan import ExecutionContext, Host, Specialist, Team, build_graph, run_sync


def collect(state: MessagesState) -> dict[str, list[AIMessage]]:
    """Split the last message into words."""
    return {"messages": [AIMessage(" ".join(sorted(state["messages"][-1].text.split())))]}


def count(state: MessagesState) -> dict[str, list[AIMessage]]:
    """Count them."""
    words = state["messages"][-1].text.split()
    return {"messages": [AIMessage(f"{len(words)} words, {len(set(words))} of them different")]}


def only_the_task(context: ExecutionContext) -> list[tuple[str, str]]:
    """Pass only the step's line, instead of the whole prompt."""
    return [("user", context.task_description)]


inner = StateGraph(MessagesState).add_node("collect", collect).add_node("count", count)
inner.add_edge(START, "collect").add_edge("collect", "count")
counter = Specialist(
    name="counter",
    intended_use="Counts the words of a sentence.",
    invokable=inner.compile(),
    input_processor=only_the_task,
)
host = Host(model=os.environ.get("REPLAN_MODEL", "offline"))
graph = build_graph(Team(host=host, specialists=[counter]))
result = run_sync(graph, {"plan": "- [ ] 1. the more the merrier @counter\n"})
print(result.results["1/counter"].text)
