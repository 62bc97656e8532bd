"""Reserves the model calls of a node or an attempt, counts them, stops what would be too much."""

import threading
import time
from asyncio import AbstractEventLoop, CancelledError
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from types import TracebackType
from typing import Self
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import BaseMessage
from langchain_core.outputs import LLMResult

from replan.errors import LimitReachedError, UnpricedModelError
from replan.nodes.charging import charged_for_error, charged_for_reply, reported_tokens
from replan.nodes.home_loop import HomeLoop, running_loop
from replan.nodes.met_calls import AwaitedCalls, PlainCalls
from replan.ports.account import Account, Waiter
from replan.ports.asking import Ask, Permit, Scope
from replan.ports.chat import Request
from replan.ports.journal import Spending
from replan.ports.prices import price_of
from replan.ports.pulse import Pulse, done_in_loop, done_in_thread
from replan.ports.request_size import likely_tokens, most_tokens
from replan.ports.stopwatch import Stopwatch
from replan.state.limits import Price
from replan.state.usage import TokenCount

PATIENCE = 5.0
"""Seconds for which a loop may stand still before code elsewhere waits for none of its calls."""

_OVER = "the attempt that this call belongs to is over"


@dataclass
class _Handed:
    """A permit that was taken before its call.

    The first call that begins inside is the one; any other is a part of it.
    """

    meter: "Meter"
    permit: Permit
    is_used: bool = False


_handed: ContextVar[tuple[_Handed, ...]] = ContextVar("replan_permits", default=())


