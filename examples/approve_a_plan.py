"""Approval: a plan waits until a person approves it, unchanged or edited.

    python examples/approve_a_plan.py

The plan is handed in, and the team asks about every plan. The person in this program makes a
mistake first. The offline model, or that of REPLAN_MODEL, combines the results.
"""

import os

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from replan import (
    EnhancedState,
    ExecutionContext,
    Host,
    Question,
    Specialist,
    Team,
    build_graph,
    run_sync,
    waiting_for,
)

PLAN = "- [ ] 1. Boil water @cook\n- [ ] 2. Boil an egg @cook (after 1)\n"


def cook(_: ExecutionContext) -> str:
    """Cook what the step names."""
    return "done"


def asked(state: EnhancedState) -> Question:
    """Return the question whether the plan may run."""
    (question,) = waiting_for(state)
    return question


config = Team(
    host=Host(model=os.environ.get("REPLAN_MODEL", "offline")),
    specialists=[Specialist(name="cook", intended_use="Cooks.", run=cook)],
    approval="always",
)
graph = build_graph(config, checkpointer=InMemorySaver())
thread: RunnableConfig = {"configurable": {"thread_id": "kitchen"}}

result = run_sync(graph, {"plan": PLAN}, config=thread)
print(*asked(result.state).remarks)
print(asked(result.state).text)

mistaken = {"action": "edit", "plan": PLAN.replace("after 1", "after 9")}
result = run_sync(graph, Command(resume={"plan": mistaken}), config=thread)
print("rejected for now:", asked(result.state).problem.splitlines()[1].strip())

edited = {"action": "edit", "plan": PLAN.replace("an egg", "two eggs")}
result = run_sync(graph, Command(resume={"plan": edited}), config=thread)
print(result.document)
if plan := result.plan:
    print(f"version {plan.version}, changed by {plan.update_history[0].by}")
