"""What the runs of a token may take: reserved before a run works, settled when it rests.

The ledgers are in the memory of the process: the runs that they bound work there, too. Each is also
a page in the store of the storage, which is read when a token first calls, so that a restart gives
nothing back, and neither does a run that is deleted. Several servers on one storage each bound what
they begin themselves.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any
from uuid import uuid4

from langgraph.store.base import PutOp, SearchItem

from replan.log.amounts import Spending
from replan.ports.storage import Storage
from replan.server.callers.identity import Allowance, Identity
from replan.server.problems import RefusedError
from replan.state.limits import LEAST_CLOSING_REPLY, LEAST_CLOSING_REQUEST, Limits

LEAST = LEAST_CLOSING_REQUEST + LEAST_CLOSING_REPLY
"""The fewest tokens that a run needs; with less left, none begins."""

_PLACE = ("replan", "server", "spent")
_BATCH = 100


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
    of_others: tuple[int, float] = (0, 0.0)  # the part of them that other processes have kept
    is_kept: bool = False  # whether something of a day is bounded
    leases: dict[str, Lease] = field(default_factory=dict[str, Lease])


class Allowances:
    """The ledgers of all tokens."""

    def __init__(self, storage: Storage, clock: Callable[[], datetime]) -> None:
        self._storage = storage
        self._clock = clock
        self._page = uuid4().hex  # what the pages of this process are called
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
            others = [lease for lease in ledger.leases.values() if lease.run_id != run_id]
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
            await self._write(who.name, ledger)
            return lease

    async def settle(self, lease: Lease) -> None:
        """Charge what a resting run spent, and release the remainder."""
        async with self._locks[lease.name]:
            ledger = self._ledgers[lease.name]
            if ledger.leases.get(lease.run_id) is lease:
                await self._turn_page(lease.name, ledger)
                now = await self._spent(lease.run_id)
                del ledger.leases[lease.run_id]
                ledger.tokens += max(0, now.tokens - lease.before.tokens)
                ledger.money += max(0.0, now.cost - lease.before.cost)
                await self._write(lease.name, ledger)

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
        return await self._spent(run_id) if _is_bound(who) else Spending()

    async def _spent(self, run_id: str) -> Spending:
        return (await self._storage.log.spent(run_id)).get("run", Spending())

    async def _ledger(self, who: Identity) -> _Ledger:
        known = self._ledgers.get(who.name)
        if known is None:
            known = _Ledger(self._clock().date(), is_kept=_is_bound(who))
            if known.is_kept:
                await self._count(who.name, known)
            self._ledgers[who.name] = known
        await self._turn_page(who.name, known)
        return known

    async def _turn_page(self, name: str, ledger: _Ledger) -> None:
        """Begin a new day; what runs over midnight counts on the day on which it rests."""
        today = self._clock().date()
        if ledger.day == today:
            return
        old = self._ledger_op(name, ledger)
        ledger.day, ledger.tokens, ledger.money, ledger.of_others = today, 0, 0.0, (0, 0.0)
        if ledger.is_kept:
            gone = PutOp(old.namespace, old.key, None)
            await self._storage.store.abatch([gone, self._ledger_op(name, ledger)])

    async def _write(self, name: str, ledger: _Ledger) -> None:
        """Store the ledger of a caller, if the caller has limits."""
        if ledger.is_kept:
            await self._storage.store.abatch([self._ledger_op(name, ledger)])

    def _ledger_op(self, name: str, ledger: _Ledger) -> PutOp:
        place = (*_PLACE, f"n-{name}", ledger.day.isoformat())
        spent_here = ledger.tokens - ledger.of_others[0], ledger.money - ledger.of_others[1]
        at_work = {
            lease.run_id: [lease.before.tokens, lease.before.cost]
            for lease in ledger.leases.values()
        }
        value = {"tokens": spent_here[0], "money": spent_here[1], "open": at_work}
        return PutOp(place, self._page, value, index=False)

    async def _count(self, name: str, ledger: _Ledger) -> None:
        """Count what other processes kept of today, and what their runs spent that were cut off."""
        pages = await self._pages(name)
        changes = list[PutOp]()
        for page in pages:
            for run_id, (tokens, cost) in page.value["open"].items():
                # Its process was killed, so it rests today.
                now = await self._spent(run_id)
                ledger.tokens += max(0, now.tokens - tokens)
                ledger.money += max(0.0, now.cost - cost)
            if page.namespace[-1] != ledger.day.isoformat():
                changes.append(PutOp(page.namespace, page.key, None))
            elif page.value["open"]:
                settled: dict[str, Any] = {**page.value, "open": {}}
                changes.append(PutOp(page.namespace, page.key, settled, index=False))
        if changes:
            # At once: nothing is counted twice, or not at all.
            await self._storage.store.abatch([*changes, self._ledger_op(name, ledger)])
        of_today = [item for item in pages if item.namespace[-1] == ledger.day.isoformat()]
        others = (
            sum(item.value["tokens"] for item in of_today),
            sum(item.value["money"] for item in of_today),
        )
        ledger.of_others = others
        ledger.tokens, ledger.money = ledger.tokens + others[0], ledger.money + others[1]

    async def _pages(self, name: str) -> list[SearchItem]:
        items = list[SearchItem]()
        place, store = (*_PLACE, f"n-{name}"), self._storage.store
        while batch := await store.asearch(place, limit=_BATCH, offset=len(items)):
            items += batch
        return items


def _is_bound(who: Identity) -> bool:
    return bool(who.limits.tokens_a_day or who.limits.money_a_day)


def _tokens(
    limits: Allowance, ledger: _Ledger, others: list[Lease], shares: int, wanted: int | None
) -> int | None:
    if limits.tokens_a_day is None:
        return None
    left = limits.tokens_a_day - ledger.tokens - sum(lease.tokens or 0 for lease in others)
    return min(left, wanted or max(left // shares, LEAST))


def _money(
    limits: Allowance, ledger: _Ledger, others: list[Lease], shares: int, wanted: float | None
) -> float | None:
    if limits.money_a_day is None:
        return None
    left = limits.money_a_day - ledger.money - sum(lease.money or 0 for lease in others)
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
