"""How long a run takes at the pace of real models, over a program of our own with the same replies.

A call takes 0.6 s, 15 ms for each token that the model writes, and 0.1 ms for each that it reads.
The program, the floor, waits for the whole plan, starts each step when those that it waits for are
done, and then has the answer written, with the same client. Both sides take turns. The tokens of
the host are compared with those that `pace_today.json` keeps of an earlier measure.
"""

import asyncio
import json
import os
import re
import statistics
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pace_workloads
from harness import Row, judged, options, publish, serving
from http_runs import JUDGE, PLANNER, WORKER, messages
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.tools import StructuredTool
from pace_workloads import (
    AT_ONCE,
    DIFFERENCES,
    RECORDED,
    SIDES,
    TOOLS,
    WORKLOADS,
    Side,
    Workload,
    found,
    model_name,
)

from replan import Host, Specialist, Team, build_graph, run
from replan.models.providers.chat_models import LangChainModels
from replan.prompts.sections import Call
from replan.team.host import Judging

TODAY = Path(__file__).with_name("pace_today.json")

MOST_OF_FLOOR = {"DAG of 20": 0.75, "fan-out of 8": 0.85}
MOST_OF_FLOOR_RECORDED = 0.85
MOST_OUT, MOST_IN = 0.6, 0.8
"""The host's tokens over those of today."""

_STEP = re.compile(
    r"^- \[.\] (?P<id>\d+)\. (?P<task>.+?) @(?P<specialist>\w+)(?: \(after (?P<after>[\d, ]+)\))?\n"
    r"(?P<brief>(?:(?!- \[).*\n?)*)",
    re.MULTILINE,
)


@dataclass
class Ran:
    """What one run did.

    Attributes:
        seconds: Of the clock.
        calls: Calls of the model.
        host_in: Tokens that the host's calls read.
        host_out: Tokens that they wrote.
    """

    seconds: float = 0.0
    calls: int = 0
    host_in: int = 0
    host_out: int = 0


Begin = Callable[[], Awaitable[Ran]]
"""Makes one run."""


def arguments() -> ArgumentParser:
    """The options of this benchmark."""
    parser = options(__doc__ or "")
    add = parser.add_argument
    add("--workloads", nargs="+", choices=WORKLOADS, help="workloads (default all)")
    add("--repeat", type=int, help="turns (default 1; with --long 5); one takes ten minutes")
    add("--keep", action="store_true", help=f"write {TODAY.name}, to compare with from now on")
    return parser


def main(args: Namespace) -> list[Row]:
    """Measure the workloads that are asked for."""
    args.repeat = args.repeat or (5 if args.long else 1)
    args.workloads = args.workloads or list(WORKLOADS)
    args.load = round(os.getloadavg()[0], 1)
    with serving(pace_workloads.__file__) as base_url:
        ran = asyncio.run(_measured(args, base_url))
    if args.keep:
        TODAY.write_text(json.dumps(_kept(ran), indent=2) + "\n", encoding="utf-8")
    return rows_of(ran, json.loads(TODAY.read_text(encoding="utf-8")) if TODAY.exists() else {})


Measured = Mapping[str, Mapping[Side, list[Ran]]]
"""The runs of each side, by workload."""


async def _measured(args: Namespace, base_url: str) -> Measured:
    workloads = [WORKLOADS[name] for name in args.workloads]
    for workload in workloads:
        # What is loaded and opened once is paid for here, and both sides prove to make all calls.
        for side, begin in sides(workload, base_url, at_once=True).items():
            await checked(workload, side, begin)
    ran: dict[str, dict[Side, list[Ran]]] = {
        each.name: {side: [] for side in SIDES} for each in workloads
    }
    for _ in range(args.repeat):
        for workload in workloads:
            for side, begin in sides(workload, base_url).items():
                ran[workload.name][side].append(await checked(workload, side, begin))
    return ran


def sides(workload: Workload, base_url: str, *, at_once: bool = False) -> dict[Side, Begin]:
    """A run of either side; `at_once`: the model takes no time."""
    end = AT_ONCE if at_once else ""
    return {
        "floor": Floor(workload, base_url, model_name(workload, "floor") + end).start,
        "replan": _replan(workload, base_url, model_name(workload, "replan") + end),
        "when needed": _replan(
            workload, base_url, model_name(workload, "when needed") + end, judge="when_needed"
        ),
    }


