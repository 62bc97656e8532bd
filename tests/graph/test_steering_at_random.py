"""Several people steer a run at once, at any moment: each request is settled once, nothing is lost.

What they do and when is drawn; what must hold of every run is asserted.
"""

import asyncio
import random
from collections import Counter, defaultdict

import pytest

from replan import Host, InputError, Limits, Specialist, Team, open_runtime
from replan.testing import ScriptedModel, always
from scripts import END


class Office:
    def __init__(self, seed):
        self.drawn, self.did = random.Random(seed), Counter()  # noqa: S311 - no secret is drawn

    async def pause(self, most):
        for _ in range(self.drawn.randrange(most)):
            await asyncio.sleep(0)

    async def work(self, context):
        self.did[context.plan_step.id, context.task_description] += 1
        await self.pause(300)
        if self.drawn.random() < 0.1:
            raise ValueError("out of paper")
        return "done"

    @property
    def plan(self):
        def waits(step):
            is_free = step == 1 or self.drawn.random() < 0.3
            return "" if is_free else f" (after {self.drawn.randrange(1, step)})"

        who = [self.drawn.choice("ab") for _ in range(8)]
        return "".join(f"- [ ] {n}. S{n} @{name}{waits(n)}\n" for n, name in enumerate(who, 1))

    def edited(self, plan, word):
        """A document with a step more, or with another text of an open step."""
        open_ids = [step.id for step in plan.open_steps()]
        if not open_ids or self.drawn.random() < 0.5:
            new = max(step.id for step in plan.steps) + 1
            return f"{plan.content}- [ ] {new}. {word} @{self.drawn.choice('ab')}\n"
        step = self.drawn.choice(open_ids)
        return plan.content.replace(f"{step}. S{step} ", f"{step}. {word} ")

    async def person(self, name, run):
        for turn in range(6):
            await self.pause(400)
            report = await run.report()
            try:
                if report.plan is not None:
                    text = self.edited(report.plan, f"{name}{turn}")
                    await run.edit_plan(text, version=report.plan.version, by=name)
                if self.drawn.random() < 0.1:
                    await run.send_message("Mind the stamps.", by=name)
            except InputError:
                continue

    def team(self):
        members = [
            Specialist(name="a", intended_use="Works.", run=self.work, effects="pure"),
            Specialist(name="b", intended_use="Works.", run=self.work, effects="keyed"),
        ]
        limits = Limits(max_rounds=30, max_parallel_steps=3, step_retries=0)
        model = ScriptedModel({"feedback": always(END)})
        return Team(host=Host(model=model), specialists=members, limits=limits)


@pytest.mark.parametrize("where", ["sqlite"], indirect=True)
@pytest.mark.parametrize("seed", range(8))
async def test_each_request_is_settled_once_and_the_plan_is_what_was_done(where, seed):
    office = Office(seed)
    async with open_runtime(office.team(), storage=where) as runtime:
        run = await runtime.start({"plan": office.plan}, run_id="r")
        people = [asyncio.ensure_future(office.person(name, run)) for name in ("anna", "eva")]
        result = await run
        await asyncio.gather(*people)
        ends = defaultdict(list)
        async for event in run.events():
            if event.type == "run_steered" and event.status != "waits":
                ends[event.kind, event.request].append(event.status)
        assert await runtime.storage.log.requests(["r"]) == []
    assert [len(each) for each in ends.values()] == [1] * len(ends)
    taken = sum(each == ["taken"] for (kind, _), each in ends.items() if kind == "edit")
    assert taken == sum(each.by == "person" for each in result.plan.update_history)
    for step in result.plan.steps:
        if step.status == "completed":
            assert office.did[step.id, step.description] == 1
