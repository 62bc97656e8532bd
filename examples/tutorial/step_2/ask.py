"""Ask for an order with its price, and show each call of a tool as it happens."""

import asyncio

from offline import model
from shop import shop

from replan import stream


async def main() -> None:
    """Follow the run by its events."""
    async for event in stream(shop(model()), "What do we order, and what does it cost?"):
        if event.type == "tool_completed":
            print(f"{event.tool}({event.arguments}) -> {event.result}")
        elif event.type == "specialist_completed":
            print(f"step {event.step_id}: {event.text}")
        elif event.type == "task_completed":
            print(event.outcome)


asyncio.run(main())
