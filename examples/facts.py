"""A fact that outlives its conversation: told in one, known in the next, only to its user.

    python examples/facts.py
    python examples/facts.py --model openai:NAME --base-url http://127.0.0.1:8000/v1

Two conversations of Eva and one of Bob, each on its own thread, in one storage. The offline
model understands `remember that ...` and `what do you know about ...`; a named model, also
in REPLAN_MODEL, decides by itself what it remembers.
"""

import asyncio
import os
from argparse import ArgumentParser

from replan import Host, RunSettings, Specialist, Team, build_graph, open_runtime, open_storage

parser = ArgumentParser(description="Remember a fact, and ask for it.")
parser.add_argument("--model", default=os.environ.get("REPLAN_MODEL", "offline"))
parser.add_argument("--base-url", default=None)
asked = parser.parse_args()

team = Team(
    Host(asked.model, remembers=True),
    [Specialist("clerk", "Looks things up.", run=str)],
)
TALKS = [
    ("eva", "Remember that I need invoices as PDF."),
    ("eva", "What do you know about invoices?"),
    ("bob", "What do you know about invoices?"),
]


async def talk() -> None:
    """Ask each question in its own conversation, and list the known facts at the end."""
    # The path of a file, instead of ":memory:", keeps the facts for other processes.
    async with open_storage(":memory:") as storage:
        graph = build_graph(team, storage=storage, base_url=asked.base_url)
        async with open_runtime(graph, storage=storage) as runtime:
            for user, request in TALKS:
                run = await runtime.start(request, settings=RunSettings(user=user))
                result = await run
                print(f"{user}: {request}\n{result.text}")
                async for event in runtime.events(run.run_id):
                    if event.type == "fact_remembered":
                        print(f"event: fact_remembered, {event.text}")
            for user in ("eva", "bob"):
                known = [fact.text for fact in await runtime.facts(user)]
                print(f"known of {user}: {known}")


asyncio.run(talk())
