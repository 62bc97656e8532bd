"""What a run may still spend: every call first reserves its share, waits for it, or is refused.

The log is the truth, and an account mirrors it in the process that makes the calls. It knows
what the log cannot: which reservations belong to calls in progress. Those will be settled and
make room, so a call that finds no room waits for them. A reservation that a crash left behind will
never be settled, so it stays charged and no call waits for it.

If other processes do steps of a run, its account is shared: their reservations will be settled,
too, so the log is read before each call, and repeatedly while a call waits.

Calls are made on several event loops and in threads, so a lock protects the arithmetic, and a call
that waits gets a future without a loop. Only the log belongs to one loop, that of the run.
"""

import asyncio
import threading
import time
from asyncio import AbstractEventLoop
from collections import OrderedDict
from collections.abc import Callable, Generator
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field

from replan.errors import LimitReachedError
from replan.log.amounts import Refused, Reservation, Spending
from replan.log.run_log import RunLog
from replan.spending.deadline import Clocks
from replan.spending.fitting import Ask, Blocked, Offer, Permit, Picture, Room, Seen, fit, unbounded
from replan.spending.scopes import RUN, Scope

STEPS_ELSEWHERE = "elsewhere/"
"""The prefix of reservations that are made in another process, for a step that it does."""

_MOST_RUNS = 1_000


class CrowdedOutError(LimitReachedError):
    """Other processes took the room of a call, which has to ask again."""


@dataclass(eq=False)
class Waiter:
    """A call that waits for room."""

    ask: Ask
    error: LimitReachedError  # the error if it cannot wait
    # Done when it is served or refused.
    turn: Future[Permit] = field(default_factory=Future[Permit])

    def is_behind(self, blocked: set[str]) -> bool:
        """Whether another call already waits for the same room."""
        # Other calls may wait for the call that contains this one, so it waits for none of them.
        wanted = {_tag_of_model(self.ask), *(scope.name for scope in self.ask.scopes)}
        return not self.ask.part_of and bool(blocked & wanted)


