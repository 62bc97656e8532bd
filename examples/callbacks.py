"""Callbacks: a ledger of the work of each specialist, with times.

    python examples/callbacks.py

A callback has some of eight methods. One that raises is logged and changes nothing, so a broken
ledger never breaks the work. The plan is handed in; its results are joined by the offline model, or
by the one of REPLAN_MODEL.
"""

import os

from replan import (
    ExecutionContext,
    Host,
    MultiAgentCallback,
    Specialist,
    Team,
    build_graph,
    run_sync,
)
from replan.events import PlanCreated, SpecialistCompleted, TaskCompleted

PLAN = "# Tea\n\n- [ ] 1. Boil water @kettle\n- [ ] 2. Draw the tea @pot (after 1)\n"


class Ledger(MultiAgentCallback):
    """Records the finished work."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    async def on_plan_created(self, info: PlanCreated) -> None:
        """Note the plan."""
        print(f"{info.title}: {info.steps} steps")

    async def on_specialist_complete(self, info: SpecialistCompleted) -> None:
        """Note a step."""
        key = f"{info.step_id}/{info.specialist}"
        self.seconds[key] = info.seconds
        print(f"{key}: {info.status}")

    async def on_task_complete(self, info: TaskCompleted) -> None:
        """Note the end."""
        print(f"{info.outcome}, model calls: {info.usage.calls}")


def work(_: ExecutionContext) -> str:
    """Do the step."""
    return "done"


ledger = Ledger()
config = Team(
    host=Host(model=os.environ.get("REPLAN_MODEL", "offline")),
    specialists=[
        Specialist(name="kettle", intended_use="Boils water.", run=work),
        Specialist(name="pot", intended_use="Draws tea.", run=work),
    ],
    callbacks=[ledger],
)
run_sync(build_graph(config), {"plan": PLAN})
print(f"{len(ledger.seconds)} times were noted")
