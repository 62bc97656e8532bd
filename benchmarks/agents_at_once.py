"""Many sessions in a process of their own: turns of an agent, or of a LangGraph graph of one node.

`agents_at_once.py SIDE KIND SESSIONS TURNS URL` takes so many turns of each session: all sessions
at the same time, the turns of one session one after the other. Each session is kept as a client
keeps it: as a context, or as a list of messages. Reads its memory from `/proc`: it needs Linux.
"""

import asyncio
import gc
import json
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from statistics import median, quantiles
from types import FrameType
from typing import Any

from http_many import begin_anew, kilobytes, settle
from http_runs import PLANNER, REQUEST, ModelOf, langchains_model, replans_model, worker_team
from http_workloads import SIMPLE, TURN
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage
from langgraph.graph import END, START, MessagesState, StateGraph

from replan.prompts.sections import Call, call_tag
from replan.sessions import AgentContext, build_agent

MODELS = {"simple": SIMPLE, "planned": TURN.model}
NOON = "2026-03-01T12:00:00+00:00"

_LOOK = 0.005
_AGAIN = 3
_PERCENT = 100

Session = Any
"""What a client keeps between two turns."""

Turn = Callable[[Session], Awaitable[Session]]
"""Takes a turn of a session, and gives what is kept then.

Raises:
    RuntimeError: There was no answer.
"""


@dataclass
class Lag:
    """How much CPU time the event loop takes until it comes round: on an idle machine, the lag."""

    seen: list[float] = field(default_factory=list[float])

    async def look(self) -> None:
        """Look for it until cancelled."""
        while True:
            began = time.thread_time()
            await asyncio.sleep(_LOOK)
            self.seen.append(time.thread_time() - began)

    @property
    def p99(self) -> float:
        """In milliseconds, what one of a hundred looks exceeds."""
        return 1_000 * quantiles(self.seen, n=_PERCENT)[-1]


def agent_turn(kind: str, base_url: str) -> tuple[Turn, Session]:
    """Turns of a stateless agent, and a new session."""
    agent = build_agent(worker_team(MODELS[kind]), base_url=base_url)

    async def turn(context: AgentContext) -> AgentContext:
        result = await agent.process(REQUEST, context)
        if not result.success or result.metadata["degraded"]:
            raise RuntimeError(result.error or result.response)
        return context.apply(result.context_updates)

    return turn, AgentContext(session_id="benchmark")


def graph_turn(
    kind: str, base_url: str, model_of: ModelOf = langchains_model
) -> tuple[Turn, Session]:
    """Turns of a LangGraph graph whose only node asks the model, and a new session."""
    model = model_of(MODELS[kind], base_url)
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

    async def turn(messages: tuple[AnyMessage, ...]) -> tuple[AnyMessage, ...]:
        state = await graph.ainvoke({"messages": [*messages, HumanMessage(REQUEST)]})
        return tuple(state["messages"])

    return turn, ()


OUR_CLIENT = "LangGraph with Replan's client"
SIDES = {
    "LangGraph": graph_turn,
    OUR_CLIENT: partial(graph_turn, model_of=replans_model),
    "Replan": agent_turn,
}


def at_once(side: str, kind: str, sessions: int, turns: int, base_url: str) -> dict[str, float]:
    """Take the turns in a new process; gives what it measured."""
    command = [sys.executable, __file__, side, kind, str(sessions), str(turns), base_url]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)  # noqa: S603 - this file
    return json.loads(done.stdout)


async def _calls(turn: Turn, session: Session, turns: int) -> float:
    """Function calls of a turn; of turns that are alone, they are the same on every machine."""
    count = 0

    def counted(_frame: FrameType | None, event: str, _arg: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(counted)
    try:
        for _ in range(turns):
            session = await turn(session)
    finally:
        sys.setprofile(None)
    return count / turns


async def _taken(turn: Turn, new: Session, sessions: int, turns: int) -> dict[str, float]:
    times: list[float] = []
    kept: list[Session] = []

    async def talk() -> None:
        session, began = new, time.perf_counter()
        for _ in range(turns):
            session = await turn(session)
        times.append(time.perf_counter() - began)
        kept.append(session)

    await turn(await turn(new))
    calls = await _calls(turn, new, turns)
    # As a server of Replan does: a collection looks at nothing that stays.
    gc.freeze()
    before, lag = begin_anew(), Lag()
    looking = asyncio.ensure_future(lag.look())
    cpu, began = time.process_time(), time.perf_counter()
    await asyncio.gather(*(talk() for _ in range(sessions)))
    took, cpu = time.perf_counter() - began, time.process_time() - cpu
    looking.cancel()
    slowest = max(times) / median(times)
    peak = kilobytes("VmHWM")
    settle()
    held = kilobytes("VmRSS")
    kept.clear()
    settle()
    of_contexts = held - kilobytes("VmRSS")
    # The first turns leave what all share: connections, and memory that is used again.
    again, after = max(1, sessions // _AGAIN), kilobytes("VmRSS")
    await asyncio.gather(*(talk() for _ in range(again)))
    kept.clear()
    settle()
    return {
        "turns a second": sessions * turns / took,
        "function calls of a turn": calls,
        "cpu of a turn": cpu / sessions / turns,
        "kB of a session": (peak - before) / sessions,
        "kB of a kept context": of_contexts / sessions,
        "kB that stays of a turn": (kilobytes("VmRSS") - after) / again / turns,
        "loop lag": lag.p99,
        "slowest over median": slowest,
    }


def _main(side: str, kind: str, sessions: str, turns: str, base_url: str) -> None:
    turn, new = SIDES[side](kind, base_url)
    print(json.dumps(asyncio.run(_taken(turn, new, int(sessions), int(turns)))))


if __name__ == "__main__":
    _main(*sys.argv[1:])
