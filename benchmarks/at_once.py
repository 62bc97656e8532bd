"""Many runs, or many sessions, at the same time, in a process of their own: what they take.

`at_once.py SIDE KIND COUNT URL`: the kind is a workload of `http_workloads`, of which each run is
one; or `simple` or `planned`, of which each session takes two turns, one after the other, and is
kept as a client keeps it: as a context, or as a list of messages. Reads its memory from `/proc`: it
needs Linux.
"""
# LangGraph leaves the type arguments of savers open, so methods of graphs read as partly unknown.
# pyright: reportUnknownMemberType=false

import asyncio
import ctypes
import gc
import json
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from harness import functions_called
from http_runs import (
    OUR_CLIENT,
    PLANNER,
    REQUEST,
    SIDES,
    ModelOf,
    langchains_model,
    replans_model,
    worker_team,
)
from http_workloads import SIMPLE, TURN, WORKLOADS
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage
from langgraph.graph import END, START, MessagesState, StateGraph

from replan.base.own_loop import spare_collector
from replan.prompts.sections import Call, call_tag
from replan.sessions import AgentContext, build_agent

MODELS = {"simple": SIMPLE, "planned": TURN.model}
"""The kinds of turns of sessions, and the models that play them."""

TURNS = 2
_LOOK = 0.005
_AGAIN = 3
_WARM = 2  # the second run of a graph makes what later ones use
_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")

Work = Callable[[], Awaitable[object]]
"""Makes one run, or takes the turns of one session.

Raises:
    RuntimeError: It was not completed.
"""


def agent_session(kind: str, base_url: str) -> Work:
    """Sessions of a stateless agent."""
    agent = build_agent(worker_team(MODELS[kind]), base_url=base_url)

    async def talk() -> AgentContext:
        context = AgentContext(session_id="benchmark")
        for _ in range(TURNS):
            result = await agent.process(REQUEST, context)
            if not result.success or result.metadata["degraded"]:
                raise RuntimeError(result.error or result.response)
            context = context.apply(result.context_updates)
        return context

    return talk


def graph_session(kind: str, base_url: str, model_of: ModelOf) -> Work:
    """Sessions of a LangGraph graph whose only node asks the model."""
    turn = graph_turn(model_of(MODELS[kind], base_url))

    async def talk() -> list[AnyMessage]:
        messages: list[AnyMessage] = []
        for _ in range(TURNS):
            messages = await turn(messages)
        return messages

    return talk


def graph_turn(model: Any) -> Callable[[list[AnyMessage]], Awaitable[list[AnyMessage]]]:
    """A turn of a LangGraph graph whose only node asks a model."""
    system = SystemMessage(f"{PLANNER}\n\n{call_tag(Call(node='think'))}")

    async def answer(state: MessagesState) -> dict[str, list[AnyMessage]]:
        # As much of the conversation as Replan shows.
        reply = await model.ainvoke([system, *state["messages"][-11:]])
        return {"messages": [AIMessage(reply.text)]}

    builder = StateGraph(MessagesState)
    builder.add_node("answer", answer)
    builder.add_edge(START, "answer")
    builder.add_edge("answer", END)
    graph: Any = builder.compile()

    async def turn(messages: list[AnyMessage]) -> list[AnyMessage]:
        return (await graph.ainvoke({"messages": [*messages, HumanMessage(REQUEST)]}))["messages"]

    return turn


def work_of(side: str, kind: str, base_url: str) -> Work:
    """What is done many times at once."""
    if kind in WORKLOADS:
        return SIDES[side](WORKLOADS[kind], base_url)
    if side == "Replan":
        return agent_session(kind, base_url)
    return graph_session(kind, base_url, replans_model if side == OUR_CLIENT else langchains_model)


async def taken(work: Work, count: int) -> dict[str, float]:
    """Do it so many times at once, and measure."""
    times, kept, late = list[float](), list[object](), list[float]()

    async def one() -> None:
        began = time.perf_counter()
        kept.append(await work())
        times.append(time.perf_counter() - began)

    async def look() -> None:
        # How much CPU time the loop takes until it comes round: on an idle machine, its lag.
        while True:
            began = time.thread_time()
            await asyncio.sleep(_LOOK)
            late.append(time.thread_time() - began)

    for _ in range(_WARM):
        await work()
    calls = await functions_called(work)
    # As a server of Replan does, for all sides.
    spare_collector()
    before = _begin_anew()
    looking = asyncio.ensure_future(look())
    cpu, began = time.process_time(), time.perf_counter()
    await asyncio.gather(*(one() for _ in range(count)))
    took, cpu = time.perf_counter() - began, time.process_time() - cpu
    looking.cancel()
    peak, slowest = _kilobytes("VmHWM"), max(times) / median(times)
    kept.clear()
    _settle()
    # The first ones leave what all share: connections, and memory that is used again.
    again, after = max(1, count // _AGAIN), _kilobytes("VmRSS")
    await asyncio.gather(*(one() for _ in range(again)))
    kept.clear()
    _settle()
    return {
        "a second": count / took,
        "CPU": cpu / count,
        "function calls": calls,
        "kB": (peak - before) / count,
        "kB that stays": (_kilobytes("VmRSS") - after) / again,
        "lag of the loop, p99, ms of CPU": 1_000 * quantiles(late, n=100)[-1],
        "slowest over median": slowest,
    }


def _begin_anew() -> int:
    """Forget the peak of memory, and give what is in use."""
    _settle()
    _CLEAR.write_text("5")
    return _kilobytes("VmRSS")


def _settle() -> None:
    """Give back all memory that is free."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)


def _kilobytes(field: str) -> int:
    values = dict(line.split(":", 1) for line in _STATUS.read_text().splitlines())
    return int(values[field].split()[0])


if __name__ == "__main__":
    side, kind, count, base_url = sys.argv[1:]
    print(json.dumps(asyncio.run(taken(work_of(side, kind, base_url), int(count)))))