async def checked(workload: Workload, side: Side, begin: Begin) -> Ran:
    """Make a run of a side.

    Raises:
        RuntimeError: It made other calls than those of its workload.
    """
    began = time.perf_counter()
    ran = await begin()
    ran.seconds = time.perf_counter() - began
    if ran.calls != (calls := workload.calls(side)):
        msg = f"{ran.calls} calls instead of the {calls} of {workload.name}."
        raise RuntimeError(msg)
    return ran


def _replan(workload: Workload, base_url: str, name: str, *, judge: Judging = "always") -> Begin:
    model = f"openai:{name}"
    members = [
        Specialist(
            name=name,
            intended_use=duty,
            chat_model=model,
            tools=list(_tools(name).values()),
            effects="pure",
        )
        for name, duty in workload.team.items()
    ]
    graph = build_graph(Team(Host(model, judge=judge), members), base_url=base_url)

    async def start() -> Ran:
        usage = (await run(graph, workload.request)).state["usage"]
        host = [count for name, count in usage.by.items() if name not in workload.team]
        return Ran(
            calls=usage.calls,
            host_in=sum(count.input_tokens for count in host),
            host_out=sum(count.output_tokens for count in host),
        )

    return start


def _tools(specialist: str) -> dict[str, StructuredTool]:
    """The tools of a specialist, which only look things up."""
    name = TOOLS.get(specialist)
    if name is None:
        return {}
    about = "Look something up."
    pure = {"effects": "pure"}
    return {name: StructuredTool.from_function(found, name=name, description=about, metadata=pure)}


@dataclass(frozen=True)
class Step:
    """A step of a plan, as the floor reads it."""

    id: int
    task: str
    specialist: str
    after: tuple[int, ...]


def steps_in(plan: str) -> list[Step]:
    """The steps of a plan, each with its brief."""
    return [
        Step(
            int(one["id"]),
            f"{one['task']}\n\n{one['brief'].strip()}",
            one["specialist"],
            tuple(int(other) for other in (one["after"] or "").split(",") if other),
        )
        for one in _STEP.finditer(plan)
    ]


@dataclass
class Floor:
    """The program that knows these workloads only: nothing is kept, checked or tried again."""

    workload: Workload
    base_url: str
    model: str
    ran: Ran = field(default_factory=Ran)
    results: dict[int, str] = field(default_factory=dict[int, str])

    async def start(self) -> Ran:
        """Run it once."""
        self.ran, self.results = Ran(), {}
        self.client = LangChainModels(base_url=self.base_url).chat_model(f"openai:{self.model}")
        plan = await self._host(Call(node="think"), PLANNER, self.workload.request)
        for _ in self.workload.judgements:
            await self._all_steps(steps_in(plan))
            plan = await self._host(
                Call(node="feedback"), JUDGE, *self._parts(self.results), f"<plan>\n{plan}\n</plan>"
            )
        return self.ran

    async def _all_steps(self, steps: Iterable[Step]) -> None:
        """Do the steps that have no result, each when those that it waits for have one."""
        tasks: dict[int, asyncio.Task[None]] = {}

        async def do(step: Step) -> None:
            for other in step.after:
                await tasks[other]
            self.results[step.id] = await self._step(step)

        for step in steps:
            if step.id not in self.results:
                tasks[step.id] = asyncio.ensure_future(do(step))
        await asyncio.gather(*tasks.values())

    async def _step(self, step: Step) -> str:
        call = Call(node="specialist", step=step.id, specialist=step.specialist)
        prompt = messages(call, WORKER, *self._parts(step.after), step.task)
        tools = _tools(step.specialist)
        client = self.client.bind_tools(list(tools.values())) if tools else self.client
        reply = await self._ask(client, prompt)
        while reply.tool_calls:
            brought = [
                ToolMessage(tools[each["name"]].invoke(each["args"]), tool_call_id=each["id"])
                for each in reply.tool_calls
            ]
            prompt = [*prompt, reply, *brought]
            reply = await self._ask(client, prompt)
        return reply.text

    def _parts(self, steps: Iterable[int]) -> list[str]:
        """The request, and the results of steps."""
        given = [f'<result step="{each}">\n{self.results[each]}\n</result>' for each in steps]
        return [f"<request>\n{self.workload.request}\n</request>", *given]

    async def _host(self, call: Call, system: str, *parts: str) -> str:
        reply = await self._ask(self.client, messages(call, system, *parts))
        usage = reply.usage_metadata
        self.ran.host_in += usage["input_tokens"] if usage else 0
        self.ran.host_out += usage["output_tokens"] if usage else 0
        return reply.text

    async def _ask(self, client: Any, prompt: list[BaseMessage]) -> AIMessage:
        self.ran.calls += 1
        return await client.ainvoke(prompt)


