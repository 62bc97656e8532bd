"""The events of a run as they happen, and the answer as it is written.

    python examples/streaming.py

The request is planned by the offline model, or by the one that REPLAN_MODEL names.
"""

import asyncio
import os

from replan import ExecutionContext, Host, Specialist, Team, build_graph, stream
from replan.events import AnswerToken, PlanCreated, SpecialistCompleted, SpecialistInvoked

PRICES = {"train": "45 EUR", "bus": "30 EUR"}


def look_up(context: ExecutionContext) -> str:
    """Look up the price of what the step names."""
    return next((PRICES[means] for means in PRICES if means in context.task_description), "none")


async def main() -> None:
    """Print a run as it happens."""
    team = [Specialist(name="prices", intended_use="Looks up the price of a ride.", run=look_up)]
    host = Host(model=os.environ.get("REPLAN_MODEL", "offline"))
    graph = build_graph(Team(host=host, specialists=team))
    request = "Look up the price of the train @prices; look up the price of the bus @prices"
    async for event in stream(graph, request):
        match event:
            case PlanCreated():
                print(f"{event.steps} steps")
            case SpecialistInvoked():
                print(f"step {event.step_id} starts: {event.task}")
            case SpecialistCompleted():
                print(f"step {event.step_id} ends: {event.text}")
            case AnswerToken():
                print(event.text, end="")
            case _:
                pass
    print()


asyncio.run(main())
