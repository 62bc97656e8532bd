"""What the runs of a token may take: reserved before a run works, settled when it rests.

The ledgers are in the memory of the process: the runs that they bound work there, too. What was
spent today is counted from the runs in the storage when a token first calls, so that a restart
gives nothing back. Several servers on one storage each bound what they begin themselves.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta

from replan.ports.journal import Spending
from replan.ports.storage import Storage
from replan.server.callers.identity import Allowance, Identity
from replan.server.problems import RefusedError
from replan.server.response_schemas import TOKEN
from replan.state.limits import LEAST_CLOSING_REPLY, LEAST_CLOSING_REQUEST, Limits

LEAST = LEAST_CLOSING_REQUEST + LEAST_CLOSING_REPLY
"""The fewest tokens that a run needs; with less left, none begins."""

_LOOKED_AT = 1_000
"""The most runs of a token that are read to find what was spent today."""


@dataclass(frozen=True, kw_only=True)
class Lease:
    """What one run has reserved.

    Attributes:
        name: The token that pays.
        run_id: The run.
        before: What the run had spent before.
        tokens: Tokens that it may take; None: as many as its limits allow.
        money: Money that it may take; None: as much as its limits allow.
        renews: The lease of the same run, which is at work, that this one takes the place of.
    """

    name: str
    run_id: str
    before: Spending
    tokens: int | None
    money: float | None
    renews: "Lease | None" = None

    def capped(self, limits: Limits) -> Limits | None:
        """The limits that apply to the run; None if they are not tighter than these."""
        changes = dict[str, float]()
        if self.tokens is not None:
            most = self.before.tokens + self.tokens
            changes["max_tokens"] = min(most, limits.max_tokens or most)
        if self.money is not None:
            most = self.before.cost + self.money
            changes["max_cost"] = min(most, limits.max_cost or most)
        return Limits.model_validate(changes) if changes else None


@dataclass
class _Ledger:
    """The amounts that a token spent on a day, and that its runs have reserved."""

    day: date
    tokens: int = 0
    money: float = 0.0
    leases: dict[str, Lease] = field(default_factory=dict[str, Lease])


class Allowances:
    """The ledgers of all tokens."""

    def __init__(self, storage: Storage, clock: Callable[[], datetime]) -> None:
        self._storage = storage
        self._clock = clock
        self._ledgers: dict[str, _Ledger] = {}
        self._locks = defaultdict[str, asyncio.Lock](asyncio.Lock)

    async def reserve(self, who: Identity, run_id: str, limits: Limits) -> Lease:
        """Reserve the amounts that a run may spend.

        A run with its own limit reserves that; another one an equal share of what is left.

        Raises:
            RefusedError: As many runs are at work as may be, or nothing is left of the day.
        """
        async with self._locks[who.name]:
            ledger = await self._ledger(who)
            others = [each for each in ledger.leases.values() if each.run_id != run_id]
            _check_number(who, len(others))
            old = ledger.leases.get(run_id)
            shares = max(1, (who.limits.runs_at_once or 1) - len(others))
            lease = Lease(
                name=who.name,
                run_id=run_id,
                # What it took since its first lease is not counted yet.
                before=old.before if old else await self._before(who, run_id),
                tokens=_tokens(who.limits, ledger, others, shares, limits.max_tokens),
                money=_money(who.limits, ledger, others, shares, limits.max_cost),
                renews=old,
            )
            _check_left(who, lease, limits.max_tokens, self._clock())
            ledger.leases[run_id] = lease
            return lease

    async def settle(self, lease: Lease) -> None:
        """Charge what a resting run spent, and release the remainder."""
        async with self._locks[lease.name]:
            ledger = self._ledgers[lease.name]
            if ledger.leases.get(lease.run_id) is lease:
                now = await self._spent(lease.run_id)
                del ledger.leases[lease.run_id]
                ledger.tokens += max(0, now.tokens - lease.before.tokens)
                ledger.money += max(0.0, now.cost - lease.before.cost)

    def drop(self, lease: Lease) -> Lease | None:
        """Release the reservation of work that did not begin; return the earlier lease."""
        leases = self._ledgers[lease.name].leases
        if leases.get(lease.run_id) is not lease:
            return None
        if lease.renews is None:
            del leases[lease.run_id]
        else:
            leases[lease.run_id] = lease.renews
        return lease.renews

    async def _before(self, who: Identity, run_id: str) -> Spending:
        """What a run took before its lease; it counts where tokens or money are bounded."""
        is_bound = who.limits.tokens_a_day or who.limits.money_a_day
        return await self._spent(run_id) if is_bound else Spending()

    async def _spent(self, run_id: str) -> Spending:
        return (await self._storage.journal.spent(run_id)).get("run", Spending())

    async def _ledger(self, who: Identity) -> _Ledger:
        today = self._clock().date()
        known = self._ledgers.get(who.name)
        if known is None:
            known = self._ledgers[who.name] = _Ledger(today)
            if who.limits.tokens_a_day or who.limits.money_a_day:
                await self._count(who, known)
        elif known.day != today:
            # What runs over midnight counts on the day on which it rests.
            known.day, known.tokens, known.money = today, 0, 0.0
        return known

    async def _count(self, who: Identity, ledger: _Ledger) -> None:
        """Count what the runs in the storage spent today."""
        for record in await self._storage.runs.recent(_LOOKED_AT, {TOKEN: who.name}):
            if record.updated_at.date() == ledger.day:
                spent = await self._spent(record.run_id)
                ledger.tokens += spent.tokens
                ledger.money += spent.cost


def _tokens(
    limits: Allowance, ledger: _Ledger, others: list[Lease], shares: int, wanted: int | None
) -> int | None:
    if limits.tokens_a_day is None:
        return None
    left = limits.tokens_a_day - ledger.tokens - sum(each.tokens or 0 for each in others)
    return min(left, wanted or max(left // shares, LEAST))


def _money(
    limits: Allowance, ledger: _Ledger, others: list[Lease], shares: int, wanted: float | None
) -> float | None:
    if limits.money_a_day is None:
        return None
    left = limits.money_a_day - ledger.money - sum(each.money or 0 for each in others)
    return min(left, wanted or left / shares)


def _check_number(who: Identity, at_work: int) -> None:
    most = who.limits.runs_at_once
    if most is not None and at_work >= most:
        detail = f"The token '{who.name}' has {at_work} runs at work, and may have {most}."
        raise RefusedError(
            429, "too_many_runs", f"{detail} Wait for one to end, or stop one.", [], 2
        )


def _check_left(who: Identity, lease: Lease, wanted: int | None, now: datetime) -> None:
    least = min(LEAST, wanted or LEAST)
    no_tokens = lease.tokens is not None and lease.tokens < least
    if no_tokens or (lease.money is not None and lease.money <= 0):
        tomorrow = (now + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
        what = f"tokens ({max(0, lease.tokens or 0)} are left)" if no_tokens else "money"
        detail = f"The token '{who.name}' has too little left of the {what} that it may take today."
        seconds = int((tomorrow - now).total_seconds()) + 1
        fix = "Wait for its other runs to end, or until midnight (UTC)."
        raise RefusedError(429, "used_up", f"{detail} {fix}", [], seconds)
