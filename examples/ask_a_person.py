"""Questions: two steps ask at once, and are answered in any order while other steps continue.

    python examples/ask_a_person.py

The plan is handed in; its results are joined by the offline model, or by the one of REPLAN_MODEL.
The answers stand in the program, where a real one would ask somebody.
"""

import os

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from replan import (
    ExecutionContext,
    Host,
    Specialist,
    Team,
    ask_user,
    build_graph,
    run_sync,
    waiting_for,
)

PLAN = """\
- [ ] 1. the hall @painter
- [ ] 2. the attic @painter
- [ ] 3. the garden @cleaner
"""


def paint(context: ExecutionContext) -> str:
    """Paint what the step names, in a colour that a person chooses."""
    colour = ask_user(f"Which colour for {context.task_description}?")
    # Code below a question runs once; code above it runs again for each answer.
    print(f"{context.task_description} is {colour}")
    return str(colour)


def clean(_: ExecutionContext) -> str:
    """Clean what the step names."""
    return "clean"


config = Team(
    host=Host(model=os.environ.get("REPLAN_MODEL", "offline")),
    specialists=[
        Specialist(name="painter", intended_use="Paints a room.", run=paint),
        Specialist(name="cleaner", intended_use="Cleans up.", run=clean),
    ],
)
graph = build_graph(config, checkpointer=InMemorySaver())
thread: RunnableConfig = {"configurable": {"thread_id": "house"}}

result = run_sync(graph, {"plan": PLAN}, config=thread)
for question in waiting_for(result.state):
    print(f"{question.key}: {question.text}")
print("already done:", *result.results)

result = run_sync(graph, Command(resume={"2/painter/1": "grey"}), config=thread)
print("still open:", *[question.key for question in waiting_for(result.state)])

result = run_sync(graph, Command(resume="blue"), config=thread)
print(result.outcome)
