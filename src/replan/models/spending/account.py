"""What a run may still spend: every call first reserves its share, waits for it, or is refused.

A budget is a counter, reservations, and a condition on the run's loop. The log is the truth: it
has each reservation before its call is made, and refuses what would pass a limit, also if other
processes do steps of the run. The counter here says how much a call may take, and so it decides
alone where the log cannot be asked: in code without `await` that blocks the loop of the run.

A call without room waits while calls of this process are in flight, since they will be settled
and make room. What a crash left behind, or another process holds, stays charged, and nobody waits
for it.
"""

import asyncio
import threading
from asyncio import AbstractEventLoop
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

from replan.base.errors import LimitReachedError
from replan.log.amounts import NOTHING, ROUNDING, Bound, Charged, Refused, Spending
from replan.log.run_log import RunLog
from replan.models.spending.deadline import ScopeTimers
from replan.models.spending.scopes import AMOUNTS, RUN, CallRequest, Permit, Scope, fit

_MOST_RUNS = 1_000
_MOST_REFUSALS = 3  # of the log, in a row, until a call that other processes crowd out is refused


class Passed(NamedTuple):
    """A limit that is passed."""

    limit: str
    value: float
    by: float


class Account:
    """What a run is charged with, and the calls of this process that are in flight."""

    def __init__(self, log: RunLog, run_id: str) -> None:
        self.run_id = run_id
        self.made_in = log.take  # the take of the thread of its run
        self.clocks = ScopeTimers(run_id, log)  # how long its scopes were at work
        self._log = log
        self._opening = asyncio.Lock()
        self._is_open = False
        self._spends_elsewhere = False  # whether other processes spend from it, too
        # Threads reserve and settle, too.
        self._guard = threading.Lock()
        self._charged: dict[str, Spending] = {}
        self._in_flight: dict[str, Permit] = {}
        self._on_record: set[str] = set()  # those of them that the log has
        self.ended = 0  # how many calls have ended
        self._waiting: set[asyncio.Future[None]] = set()
        # What is being written for code that does not wait for it, by the ids of its calls.
        self._writes: dict[str, Future[None]] = {}

    @property
    def is_at_rest(self) -> bool:
        """Whether it is idle: no call is in flight, and none waits to be made."""
        return not (self.clocks.are_running or self._in_flight or self._waiting)

    async def open(self) -> None:
        """Read what the log has of the run; may be repeated."""
        if self._is_open:
            return
        async with self._opening:
            if not self._is_open:
                await self.clocks.recall()
                await self._read()
                self._is_open = True

    def spends_elsewhere(self) -> None:
        """Note that other processes spend from it, too."""
        self._spends_elsewhere = True

    async def charged(self) -> Spending:
        """What the run is charged with, reservations in full."""
        await self.open()
        if self._spends_elsewhere:
            await self._read()
        return self._charged.get(RUN, NOTHING)

    async def take(
        self,
        call: CallRequest,
        patience: float | None = None,
        waiting: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> Permit:
        """Reserve a call on the loop of the run.

        Args:
            call: The call.
            patience: Seconds to wait at most until a call in flight ends; None is without a bound.
            waiting: What is entered while it waits.

        Raises:
            LimitReachedError: There is no room, and no call in flight makes any.
        """
        await self.open()
        refusals = 0
        while True:
            ended = self.ended
            reserved = self._reserve(call)
            if isinstance(reserved, LimitReachedError):
                # Other processes may have made room, or calls elsewhere were settled meanwhile.
                await self._read()
                reserved = self._reserve(call)
            if isinstance(reserved, Permit):
                refused = await self._record(reserved)
                if refused is None:
                    return reserved
                # The refused call itself counts as ended. Where others ended meanwhile, too, the
                # log only had not heard of it yet, and the refusals are counted anew.
                refusals = refusals + 1 if self.ended == ended + 1 else 1
                if refusals == _MOST_REFUSALS:
                    raise _error(call, refused)
            elif self.makes_room(call, reserved):
                with waiting():
                    await self._until_a_call_ends(ended, patience, reserved)
            elif self.ended == ended:
                raise reserved
            # Else a thread ended a call meanwhile, which may have made room.

    def take_now(self, call: CallRequest, loop: AbstractEventLoop) -> Permit:
        """Reserve a call in code that cannot wait; the log has it as soon as its loop runs.

        Raises:
            LimitReachedError: There is no room.
        """
        reserved = self._reserve(call, waits=False)
        if isinstance(reserved, LimitReachedError):
            raise reserved
        self._write_soon(call.id, lambda: self._record_made(reserved), loop)
        return reserved

    async def settle(self, permit: Permit, used: Spending) -> None:
        """Replace the reservation of a call by what it used."""
        try:
            await self._log.settle(permit.reservation, used)
        except BaseException:
            # Nobody knows whether it is written, so it stays charged.
            self.give_up(permit)
            raise
        self._end(permit, used)

    def settle_now(self, permit: Permit, used: Spending, loop: AbstractEventLoop) -> None:
        """Settle a call in code that cannot wait; the log has it as soon as its loop runs."""
        self._end(permit, used)
        self._write_soon(permit.call.id, lambda: self._log.settle(permit.reservation, used), loop)

    def give_up(self, permit: Permit) -> None:
        """Keep others from waiting for a call that is never settled; it stays charged in full."""
        self._end(permit, permit.reservation.amount)

    def passed(self, scopes: Sequence[Scope]) -> Passed | None:
        """The first limit that is passed, since a call used more than was reserved for it."""
        for scope in scopes:
            charged = self._charged.get(scope.name, NOTHING)
            for kind in AMOUNTS:
                limit, value = scope.limit(kind)
                if value is not None and getattr(charged, kind) > value + ROUNDING:
                    return Passed(limit, value, getattr(charged, kind) - value)
        return None

    async def wait_written(self) -> None:
        """Wait until all is written that other code did not wait for."""
        while self._writes:
            for id_, write in self._writes.copy().items():
                try:
                    # Others wait for it, too.
                    await asyncio.shield(asyncio.wrap_future(write))
                finally:
                    if write.done() and self._writes.get(id_) is write:
                        del self._writes[id_]

    def _reserve(self, call: CallRequest, *, waits: bool = True) -> Permit | LimitReachedError:
        with self._guard:
            fitted = fit(call, self._charged, self._crowded(call) if waits else ())
            if isinstance(fitted, Permit):
                self._in_flight[call.id] = fitted
                self._charge(fitted, fitted.reservation.amount)
            return fitted

    def _crowded(self, call: CallRequest) -> set[str]:
        """The scopes of a call in which other calls are in flight, and will make room."""
        names = {scope.name for scope in call.scopes if scope.bounds_amounts}
        # Others may wait for the call that contains this one, so it waits for none of them.
        if not names or call.part_of & self._in_flight.keys():
            return set()
        in_flight = [*self._in_flight.values()]
        return names & {scope.name for permit in in_flight for scope in permit.call.scopes}

    def makes_room(self, call: CallRequest, error: LimitReachedError) -> bool:
        """Whether calls in flight will make room for a call that was refused."""
        # A call in flight stays a call, so it makes no room in the number of calls.
        with self._guard:
            return error.limit != "max_model_calls" and error.scope in self._crowded(call)

    async def _until_a_call_ends(
        self, ended: int, patience: float | None, error: LimitReachedError
    ) -> None:
        next_end = asyncio.get_running_loop().create_future()
        with self._guard:
            if self.ended != ended:
                return
            self._waiting.add(next_end)
        try:
            async with asyncio.timeout(patience):
                await next_end
        except TimeoutError:
            raise error from None
        finally:
            self._waiting.discard(next_end)

    async def _record(self, permit: Permit) -> Refused | None:
        """Write a reservation that is charged here into the log, unless the log refuses it."""
        try:
            refused = await self._log.reserve(permit.reservation, _bounds(permit.call))
        except BaseException:
            # Nobody knows whether it is written, so it stays charged.
            self.give_up(permit)
            raise
        if refused is None:
            self._on_record.add(permit.call.id)
        else:
            self._end(permit, NOTHING)
            await self._read()
        return refused

    async def _record_made(self, permit: Permit) -> None:
        """Write the reservation of a call that is being made, whatever the log thinks of it."""
        refused = await self._log.reserve(permit.reservation, _bounds(permit.call))
        if refused is not None:
            scopes = [Bound(scope=scope.name) for scope in permit.call.scopes]
            await self._log.reserve(permit.reservation, scopes)
        self._on_record.add(permit.call.id)

    async def _read(self) -> None:
        """Take over what the log has."""
        while True:
            ended = self.ended
            await self.wait_written()
            before = frozenset(self._on_record)
            charged = await self._log.charged(self.run_id)
            with self._guard:
                # A call that began and ended meanwhile, in a thread, is in neither of both; and one
                # that was recorded meanwhile is not settled because it was not found.
                recorded = self._on_record - before
                if self.ended == ended and recorded <= charged.open:
                    self._take_over(charged)
                    return

    def _take_over(self, found: Charged) -> None:
        self._charged = {**found.spent}
        for id_, permit in [*self._in_flight.items()]:
            if id_ in found.open:
                continue
            if id_ in self._on_record:
                # It is settled there, and what it used is in the sum.
                self._remove(permit)
            else:
                self._charge(permit, permit.reservation.amount)

    def _charge(self, permit: Permit, amount: Spending) -> None:
        for scope in permit.call.scopes:
            self._charged[scope.name] = self._charged.get(scope.name, NOTHING) + amount

    def _end(self, permit: Permit, used: Spending) -> None:
        with self._guard:
            if self._remove(permit):
                self._charge(permit, used - permit.reservation.amount)
            self.ended += 1
            waiting, self._waiting = self._waiting, set()
        for ended in waiting:
            ended.get_loop().call_soon_threadsafe(_wake, ended)

    def _remove(self, permit: Permit) -> bool:
        self._on_record.discard(permit.call.id)
        return self._in_flight.pop(permit.call.id, None) is not None

    def _write_soon(
        self, id_: str, write: Callable[[], Coroutine[Any, Any, None]], loop: AbstractEventLoop
    ) -> None:
        """Write on the loop of the run, behind what is being written of the same call.

        Raises:
            RuntimeError: The loop is closed: this code was abandoned.
        """
        before = self._writes.get(id_)

        async def in_turn() -> None:
            if before is not None:
                await asyncio.wrap_future(before)
            await write()

        going = in_turn()
        try:
            self._writes[id_] = asyncio.run_coroutine_threadsafe(going, loop)
        except RuntimeError:
            going.close()
            raise


def _wake(ended: asyncio.Future[None]) -> None:
    if not ended.done():
        ended.set_result(None)


def _bounds(call: CallRequest) -> list[Bound]:
    return [scope.bound for scope in call.scopes]


def _error(call: CallRequest, refused: Refused) -> LimitReachedError:
    scope = next(scope for scope in call.scopes if scope.name == refused.scope)
    return scope.reached(refused.kind)


class Accounts:
    """The accounts of the runs of this process."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._accounts: OrderedDict[str, Account] = OrderedDict()

    def of(self, log: RunLog, run_id: str) -> Account:
        """The account of a run; a new one where another process may have worked on it since."""
        with self._guard:
            account = self._accounts.get(run_id)
            if account is None or (account.is_at_rest and log.take not in (0, account.made_in)):
                account = self._accounts[run_id] = Account(log, run_id)
                self._make_room_for(run_id)
            self._accounts.move_to_end(run_id)
        return account

    def _make_room_for(self, run_id: str) -> None:
        """Forget an account that is not in use: the log has everything."""
        if len(self._accounts) > _MOST_RUNS:
            accounts = self._accounts.items()
            resting = (name for name, account in accounts if name != run_id and account.is_at_rest)
            self._accounts.pop(next(resting, ""), None)

    def close(self, run_id: str) -> None:
        """Forget the account of a run that is over."""
        with self._guard:
            self._accounts.pop(run_id, None)
