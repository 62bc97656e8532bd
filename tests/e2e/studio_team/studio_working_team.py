"""One that works until a file says that it may end, and notes what it began; two others."""

import asyncio
from pathlib import Path

from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import interrupt

from replan import ask_user

HERE = Path(__file__).parent


def asks(context):
    return f"heard {ask_user(context.task_description)}"


def joins(context):
    return " and ".join(context.inputs.values()) or "done"


def twin_node(state):
    return {"messages": [AIMessage(f"heard {interrupt('Which twin?')}")]}


twin = StateGraph(MessagesState).add_node("node", twin_node).add_edge(START, "node").compile()


def books(day, pin):
    return f"booked {day} with {pin}"


async def works(context):
    step = context.task_description
    with (HERE / "begun").open("a") as begun:
        begun.write(f"{step}\n")
    while step.startswith("Wait") and not (HERE / "go on").exists():  # noqa: ASYNC110 - another process goes on
        await asyncio.sleep(0.01)
    return f"done: {step}"