def rows_of(ran: Measured, today: Mapping[str, Mapping[str, float]]) -> list[Row]:
    """The tables: time, the host's tokens, and what differs in the replies."""
    kept = _kept(ran)
    return [
        *_time_rows(ran, today),
        *_token_rows(kept, today),
        *(
            {"table": "Replies that differ for Replan", "": what}
            for what in DIFFERENCES or ("none yet: both sides get the recorded replies",)
        ),
    ]


def _time_rows(ran: Measured, today: Mapping[str, Mapping[str, float]]) -> list[Row]:
    rows: list[Row] = []
    seconds: dict[str, dict[Side, list[float]]] = {
        name: {side: [each.seconds for each in runs] for side, runs in by_side.items()}
        for name, by_side in ran.items()
    }
    recorded = [each.name for each in RECORDED]
    if all(name in seconds for name in recorded):
        whole = "K2 to K6"
        seconds[whole] = {
            side: [
                sum(turn) for turn in zip(*(seconds[name][side] for name in recorded), strict=True)
            ]
            for side in SIDES
        }
    most = {**MOST_OF_FLOOR, "K2 to K6": MOST_OF_FLOOR_RECORDED}
    for name, taken in seconds.items():
        workload = WORKLOADS.get(name)
        over = {
            side: statistics.median(
                ours / floor for floor, ours in zip(taken["floor"], taken[side], strict=True)
            )
            for side in SIDES
        }
        rows.append(
            {
                "table": "Time of a run over the floor",
                "workload": name,
                "calls": workload and workload.calls("floor"),
                "answer repeats step": workload and workload.repeats,
                "floor, s": statistics.median(taken["floor"]),
                "Replan, s": statistics.median(taken["replan"]),
                "today": today.get(name, {}).get("over the floor"),
                "when needed": over["when needed"],
                **judged(over["replan"], name="over the floor", most=most.get(name)),
            }
        )
    return rows


def _token_rows(
    kept: Mapping[str, Mapping[str, float]], today: Mapping[str, Mapping[str, float]]
) -> list[Row]:
    rows: list[Row] = []
    for name, each in kept.items():
        row: Row = {"table": "Tokens of the host", "workload": name}
        for way in ("host in", "host out"):
            row[way] = int(each[way])
            row[f"{way}, over today's"] = _over_today(kept, today, way, [name])
        rows.append(row)
    for way, most in (("host in", MOST_IN), ("host out", MOST_OUT)):
        over = _over_today(kept, today, way, kept)
        if over is not None:
            row = {"table": "Tokens of the host over today's, all workloads", "": way}
            rows.append({**row, **judged(over, most=most)})
    return rows


def _over_today(
    kept: Mapping[str, Mapping[str, float]],
    today: Mapping[str, Mapping[str, float]],
    way: str,
    names: Iterable[str],
) -> float | None:
    """The host's tokens over those that were kept; None where none were."""
    names = [name for name in names if name in today]
    if not names:
        return None
    return sum(kept[name][way] for name in names) / sum(today[name][way] for name in names)


def _kept(ran: Measured) -> dict[str, dict[str, float]]:
    """What is kept of a measure, by workload."""
    return {
        name: {
            "over the floor": statistics.median(
                ours.seconds / floor.seconds
                for floor, ours in zip(by_side["floor"], by_side["replan"], strict=True)
            ),
            "host in": by_side["replan"][0].host_in,
            "host out": by_side["replan"][0].host_out,
        }
        for name, by_side in ran.items()
    }


if __name__ == "__main__":
    publish("pace", arguments().parse_args(), main)
