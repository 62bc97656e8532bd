"""Two workers with one step: only who is the first to begin does it, on PostgreSQL."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from replan import RunSettings, Specialist, Team, build_graph, open_storage
from replan.plan.model import PlanStep
from replan.ports.elsewhere import StepJob
from replan.runs.calling.compiled import services_in
from replan.state.results import ExecutionContext
from replan.workers.steps import StepJobs

RUN, KEY = "r1", "step-1-pay"


class Slow:
    """A log whose worker sleeps before or after it has written that the step begins."""

    def __init__(self, log, *, before=True):
        self.log, self.before = log, before
        self.asleep, self.awake = asyncio.Event(), asyncio.Event()

    def __getattr__(self, name):
        return getattr(self.log, name)

    async def note(self, run_id, key, value):
        is_begin = "/begun" in key
        if is_begin and self.before:
            await self.sleep()
        noted = await self.log.note(run_id, key, value)
        if is_begin and not self.before:
            await self.sleep()
        return noted

    async def sleep(self):
        self.asleep.set()
        await self.awake.wait()


class Bank:
    """A team whose step pays, in the storages of two workers with one clock."""

    def __init__(self, effects):
        self.paid, self.now = [], datetime(2026, 3, 1, tzinfo=UTC)
        pay = Specialist("pay", "Pays.", run=self.pay, effects=effects, queue="gpu")
        self.team = Team("offline", [pay])

    def pay(self, context):
        self.paid.append(context.idempotency_key)
        return "paid"

    def jobs(self, storage, log=None):
        services = services_in(build_graph(self.team, storage=storage, clock=lambda: self.now))
        return StepJobs(services, log or storage.log, lease=30)

    async def order(self, storage):
        step = PlanStep(id=1, description="Pay the rent", assigned_to="pay")
        names = {"idempotency_key": KEY, "run_id": RUN, "attempt": 1}
        context = ExecutionContext(task_description="Pay the rent", plan_step=step, **names)
        errand = StepJob(context=context, specialist="pay", settings=RunSettings(), on_doubt="ask")
        note = errand.model_dump(mode="json")
        await storage.log.note(RUN, f"elsewhere/{KEY}/errand", note)

    async def end(self, storage):
        found = await storage.log.notes(RUN, f"elsewhere/{KEY}/end")
        return next((each["how"] for each in found.values()), None)


@pytest.mark.parametrize("effects", ["unsafe", "keyed", "pure"])
async def test_of_two_workers_that_both_saw_nothing_one_does_the_step(postgres_database, effects):
    bank = Bank(effects)
    async with open_storage(postgres_database) as one, open_storage(postgres_database) as two:
        await bank.order(one)
        log = Slow(one.log)
        sleeping = asyncio.ensure_future(bank.jobs(one, log).do(RUN, KEY))
        await log.asleep.wait()
        await bank.jobs(two).do(RUN, KEY)
        log.awake.set()
        await sleeping
        assert (len(bank.paid), await bank.end(two)) == (1, "result")


async def test_who_begins_after_the_lease_does_nothing_and_a_person_is_asked(postgres_database):
    bank = Bank("unsafe")
    async with open_storage(postgres_database) as one, open_storage(postgres_database) as two:
        await bank.order(one)
        log = Slow(one.log, before=False)
        sleeping = asyncio.ensure_future(bank.jobs(one, log).do(RUN, KEY))
        await log.asleep.wait()
        bank.now += timedelta(seconds=31)
        await bank.jobs(two).do(RUN, KEY)
        log.awake.set()
        await sleeping
        assert (bank.paid, await bank.end(two)) == ([], "cut off")
