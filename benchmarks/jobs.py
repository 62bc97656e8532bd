"""What a turn of a job takes, what a job at rest takes, and which users get their jobs done.

A turn is one call of the processor, by rules; the job has 20 slots. It is timed with the job as a
value, and with the job as JSON on both ends. The users are those of `replan.testing.users`. The
scripted model is a function: it reads what the user wants out of the message. Of its values one in
ten is wrong, one in twenty missing, and one in twenty is of a slot that nobody spoke of.
"""

import asyncio
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from statistics import mean, median
from typing import Any

from replan.assembly.jobs import job_agent, job_processor
from replan.jobs.action_executor import ActionExecutor
from replan.jobs.extraction.by_rules import read_by_rules
from replan.jobs.extraction.port import Extracted, Wanted
from replan.jobs.processor import JobProcessor
from replan.jobs.spec.action_spec import ActionSpec
from replan.jobs.spec.job_spec import JobCommand, JobSpec
from replan.jobs.spec.slot import Slot
from replan.state.session.context import AgentContext
from replan.testing.users import KINDS, SimulatedUser, another, converse

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
_USERS = 40
_AT_ONCE = 1_000
_WRONG, _MISSING, _EXTRA = 0.1, 0.05, 0.05


def wide_spec() -> JobSpec:
    """Twenty slots, each of which depends on the one before it."""
    names = [f"slot_{letter}" for letter in "abcdefghijklmnopqrst"]
    slots = [
        Slot(name, question=f"Which {name}?", depends_on=names[place - 1 : place])
        for place, name in enumerate(names)
    ]
    command = JobCommand("go", needs=names, action="act")
    return JobSpec("wide", slots=slots, commands=[command], actions=[ActionSpec("act", run=print)])


def travel_spec() -> JobSpec:
    """A journey in two languages."""
    return JobSpec(
        "travel",
        languages=["en", "zh"],
        slots=[
            Slot("origin", question={"en": "From?", "zh": "从哪里"}, label={"zh": "出发地"}),
            Slot(
                "target",
                question={"en": "To?", "zh": "去哪里"},
                label={"zh": "目的地"},
                depends_on=["origin"],
            ),
            Slot("day", type="date", question={"en": "When?", "zh": "哪天"}, label={"zh": "日期"}),
            Slot(
                "people",
                type="integer",
                minimum=1,
                maximum=9,
                question={"en": "How many?", "zh": "几位"},
                label={"zh": "人数"},
            ),
            Slot(
                "cabin",
                choices={"economy": ["经济舱"], "business": ["商务舱"]},
                question={"en": "Which class?", "zh": "什么舱位"},
                label={"zh": "舱位"},
            ),
        ],
        commands=[
            JobCommand(
                "book",
                needs=["origin", "target", "day", "people", "cabin"],
                action="act",
                words=["预订"],
            )
        ],
        actions=[ActionSpec("act", run=lambda **values: sorted(values))],
    )


class SlipshodModel:
    """Rules with a model beside them that reads well and errs at times; it counts its calls."""

    def __init__(self, wants: Mapping[str, Any], seed: int) -> None:
        self.calls, self._wants = 0, wants
        self._random = random.Random(seed)  # noqa: S311 - it plays

    async def extract(self, wanted: Wanted) -> Extracted:
        """Read by rules, then as a model does."""
        reading = read_by_rules(wanted)
        if reading.is_sure or not wanted.said:
            return reading.found
        self.calls += 1
        values = {
            name: each for name, each in reading.found.values.items() if name not in reading.guessed
        }
        for name, value in self._wants.items():
            slot, dice = wanted.spec.slot(name), self._random.random()
            is_said = str(value) in wanted.said or (name == wanted.asked and reading.guessed)
            if (is_said and dice > _MISSING + _WRONG) or (not is_said and dice < _EXTRA):
                values.setdefault(name, value)
            elif is_said and dice < _WRONG:
                values[name] = another(slot, value, self._random)
        return reading.found.replace(values=values)


