"""What a stateless agent costs: a thousand sessions at once, and a run that waits in a context.

Turns of sessions are compared with those of a LangGraph graph whose only node asks the same model,
with LangChain's own client and with Replan's, and a prompt of the same length. The sides take
turns, each in a process of its own. The model is the project's own test server, which takes 0.2 s a
call. Needs Linux.
"""

import asyncio
import json
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, cast

from agents_at_once import SIDES, at_once
from http_model import serving
from http_workloads import report
from plans import flat, step_line
from reporting import Row, judged, options, publish

from replan import ExecutionContext, Host, Specialist, Team, ask_user
from replan.ports.agent import Agent
from replan.sessions import AgentContext, build_agent
from replan.testing import ScriptedModel, always

LEAST_RATE = 0.8
MOST_LAG = 150
MOST_OVER_MEDIAN = 2
MOST_KB = {"simple": 100, "planned": 500}
MOST_KB_STAYING = 1
MOST_OF_TEXT = 3
MOST_TAKING_UP = 20
STEPS = 50


def arguments() -> ArgumentParser:
    """The options of this benchmark."""
    parser = options(__doc__ or "")
    add = parser.add_argument
    add("--only", nargs="+", choices=("simple", "planned", "waiting"), help="default: all")
    add("--sessions", type=int, help="sessions at once (default 1,000)")
    add("--turns", type=int, default=2, help="turns of each session (default 2)")
    add("--repeat", type=int, help="pairs of processes (default 3)")
    add("--fast", action="store_true", help="a smoke run: one pair, few sessions")
    return parser


def main(args: Namespace) -> list[Row]:
    """Measure what is asked for."""
    args.only = args.only or ["simple", "planned", "waiting"]
    args.sessions = args.sessions or (50 if args.fast else 1_000)
    args.repeat = args.repeat or (1 if args.fast else 3)
    rows: list[Row] = []
    if len(args.only) > args.only.count("waiting"):
        with serving() as base_url:
            for kind in [each for each in MOST_KB if each in args.only]:
                rows += _together(kind, base_url, args)
    if "waiting" in args.only:
        rows += asyncio.run(_waiting(args.repeat))
    return rows


def _together(kind: str, base_url: str, args: Namespace) -> list[Row]:
    # A graph of one node has no plan to compare with.
    sides = list(SIDES) if kind == "simple" else ["Replan"]
    taken: dict[str, list[dict[str, float]]] = {side: [] for side in sides}
    for _ in range(args.repeat):
        for side in sides:
            taken[side].append(at_once(side, kind, args.sessions, args.turns, base_url))
    row = {"table": f"{args.sessions:,} sessions at once, {args.turns} {kind} turns each"}
    ours, bare = (_medians(taken.get(side, [])) for side in ("Replan", "LangGraph"))
    bounds: dict[str, dict[str, float]] = {
        "kB of a session": {"most": MOST_KB[kind]},
        "kB of a kept context": {},
        "kB that stays of a turn": {"most": MOST_KB_STAYING},
        "loop lag": {"most": MOST_LAG},
        "slowest over median": {"most": MOST_OVER_MEDIAN},
        "cpu of a turn": {},
        "function calls of a turn": {},
    }
    shown = "loop lag", "loop lag, p99, ms of CPU"
    rows = [
        {
            **row,
            "what": name.replace(*shown),
            "LangGraph": bare.get(name),
            **judged(ours[name], name="Replan", **bound),
        }
        for name, bound in bounds.items()
    ]
    for side in [each for each in sides if each != "Replan"]:
        pairs = zip(taken["Replan"], taken[side], strict=True)
        rate = median(a["turns a second"] / b["turns a second"] for a, b in pairs)
        told = judged(rate, name="Replan", least=LEAST_RATE if side == "LangGraph" else None)
        rows.append({**row, "what": f"turns a second over {side}'s", "LangGraph": 1.0, **told})
        name = "function calls of a turn"
        calls = ours[name] / _medians(taken[side])[name]
        told = judged(calls, name="Replan")
        rows.append({**row, "what": f"{name} over {side}'s", "LangGraph": 1.0, **told})
    return rows


def _medians(taken: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {name: median(one[name] for one in taken) for name in (taken[0] if taken else ())}


def _agent() -> Agent:
    """An agent whose run has many results when its last step asks."""
    plan = "\n".join(step_line(step, after) for step, after in flat(STEPS).waits.items())
    think = f"---\ncomplexity: complex\n---\n{plan}\n"
    end = "---\nverdict: complete\n---\nAll parts were looked into."
    model = ScriptedModel({"think": always(think), "feedback": always(end)})

    def work(context: ExecutionContext) -> str:
        step = context.plan_step.id
        return report(step) if step < STEPS else f"{report(step)} {ask_user('How many?')}"

    worker = Specialist("worker", "Looks into parts.", run=work, effects="pure")
    return build_agent(Team(Host(model), [worker]), context_key="a key that nobody else has")


async def _waiting(repeat: int) -> list[Row]:
    agent = _agent()
    asked = await agent.process("Look into all parts.", AgentContext(session_id="benchmark"))
    context = AgentContext(session_id="benchmark").apply(asked.context_updates)
    run = len(json.dumps(context.to_dict()["project_state"]["run"], ensure_ascii=False))
    texts = sum(len(report(step)) for step in range(1, STEPS))
    stored = json.dumps(context.to_dict())
    times = [await _taking_up(agent, stored) for _ in range(20 * repeat)]
    row = {"table": f"A run of {STEPS} steps that waits, in a context"}
    over = judged(run / texts, name="Replan", most=MOST_OF_TEXT)
    took = judged(1_000 * median(times), name="Replan", most=MOST_TAKING_UP)
    return [
        {**row, "what": "its size over the text of its results", **over},
        {**row, "what": "from JSON to its first event, ms of CPU", **took},
    ]


async def _taking_up(agent: Agent, stored: str) -> float:
    began = time.process_time()
    context = AgentContext.from_dict(json.loads(stored))
    stream = agent.stream("Seven.", context)
    await anext(stream)
    took = time.process_time() - began
    last: Any = None
    async for each in stream:
        last = each
    if not last.success:
        raise RuntimeError(cast("str", last.error))
    return took


if __name__ == "__main__":
    publish("agents", arguments().parse_args(), main)