class Meter:
    """Counts and charges calls wherever they are made: awaited or not, on any loop, in threads.

    LangChain tells of them through its two handlers. Leaving it as a context ends it: what is not
    settled then stays charged in full, and a thread that was given up makes no further call.

    Attributes:
        handlers: What stands among the callbacks of a configuration, in this order.
        scopes: What calls are charged to.
        count: What was used so far.
        waiting: How long it has waited for room that others hold.
        refused: The first limit that kept a call from being made, or none.
        hears_tokens: Whether a reply is to be streamed for it.
    """

    def __init__(
        self,
        account: Account,
        scopes: Sequence[Scope],
        *,
        new_id: Callable[[], str],
        prices: Mapping[str, Price] | None = None,
        on_token: Callable[[str], None] | None = None,
    ) -> None:
        """Count for a run, on the running event loop.

        Args:
            account: What the run may still spend.
            scopes: What its calls are charged to.
            new_id: Names reservations.
            prices: What models cost, by name.
            on_token: Gets the pieces of text as they come; None where nobody hears them.
        """
        self.count = TokenCount()
        self.waiting = Stopwatch()
        self.refused: LimitReachedError | None = None
        self.scopes = scopes
        self.hears_tokens = on_token is not None
        self.handlers: list[BaseCallbackHandler] = [AwaitedCalls(self), PlainCalls(self, on_token)]
        self._account = account
        self._new_id = new_id
        self._prices = prices or {}
        self._home = HomeLoop()
        self._guard = threading.Lock()
        self._is_over = False
        self._met: set[UUID] = set()
        self._stopped: dict[UUID, BaseException] = {}
        self._calls: dict[UUID, Permit] = {}
        self._counts: dict[UUID, list[TokenCount]] = {}
        self._in_line: dict[Waiter, float] = {}

    async def __aenter__(self) -> Self:
        await self._account.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._guard:
            self._is_over = True
            waiting, calls = list(self._in_line), list(self._calls.values())
            self._calls.clear()
            for permit in calls:
                self.count += TokenCount(cost=permit.reservation.amount.cost)
        for waiter in waiting:
            self._account.dismiss(waiter, RuntimeError(_OVER))
        for permit in calls:
            self._account.give_up(permit)
        await self._home.at_rest()

    @property
    def stuck(self) -> float:
        """Seconds for which it waits for room while no call of the run comes to its end."""
        with self._guard:
            since = min(self._in_line.values(), default=None)
        return 0.0 if since is None else time.monotonic() - max(since, self._account.moved)

    @asynccontextmanager
    async def allowed(self, request: Request) -> AsyncGenerator[int | None]:
        """Allow the one call that is made inside; see `Allowance`."""
        permit = await self._take(request)
        handed = _Handed(self, permit)
        token = _handed.set((*_handed.get(), handed))
        try:
            yield permit.most_output
        finally:
            # What is thrown away without an end is not in its context any more.
            with suppress(ValueError):
                _handed.reset(token)
            if not handed.is_used:
                # It was not made after all.
                await self._settle(permit, Spending())

    async def begin(self, call: UUID, request: Callable[[], Request]) -> None:
        """Reserve a call before it is made, and wait for room where others hold it.

        What keeps it from being made is raised by `begin_plain`, which hears of it next.
        """
        if not self._is_news(call):
            return
        try:
            await self._begin(call, self._handed_over() or await self._take(request()))
        except (Exception, CancelledError) as error:  # noqa: BLE001 - raised in a moment
            self._stopped[call] = error

    def begin_plain(self, call: UUID, request: Callable[[], Request]) -> None:
        """Reserve a call of code that does not await it; who blocks a loop waits for nothing.

        Raises:
            LimitReachedError: There is no room for it.
            UnpricedModelError: Money is bound, and the model has no price.
        """
        if self._is_news(call):
            self._begin_now(call, self._ask(request(), None))
        elif (error := self._stopped.pop(call, None)) is not None:
            raise error

    async def end(self, call: UUID, came: LLMResult | BaseException) -> None:
        """Settle a call.

        By the tokens that its server reported, else by the bytes of its reply; one that broke off
        in full, unless its server surely did nothing.
        """
        if (permit := self._calls.get(call)) is not None:
            await self._settle(permit, *self._spent(call, permit, came))

    def end_plain(self, call: UUID, came: LLMResult | BaseException) -> None:
        """Settle a call; the journal hears of it as soon as it can."""
        if (permit := self._calls.get(call)) is not None:
            self._settle_plain(permit, *self._spent(call, permit, came))

    def note_count(self, call: UUID, piece: BaseMessage) -> None:
        """Keep what a piece reports: some servers report with each what the reply took so far."""
        if getattr(piece, "usage_metadata", None):
            self._counts.setdefault(call, []).append(reported_tokens(piece))

    def _is_news(self, call: UUID) -> bool:
        """Whether a call is heard of for the first time: both handlers hear of each."""
        with self._guard:
            is_news = call not in self._met
            self._met.add(call)
        return is_news

    async def _begin(self, call: UUID, permit: Permit) -> None:
        if not self._noted(call, permit):
            await self._settle(permit, Spending())
            raise RuntimeError(_OVER)

    def _begin_now(self, call: UUID, ask: Ask) -> None:
        self._check_time()
        with self._refusal_noted():
            permit = self._room_now(ask)
            written = self._written(permit)
            if not self._home.is_here:
                self._home.await_in_thread(written)
        if not self._noted(call, permit):
            self._settle_plain(permit, Spending())
            raise RuntimeError(_OVER)

    async def _take(self, request: Request) -> Permit:
        self._check_time()
        ask = self._ask(request, running_loop())
        with self._refusal_noted():
            if self._home.is_here:
                permit = await self._account.take(ask, self._waiting)
            else:
                permit = await self._room_elsewhere(ask)
                await self._home.await_elsewhere(self._written(permit))
        if self._is_over:
            # The attempt ended while this call was asking: what comes now, nobody would count.
            await self._settle(permit, Spending())
            raise RuntimeError(_OVER)
        return permit

    async def _room_elsewhere(self, ask: Ask) -> Permit:
        asked = self._account.ask(ask)
        if isinstance(asked, Permit):
            return asked
        with self._account.in_line(asked), self._waiting(asked):
            await done_in_loop(asked.turn, self._hopelessness_of(asked))
            return self._account.turn_of(asked)

    def _room_now(self, ask: Ask) -> Permit:
        asked = self._account.ask(ask)
        if isinstance(asked, Permit):
            return asked
        with self._account.in_line(asked), self._waiting(asked):
            # Where a loop runs, it stands still, and with it the calls that are awaited there.
            if running_loop() is None:
                done_in_thread(asked.turn, self._hopelessness_of(asked))
            return self._account.turn_of(asked)

    def _hopelessness_of(self, waiter: Waiter) -> Callable[[], bool]:
        """Whether all who could make room for somebody stand still themselves."""
        pulses: dict[AbstractEventLoop, Pulse] = {}

        def stands(loop: AbstractEventLoop | None) -> bool:
            if loop is None:
                return False
            return pulses.setdefault(loop, Pulse(loop)).stands_for(PATIENCE)

        def is_hopeless() -> bool:
            standing = [stands(loop) for loop in self._account.awaited(waiter)]
            return bool(standing) and all(standing)

        return is_hopeless

    @contextmanager
    def _waiting(self, waiter: Waiter) -> Generator[None]:
        with self._guard:
            self._in_line[waiter] = time.monotonic()
            # An attempt that has calls on their way waits for itself, too.
            is_own = bool(self._calls)
        if self._is_over:
            self._account.dismiss(waiter, RuntimeError(_OVER))
        try:
            with nullcontext() if is_own else self.waiting.running():
                yield
        finally:
            with self._guard:
                del self._in_line[waiter]

    @contextmanager
    def _refusal_noted(self) -> Generator[None]:
        try:
            yield
        except LimitReachedError as error:
            self.refused = self.refused or error
            raise

    def _written(self, permit: Permit) -> Future[None]:
        try:
            return self._home.write(lambda: self._account.record(permit))
        except RuntimeError:
            self._account.give_up(permit)
            raise

    async def _settle(
        self, permit: Permit, used: Spending, counted: tuple[int, int] | None = None
    ) -> None:
        if self._home.is_here:
            await self._account.settle(permit, used, counted)
        else:
            self._settle_plain(permit, used, counted)

    def _settle_plain(
        self, permit: Permit, used: Spending, counted: tuple[int, int] | None = None
    ) -> None:
        self._account.settle_now(permit, used, counted)
        self._home.write(lambda: self._account.record_settled(permit, used))

    def _noted(self, call: UUID, permit: Permit) -> bool:
        """Count a call; tell whether it may still be made."""
        with self._guard:
            if not self._is_over:
                self._calls[call] = permit
                self.count += TokenCount(calls=1)
            return not self._is_over

    def _check_time(self) -> None:
        if self._is_over:
            raise RuntimeError(_OVER)

    def _spent(
        self, call: UUID, permit: Permit, came: LLMResult | BaseException
    ) -> tuple[Spending, tuple[int, int] | None]:
        """Count what came of a call: what is charged for it, and what its server counted."""
        if isinstance(came, BaseException):
            spent, reported = charged_for_error(permit, came), TokenCount()
        else:
            spent, reported = charged_for_reply(permit, came, self._counts.get(call, ()))
        with self._guard:
            self._counts.pop(call, None)
            # Whoever ended it meanwhile has counted it.
            if self._calls.pop(call, None) is not None:
                self.count += reported.replace(cost=spent.cost)
        counted = (reported.input_tokens, reported.output_tokens)
        return spent, counted if any(counted) else None

    def _handed_over(self) -> Permit | None:
        for handed in _handed.get():
            if handed.meter is self and not handed.is_used:
                handed.is_used = True
                return handed.permit
        return None

    def _ask(self, request: Request, loop: AbstractEventLoop | None) -> Ask:
        price = price_of(request.names, self._prices)
        if price is None and any(scope.budget.max_cost is not None for scope in self.scopes):
            raise UnpricedModelError("prices", request.model)
        most = most_tokens(request.messages, request.tools)
        is_bound = any(scope.bounds_amounts for scope in self.scopes)
        return Ask(
            id=self._new_id(),
            run_id=self._account.run_id,
            model=request.model,
            scopes=self.scopes,
            input_tokens=most,
            likely_tokens=likely_tokens(request.messages, request.tools) if is_bound else most,
            output_tokens=request.most_output,
            cuttable=request.cuttable,
            price=price,
            part_of=frozenset(handed.permit.reservation.id for handed in _handed.get()),
            loop=loop,
        )