def processor_of(spec: JobSpec, extractor: Any = None) -> JobProcessor:
    usual = job_processor(spec, clock=lambda: NOW)
    if extractor is None:
        return usual
    ids = iter(range(10**9))
    return JobProcessor(
        spec,
        extractor=extractor,
        executor=ActionExecutor(),
        clock=lambda: NOW,
        new_id=lambda: f"job-{next(ids)}",
    )


async def turn_times(*, as_json: bool) -> list[float]:
    """Milliseconds of CPU of each turn, over conversations that fill 20 slots."""
    processor, times = processor_of(wide_spec()), list[float]()
    first = (await processor.process(processor.new_job())).job
    job = first
    for number in range(200):
        given = job.to_dict() if as_json else job
        started = time.process_time()
        result = await processor.process(given, [f"value {number}"])
        if as_json:
            result.job.to_dict()
        times.append(1_000 * (time.process_time() - started))
        job = result.job if result.job.missing else first
    return times


async def jobs_at_once() -> dict[str, float]:
    """A thousand jobs, turn by turn in parallel, and the bytes of a session at rest."""
    agent = job_agent(travel_spec(), clock=lambda: NOW)

    async def one(number: int) -> int:
        session = AgentContext(session_id=str(number))
        for said in ("Rome", "Oslo", "tomorrow", "2", "business"):
            result = await agent.process(said, session)
            session = session.apply(result.context_updates)
        return len(json.dumps(session.to_dict()))

    started = time.process_time()
    sizes = await asyncio.gather(*(one(number) for number in range(_AT_ONCE)))
    seconds = time.process_time() - started
    return {"bytes of a session, at most": max(sizes), "jobs a second of CPU": _AT_ONCE / seconds}


async def users(*, with_model: bool) -> dict[str, dict[str, float]]:
    """How the jobs of each kind of user end."""
    spec, table = travel_spec(), dict[str, dict[str, float]]()
    for kind in KINDS:
        ends, turns, right, calls = Counter[str](), list[int](), 0, 0.0
        for seed in range(_USERS):
            wants = {
                "origin": "Rome",
                "target": "Oslo",
                "day": "2026-05-01",
                "people": 1 + seed % 9,
                "cabin": "business" if seed % 2 else "economy",
            }
            language = "zh" if seed % 2 else "en"
            user = SimulatedUser(kind, spec, "book", wants, language, seed)
            model = SlipshodModel(wants, seed) if with_model else None
            talk = await converse(processor_of(spec, model), user)
            ends[talk.job.error_code or "done"] += 1
            turns.append(talk.turns)
            right += talk.job.status == "completed" and talk.job.collected_info == user.wants
            calls = max(calls, model.calls / talk.turns if model else 0)
        table[kind] = {
            "finished": ends["done"] / _USERS,
            "as wanted": right / _USERS,
            "turns, mean": mean(turns),
            "turns, most": max(turns),
            "bound": spec.max_turns,
            "calls a turn, most": calls,
        }
    return table


def main() -> None:
    """Measure, and print a table for each."""
    figures = {
        "turns": {
            "a turn, median, ms of CPU": median(asyncio.run(turn_times(as_json=False))),
            "a turn through JSON, median": median(asyncio.run(turn_times(as_json=True))),
        },
        "at once": asyncio.run(jobs_at_once()),
        "rules": asyncio.run(users(with_model=False)),
        "rules and a model": asyncio.run(users(with_model=True)),
    }
    if "--json" in sys.argv:
        print(json.dumps(figures))
        return
    for name in ("turns", "at once"):
        for what, value in figures[name].items():
            print(f"{what}: {value:,.2f}")
    for name in ("rules", "rules and a model"):
        print(f"\n| {name} | " + " | ".join(figures[name]["terse"]) + " |")
        for kind, row in figures[name].items():
            print(f"| {kind} | " + " | ".join(f"{value:.2f}" for value in row.values()) + " |")


if __name__ == "__main__":
    main()