class Account:
    def __init__(self, log: RunLog, run_id: str) -> None:
        self.run_id = run_id
        self._log = log
        self._charged: dict[str, Picture] = {}
        self.clocks = Clocks(run_id, log)  # how long its scopes were at work
        self._opening = asyncio.Lock()
        self._is_open = False
        self._guard = threading.Lock()
        self._queue: list[Waiter] = []
        self._seen: dict[str, Seen] = {}
        # Whether other processes spend from it, too.
        self.is_shared = False
        self._is_guest = False  # whether the run itself is in another process
        # The calls here that are on record, and what was charged for those that nobody settles.
        self._on_record: set[str] = set()
        self._lost: dict[str, Spending] = {}
        # The calls that were settled here and may still be on record as they were reserved.
        self._settled: dict[str, tuple[Permit, Spending]] = {}
        self._read_at = 0.0
        # When a call last ended or was abandoned, by the monotonic clock.
        self.moved = time.monotonic()

    @property
    def is_at_rest(self) -> bool:
        """Whether it is idle: no call is in progress, and none waits to be made."""
        calling = any(charged.on_way for charged in list(self._charged.values()))
        return not (self.clocks.are_running or calling or self._queue)

    async def open(self) -> None:
        """Read what the log has of the run; may be repeated."""
        if self._is_open:
            return
        async with self._opening:
            if self._is_open:
                return
            await self.clocks.recall()
            await self._read()
            self._is_open = True

    async def share(self, place: str = "") -> None:
        """Let other processes spend from it, too: none of them waits for calls that are lost.

        Args:
            place: Where this process is a guest in another one's run: what the reservations of its
                step begin with. Those that are there were left by another worker.
        """
        self.is_shared = True
        self._is_guest = self._is_guest or (bool(place) and not self._is_open)
        await self.open()
        if place:
            await self._read(lost=place)
        for name, amount in list(self._lost.items()):
            lost = Reservation(id=name, run_id=self.run_id, amount=amount)
            await self._log.settle(lost, amount)
            self._lost.pop(name, None)

    async def refresh(self, *, since: float = 0.0) -> None:
        """Read what other processes spent, unless it was read within this many seconds."""
        if self.is_shared and time.monotonic() - self._read_at >= since:
            await self._read()

    async def take(
        self, ask: Ask, waiting: Callable[[Waiter], AbstractContextManager[object]] = nullcontext
    ) -> Permit:
        """Reserve a call on the loop of the run; wait as long as other calls could make room."""
        if not self._is_open:
            await self.open()
        while True:
            await self.refresh()
            permit = self.ask(ask)
            if isinstance(permit, Waiter):
                with self.in_line(permit), waiting(permit):
                    permit = await asyncio.wrap_future(permit.turn)
            with suppress(CrowdedOutError):
                await self.record(permit)
                return permit

    def ask(self, ask: Ask) -> Permit | Waiter:
        """Charge a call, or let it wait in line; the account must be open."""
        # A call that gets a permit records it; a call that stops waiting leaves the line.
        with self._guard:
            offer = self._offer(ask, others=len(self._queue))
            if isinstance(offer, LimitReachedError):
                raise offer
            if isinstance(offer, Permit) and not self._queue:
                self._charge(offer)
                return offer
            error = offer.error if isinstance(offer, Blocked) else ask.scopes[0].reached("tokens")
            waiter = Waiter(ask, error)
            self._queue.append(waiter)
            self._serve()
        return waiter.turn.result() if waiter.turn.done() else waiter

    def permit_of(self, waiter: Waiter) -> Permit:
        """Give back the permit of a call that no longer waits."""
        if waiter.turn.done():
            return waiter.turn.result()
        raise waiter.error

    @contextmanager
    def in_line(self, waiter: Waiter) -> Generator[None]:
        try:
            yield
        except BaseException:
            self._leave_line(waiter)
            raise

    def dismiss(self, waiter: Waiter, error: Exception) -> None:
        """End the wait of a call, on whichever loop or thread it waits."""
        with self._guard:
            if waiter in self._queue and waiter.turn.set_running_or_notify_cancel():
                self._queue.remove(waiter)
                waiter.turn.set_exception(error)
                self._serve()

    def awaited(self, waiter: Waiter) -> set[AbstractEventLoop | None]:
        """The loops that must run for others to make room; None means a thread by itself."""
        with self._guard:
            asked = waiter.ask
            loops = {
                each.ask.loop for one in asked.scopes for each in self._others_on_way(one, asked)
            }
            has_others = any(self._of(one.name).elsewhere for one in asked.scopes)
            return loops | {None} if has_others else loops

    async def record(self, permit: Permit) -> None:
        """Write a reservation that is charged here into the log."""
        scopes = permit.ask.scopes
        try:
            refused = await self._reserved(permit)
            while refused is not None and self._settled:
                for settled, used in list(self._settled.values()):
                    await self.record_settled(settled, used)
                refused = await self._reserved(permit)
        except BaseException:
            # Nobody knows whether it is written, so it stays charged.
            self.give_up(permit)
            raise
        if refused is not None:
            with self._guard:
                self._free(permit)
                self._serve()
            scope = next(scope for scope in scopes if scope.name == refused.scope)
            reached = scope.reached(refused.kind)
            if not self.is_shared:
                raise reached
            # What is settled, and what others hold, says whether it waits or is refused.
            await self._read()
            raise CrowdedOutError(reached.limit, reached.value, reached.scope)
        with self._guard:
            self._on_record.add(permit.reservation.id)

    async def _reserved(self, permit: Permit) -> Refused | None:
        bounds = [scope.bound for scope in permit.ask.scopes]
        return await self._log.reserve(permit.reservation, bounds)

    async def settle(
        self, permit: Permit, used: Spending, counted: tuple[int, int] | None = None
    ) -> None:
        """Replace the reservation of a call by what it used."""
        try:
            await self.record_settled(permit, used)
        except BaseException:
            # Nobody knows whether it is written, so it stays charged.
            self.give_up(permit)
            raise
        self._settle_here(permit, used, counted)

    def settle_now(
        self, permit: Permit, used: Spending, counted: tuple[int, int] | None = None
    ) -> None:
        """Settle a call here alone; `record_settled` is to follow."""
        self._settled[permit.reservation.id] = permit, used
        self._settle_here(permit, used, counted)

    def _settle_here(self, permit: Permit, used: Spending, counted: tuple[int, int] | None) -> None:
        with self._guard:
            if counted is not None:
                self._seen.setdefault(permit.ask.model, Seen()).add(permit, *counted)
            self._free(permit, used)
            self._serve()

    async def record_settled(self, permit: Permit, used: Spending) -> None:
        await self._log.settle(permit.reservation, used)
        self._settled.pop(permit.reservation.id, None)

    def give_up(self, permit: Permit) -> None:
        """Keep others from waiting for a call that is never settled; it stays charged in full."""
        reservation = permit.reservation
        with self._guard:
            self.moved = time.monotonic()
            self._on_record.discard(reservation.id)
            self._lost[reservation.id] = reservation.amount
            for scope in permit.ask.scopes:
                self._of(scope.name).on_way.pop(reservation.id, None)
            self._serve()

    async def charged(self) -> Spending:
        await self.open()
        charged = self._charged.get(RUN, Picture())
        return Spending(calls=charged.calls, tokens=charged.tokens, cost=max(0.0, charged.cost))

    async def _read(self, lost: str | None = None) -> None:
        """Restore what is on record; reservations with the same names are lost."""
        with self._guard:
            on_record = set(self._on_record)
        found = await self._log.charged(self.run_id)
        held = {name: each for one in found.values() for name, each in one.reserved.items()}
        with self._guard:
            self._read_at = time.monotonic()
            if not self._is_open:
                of_steps = {name for name in held if name.startswith(STEPS_ELSEWHERE)}
                self.is_shared = self.is_shared or bool(of_steps)
                # The run was in another process before, which has lost it.
                ended = held.keys() - of_steps if not self._is_guest else set[str]()
                self._lost |= {name: held[name] for name in ended}
            if lost is not None:
                ended = {name for name in held if name.startswith(lost)}
                self._lost |= {name: held[name] for name in ended - self._on_record}
            for name, each in found.items():
                if self._of(name).read(each, on_record, self._lost):
                    self.moved = time.monotonic()
            self._serve()

    def _of(self, scope: str) -> Picture:
        return self._charged.setdefault(scope, Picture())

    def _charge(self, permit: Permit) -> None:
        for scope in permit.ask.scopes:
            charged = self._of(scope.name)
            charged.add(permit.reservation.amount)
            charged.on_way[permit.reservation.id] = permit

    def _free(self, permit: Permit, used: Spending | None = None) -> None:
        self.moved = time.monotonic()
        self._on_record.discard(permit.reservation.id)
        for scope in permit.ask.scopes:
            charged = self._of(scope.name)
            if charged.on_way.pop(permit.reservation.id, None) is not None:
                charged.add(permit.reservation.amount, -1)
                charged.add(used or Spending())

    def _leave_line(self, waiter: Waiter) -> None:
        with self._guard:
            turn = waiter.turn
            if waiter in self._queue:
                self._queue.remove(waiter)
                turn.cancel()
            elif not turn.cancelled() and turn.exception() is None:
                self._free(turn.result())
            self._serve()

    def _serve(self) -> None:
        """Go through the waiting calls, in the order of their arrival."""
        blocked: set[str] = set()
        for waiter in list(self._queue):
            if waiter.turn.done() or waiter.is_behind(blocked):
                continue
            offer = self._offer(waiter.ask, others=len(self._queue) - 1)
            if isinstance(offer, Blocked):
                blocked.add(offer.tag)
                waiter.error = offer.error
            elif waiter.turn.set_running_or_notify_cancel():
                self._queue.remove(waiter)
                if isinstance(offer, Permit):
                    self._charge(offer)
                    waiter.turn.set_result(offer)
                else:
                    waiter.turn.set_exception(offer)

    def _offer(self, ask: Ask, *, others: int) -> Offer:
        for scope in ask.scopes:
            # A call in progress stays a call, so it makes no room in the number of calls.
            if self._of(scope.name).calls + 1 > scope.most("calls"):
                return scope.reached("calls", self._of(scope.name).calls, 1)
        if not ask.limited:
            return unbounded(ask)
        rooms = [self._room(scope, ask) for scope in ask.limited]
        on_way = [permit for one in ask.scopes for permit in self._others_on_way(one, ask)]
        seen = self._seen.get(ask.model)
        if seen is None and not ask.cuttable and any(p.ask.model == ask.model for p in on_way):
            # Nothing is known of replies that cannot be cut before the first one is there.
            reached = rooms[0].reached(ask, ask.likely_tokens, ask.output_tokens)
            return Blocked(_tag_of_model(ask), reached)
        has_others = any(self._of(one.name).elsewhere for one in ask.scopes)
        return fit(ask, rooms, seen, crowded=bool(on_way or others or has_others))

    def _others_on_way(self, scope: Scope, ask: Ask) -> list[Permit]:
        on_way = self._of(scope.name).on_way
        return [permit for id_, permit in on_way.items() if id_ not in ask.part_of]

    def _room(self, scope: Scope, ask: Ask) -> Room:
        charged = self._of(scope.name)
        amounts = [permit.reservation.amount for permit in self._others_on_way(scope, ask)]
        amounts.extend(charged.elsewhere.values())
        tokens = scope.most("tokens") - charged.tokens
        cost = scope.most("cost") - charged.cost
        return Room(
            scope=scope,
            tokens=tokens,
            cost=cost,
            tokens_later=tokens + sum(amount.tokens for amount in amounts),
            cost_later=cost + sum(amount.cost for amount in amounts),
        )


def _tag_of_model(ask: Ask) -> str:
    return f"model/{ask.model}"


class Accounts:
    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._accounts: OrderedDict[str, Account] = OrderedDict()

    def of(self, log: RunLog, run_id: str) -> Account:
        with self._guard:
            account = self._accounts.get(run_id)
            if account is None:
                account = self._accounts[run_id] = Account(log, run_id)
                self._make_room_for(run_id)
            self._accounts.move_to_end(run_id)
        return account

    def _make_room_for(self, run_id: str) -> None:
        """Forget an account that is not in use: the log has everything."""
        if len(self._accounts) > _MOST_RUNS:
            known = self._accounts.items()
            resting = (name for name, each in known if name != run_id and each.is_at_rest)
            self._accounts.pop(next(resting, ""), None)

    def close(self, run_id: str) -> None:
        with self._guard:
            self._accounts.pop(run_id, None)
