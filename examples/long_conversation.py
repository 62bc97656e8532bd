"""A long conversation: its prompts stay small, and its beginning is not forgotten.

    python examples/long_conversation.py
    python examples/long_conversation.py --model openai:NAME --base-url http://127.0.0.1:8000/v1

Fifteen requests on one thread. After every twelve messages, a summary replaces all but the last
four. The offline model writes it from the beginning of each message; a named model, also in
REPLAN_MODEL, summarises.
"""

import asyncio
import os
from argparse import ArgumentParser

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from replan import MemoryOptions, Specialist, Team, build_graph, stream
from replan.memory import read_summary

parser = ArgumentParser(description="Talk for fifteen turns.")
parser.add_argument("--model", default=os.environ.get("REPLAN_MODEL", "offline"))
parser.add_argument("--base-url", default=None)
asked = parser.parse_args()

team = Team(
    asked.model,
    [Specialist("clerk", "Looks things up.", run=str)],
    memory=MemoryOptions(mode="summary", summary_trigger_messages=12, history_limit=4),
)
graph = build_graph(team, checkpointer=InMemorySaver(), base_url=asked.base_url)


async def talk() -> None:
    """Ask, and print what the model sees and what was summarised."""
    thread: RunnableConfig = {"configurable": {"thread_id": "talk"}}
    for number in range(1, 16):
        async for event in stream(graph, f"calculate {number} * {number}", config=thread):
            if event.type == "memory_applied":
                print(f"turn {number}: {event.visible} messages, {event.summarised} in the summary")
            elif event.type == "memory_summary":
                print(f"turn {number}: a summary of {event.covered} messages {event.error}")
    summary = await read_summary(graph, thread)
    print(summary.text if summary else "There is no summary.")


asyncio.run(talk())
