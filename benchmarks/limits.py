"""What limits cost: the same plan without any, with wide ones, and with room for a part at a time.

Every step asks a model that takes its time and answers in few tokens, so that a call uses much
less than what it reserves. The time of a run with limits is divided by that of one without. Where
there is room for a part of the steps at first, the others go on as soon as calls are settled.
"""

import asyncio
import statistics
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from typing import Any

from critical_path import Start, timed
from plans import flat
from reporting import Row, options, publish

from replan import Host, Limits, Price, Specialist, Team, build_graph, run
from replan.testing import Reply, ScriptedModel, always

COMPLETE = "---\nverdict: complete\n---\nThe answer."
USAGE = (400, 100)


class Cuttable(ScriptedModel):
    """A model that can be told how long its reply may be, as those of most providers can."""

    max_tokens: int | None = None


def arguments() -> ArgumentParser:
    """The options of this benchmark."""
    parser = options(__doc__ or "")
    parser.add_argument("--steps", type=int, default=200, help="steps (default 200)")
    parser.add_argument("--latency", type=float, default=0.2, help="seconds of a call")
    parser.add_argument("--repeat", type=int, help="rounds of runs (default 5)")
    return parser


def main(args: Namespace) -> list[Row]:
    """Run the kinds in turn, so that a slow moment hits all of them."""
    args.repeat = args.repeat or (11 if args.long else 5)
    return asyncio.run(_rows(args))


async def _rows(args: Namespace) -> list[Row]:
    steps = args.steps
    # A call reserves about 6,000 tokens and uses 500.
    kinds: dict[str, Mapping[str, Any]] = {
        "none": {},
        "calls": {"max_model_calls": 2 * steps},
        "calls, tokens, money, seconds": {
            "max_tokens": 8_000 * steps,
            "max_cost": float(steps),
            "max_seconds": 3_600.0,
        },
        "tokens, with room for a fourth": {"max_tokens": 1_500 * steps},
    }
    times: dict[str, list[float]] = {kind: [] for kind in kinds}
    at_once: dict[str, int] = {}
    for turn in range(args.repeat + 1):
        for kind, limits in kinds.items():
            busy = Busy(args.latency)
            took = await timed(_start(steps, busy, limits), steps)
            # The first turn pays for what is loaded and compiled once.
            if turn:
                times[kind].append(took)
            at_once[kind] = busy.most
    return [
        {
            "table": "Time with limits over time without",
            "limits": kind,
            "ratio": statistics.median(
                took / free for took, free in zip(times[kind], times["none"], strict=True)
            ),
            "calls at once": at_once[kind],
        }
        for kind in kinds
    ]


class Busy:
    """Answers after a while, and counts how many wait for it at once."""

    def __init__(self, latency: float) -> None:
        self.latency = latency
        self.now = self.most = 0

    async def __call__(self, _: object) -> Reply:
        """Answer one call."""
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(self.latency)
        self.now -= 1
        return Reply("text", usage=USAGE)


def _start(steps: int, busy: Busy, limits: Mapping[str, Any]) -> Start:
    model = Cuttable({"specialist": always(busy), "feedback": always(COMPLETE)})
    given = {"max_steps": steps, "max_parallel_steps": steps, "max_model_calls": 10 * steps}
    config = Team(
        host=Host(model=model),
        specialists=[Specialist(name="worker", intended_use="Works.", chat_model=model)],
        limits=Limits(**{**given, **limits}),
        prices={"Cuttable": Price(input=1, output=4)},
    )
    graph, document = build_graph(config), flat(steps).document

    async def start() -> Mapping[Any, Any]:
        state = (await run(graph, {"messages": [("user", "Go.")], "plan": document})).state
        return state["current_specialist_results"]

    return start


if __name__ == "__main__":
    publish("limits", arguments().parse_args(), main)
