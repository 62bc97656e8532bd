"""What a token spent today outlives the process, whatever becomes of the runs."""

from datetime import UTC, datetime, timedelta

import pytest

from replan import Limits, open_storage
from replan.log.amounts import Bound, Reservation, Spending
from replan.server.callers.allowances import Allowances
from replan.server.callers.identity import Identity
from replan.server.callers.jwt_tokens import JwtEntry, Provider
from replan.server.callers.tokens import Tokens
from replan.server.problems import RefusedError

MOST = 10_000_000
ANNA = Identity(name="anna", limits={"tokens_a_day": MOST, "money_a_day": 100.0})


class Clock:
    now = datetime(2026, 3, 1, 12, tzinfo=UTC)

    def __call__(self):
        return self.now


async def spend(storage, run_id, tokens, cost=0.0):
    amount = Spending(calls=1, tokens=tokens, cost=cost)
    reservation = Reservation(id=f"{run_id}-{tokens}", run_id=run_id, amount=amount)
    await storage.log.reserve(reservation, [Bound(scope="run")])
    await storage.log.settle(reservation, amount)


async def left(allowances):
    """What a run could take now."""
    lease = await allowances.reserve(ANNA, "probe", Limits())
    allowances.drop(lease)
    return lease.tokens, lease.money


async def taken(allowances, storage, run_id, tokens, cost=0.0):
    lease = await allowances.reserve(ANNA, run_id, Limits(max_tokens=tokens + 1))
    await spend(storage, run_id, tokens, cost)
    await allowances.settle(lease)


async def test_many_restarts_give_nothing_back_nor_does_a_run_that_was_removed(tmp_path):
    clock, where, restarts = Clock(), tmp_path / "runs.db", 105
    async with open_storage(where) as storage:
        for number in range(restarts):
            allowances = Allowances(storage, clock)
            await taken(allowances, storage, f"run-{number}", 1_000)
        await taken(allowances, storage, "dear", 5_000, 2.5)
        spent = restarts * 1_000 + 5_000
        assert await left(allowances) == (MOST - spent, 97.5)
        await storage.runs.remove("dear")
    for _ in range(2):
        async with open_storage(where) as storage:
            assert await left(Allowances(storage, clock)) == (MOST - spent, 97.5)
    clock.now += timedelta(days=1)
    async with open_storage(where) as storage:
        assert await left(Allowances(storage, clock)) == (MOST, 100.0)


async def test_what_a_killed_process_left_counts_once_and_its_run_goes_on(tmp_path):
    clock, where = Clock(), tmp_path / "runs.db"
    async with open_storage(where) as storage:
        killed = Allowances(storage, clock)
        await taken(killed, storage, "done", 3_000)
        await killed.reserve(ANNA, "cut off", Limits(max_tokens=50_000))
        await spend(storage, "cut off", 4_000)
        second = Allowances(storage, clock)
        lease = await second.reserve(ANNA, "cut off", Limits(max_tokens=50_000))
        await spend(storage, "cut off", 2_000)
        await second.settle(lease)
        assert (await left(second))[0] == MOST - 9_000
        assert (await left(Allowances(storage, clock)))[0] == MOST - 9_000


@pytest.mark.parametrize("is_killed", [False, True])
async def test_what_runs_over_midnight_counts_on_the_day_on_which_it_rests(tmp_path, is_killed):
    clock = Clock()
    async with open_storage(tmp_path / "runs.db") as storage:
        first = Allowances(storage, clock)
        await taken(first, storage, "yesterday", 3_000)
        lease = await first.reserve(ANNA, "long", Limits(max_tokens=50_000))
        clock.now += timedelta(days=1)
        await spend(storage, "long", 4_000)
        if not is_killed:
            await first.settle(lease)
            assert (await left(first))[0] == MOST - 4_000
        for _ in range(2):
            assert (await left(Allowances(storage, clock)))[0] == MOST - 4_000


async def test_a_run_counts_for_the_person_whose_jwt_began_it_whoever_answers_it(storage):
    entry = JwtEntry(
        issuer="https://id.example",
        audience="replan",
        jwks_url="https://id.example/keys",
        limits={"tokens_a_day": 5_000, "runs_at_once": 1},
    )
    tokens = Tokens({}, Provider(entry))
    payer = tokens.named("jwt-0123456789abcdef01234567")
    assert (payer.name, payer.limits) == ("jwt-0123456789abcdef01234567", entry.limits)
    assert tokens.named("anna") is None
    allowances = Allowances(storage, Clock())
    await allowances.reserve(payer, "r1", Limits())
    with pytest.raises(RefusedError, match="1 runs at work"):
        await allowances.reserve(payer, "r2", Limits())
