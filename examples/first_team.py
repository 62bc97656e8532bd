"""A team of two functions, and a request that names them.

    python examples/first_team.py

The host is the offline model, a set of rules: it plans each part of the request for whom it names.
REPLAN_MODEL=openai:NAME puts a real model in its place, which needs no names.
"""

import os

from replan import ExecutionContext, Host, Specialist, Team, build_graph, run_sync

STOCK = {"lamps": 14, "desks": 3}


def count(context: ExecutionContext) -> str:
    """Count what the step names."""
    found = [item for item in STOCK if item in context.task_description.lower()]
    return ", ".join(f"{STOCK[item]} {item}" for item in found)


def order(context: ExecutionContext) -> str:
    """Order, using the results of earlier steps."""
    return f"Ordered for a stock of {' and '.join(context.inputs.values())}."


team = [
    Specialist(
        name="clerk", intended_use="Checks the stock of an item.", run=count, effects="pure"
    ),
    Specialist(name="buyer", intended_use="Orders what the stock is short of.", run=order),
]
host = Host(model=os.environ.get("REPLAN_MODEL", "offline"))
graph = build_graph(Team(host=host, specialists=team))
request = "Check the lamps @clerk; check the desks @clerk; order @buyer (after 1, 2)"
result = run_sync(graph, request)
print(result.document or "Answered without a plan.")
print("---")
print(result.text)
