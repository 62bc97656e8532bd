"""Reserves and counts the model calls of a node or an attempt, and stops excess calls.

A meter is one of LangChain's callbacks, so it learns of all calls, awaited or not: it goes wherever
the caller's configuration goes, also into tool loops.
"""

import asyncio
import threading
from asyncio import AbstractEventLoop
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from itertools import chain
from types import TracebackType
from typing import Any, Self
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.outputs import ChatGenerationChunk, GenerationChunk, LLMResult

from replan.errors import LimitReachedError, UnpricedModelError
from replan.events.calls import Calls
from replan.events.foreign_tools import ForeignTools
from replan.failures import brought_nothing
from replan.langgraph_inside.callbacks import either
from replan.log.amounts import Spending
from replan.ports.allowance import Allowance, Request
from replan.ports.specialist_port import TEXT_BESIDE, TEXT_SHOWN
from replan.spending.account import Account
from replan.spending.charging import (
    announced,
    charged_for_reply,
    reported_tokens,
)
from replan.spending.deadline import Stopwatch
from replan.spending.fitting import Ask, Permit, likely_tokens, most_tokens
from replan.spending.scopes import Scope, known_price
from replan.spending.waiting import HomeLoop, Line
from replan.state.limits import Price
from replan.state.usage import TokenCount
from replan.texts.storable import well_formed

Said = Sequence[str | list[BaseMessage]]

_OVER = "the attempt that this call belongs to is over"


# The first call that begins inside takes it; any other is a part of that one.
@dataclass
class _Handed:
    """A permit that was taken before its call."""

    meter: "Meter"
    permit: Permit
    is_used: bool = False


_handed: ContextVar[tuple[_Handed, ...]] = ContextVar("replan_permits", default=())


# Leaving it as a context ends it: what is not settled then stays charged in full, and a thread that
# was abandoned makes no further call.
class Meter(BaseCallbackHandler, Allowance):
    """Counts and charges all calls: awaited or not, on any loop, in threads."""

    # An error raised here must stop the call instead of being logged.
    raise_error = True
    # Else LangChain makes a task or a thread of each call.
    run_inline = True

    def __init__(
        self,
        account: Account,
        scopes: Sequence[Scope],
        *,
        new_id: Callable[[], str],
        prices: Mapping[str, Price] | None = None,
        on_token: Callable[[str], None] | None = None,
        calls: Calls | None = None,
    ) -> None:
        """Count for a run, on the running event loop."""
        self.calls = calls
        self._made = 0
        self._used: list[TokenCount] = []
        self._refused: LimitReachedError | None = None
        self.scopes = scopes  # what calls are charged to
        self.clocks = account.clocks  # how long they were at work
        self._on_token = on_token
        self._has_spoken = False
        self._tools = None if calls is None else ForeignTools(calls)
        self._account = account
        self._new_id = new_id
        self._prices = prices or {}
        self._home = HomeLoop()
        self._guard = threading.Lock()
        self._is_over = False
        self._calls: dict[UUID, Permit] = {}
        self._counts: dict[UUID, list[TokenCount]] = {}
        self._line = Line(account, self._home)

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
            calls = list(self._calls.values())
            self._calls.clear()
            for permit in calls:
                self._used.append(_priced(permit, TokenCount(), permit.reservation.amount.cost))
        self._line.close(RuntimeError(_OVER))
        for permit in calls:
            self._account.give_up(permit)
            cost = permit.reservation.amount.cost
            self._tell_end(permit, error or RuntimeError(_OVER), TokenCount(), cost)
        if calls and self._account.is_shared:
            self._home.write(self._account.share)
        if self._tools is not None:
            self._tools.close()
        await self._line.at_rest()
        await self._home.at_rest()

    @property
    def handlers(self) -> Sequence[BaseCallbackHandler]:
        """What is among the callbacks of a configuration, for models and for tools."""
        # LangChain never awaits the handlers that are behind one that refuses a call.
        return [self] if self._tools is None else [self._tools, self]

    @property
    def hears_tokens(self) -> bool:
        """Whether a reply is to be streamed for it."""
        return self._on_token is not None

    @property
    def ignore_chain(self) -> bool:
        return True

    @property
    def ignore_agent(self) -> bool:
        return True

    @property
    def count(self) -> TokenCount:
        return sum(self._used, TokenCount(calls=self._made))

    async def share(self) -> None:
        """Let another process make calls of the run, too; see `Account.share`."""
        await self._account.share()

    def count_elsewhere(self, used: TokenCount) -> None:
        """Count calls that another process made, and charged."""
        with self._guard:
            self._used.append(used)

    @property
    def refused(self) -> LimitReachedError | None:
        """The first limit that kept a call from being made, or None."""
        refused = self._refused
        return None if refused is None or refused.is_overcome else refused

    @property
    def waiting(self) -> Stopwatch:
        """How long it has waited for room held by other calls."""
        return self._line.clock

    @property
    def stuck(self) -> float:
        """Seconds for which it waits for room while no call of the run ends."""
        return self._line.stuck if self._line.since else 0.0

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
                await self._line.settle(permit, Spending())

    def on_llm_new_token(
        self,
        token: str | list[str | dict[str, Any]],
        *,
        chunk: GenerationChunk | ChatGenerationChunk | None = None,
        run_id: UUID,
        **_: Any,
    ) -> None:
        """Pass a piece of text on; of a piece that is more than text, its text."""
        piece = chunk.message if isinstance(chunk, ChatGenerationChunk) else None
        if piece is not None and getattr(piece, "usage_metadata", None):
            # Some servers report the total so far with each piece.
            self._counts.setdefault(run_id, []).append(reported_tokens(piece))
        if self._on_token is None:
            return
        if not isinstance(token, str) and piece is not None:
            token = piece.text
        if isinstance(token, str) and token:
            self._has_spoken = True
            self._on_token(well_formed(token))

    def on_custom_event(self, name: str, data: Any, **_: Any) -> None:
        """Pass on text that no model wrote; the tokens of models come through the callbacks."""
        is_new = name == TEXT_BESIDE or (name == TEXT_SHOWN and not self._has_spoken)
        if is_new and self._on_token is not None:
            self._on_token(str(data))

    async def _call_begins(
        self, known: dict[str, Any], said: Said, *, run_id: UUID, **given: Any
    ) -> None:
        """Reserve a call before it is made, and wait for room that other calls hold."""
        request = partial(_request, known, said, given)
        permit = self._handed_permit() or await self._take(request())
        if not self._note_call(run_id, permit, request):
            await self._line.settle(permit, Spending())
            raise RuntimeError(_OVER)

    def _call_begins_now(
        self, known: dict[str, Any], said: Said, *, run_id: UUID, **given: Any
    ) -> None:
        """Reserve a call of code that does not await it; code that blocks a loop never waits."""
        self._check_time()
        request = partial(_request, known, said, given)
        ask = self._ask(request(), None)
        with self._refusal_noted():
            permit = self._line.take_now(ask)
        if not self._note_call(run_id, permit, request):
            self._line.settle_now(permit, Spending())
            raise RuntimeError(_OVER)

    async def _call_ends(
        self, outcome: LLMResult | BaseException, *, run_id: UUID, **_: Any
    ) -> None:
        if (permit := self._calls.get(run_id)) is not None:
            await self._line.settle(permit, *self._charge(run_id, permit, outcome))

    def _call_ends_now(self, outcome: LLMResult | BaseException, *, run_id: UUID, **_: Any) -> None:
        """Settle a call; the log records it as soon as possible."""
        if (permit := self._calls.get(run_id)) is not None:
            self._line.settle_now(permit, *self._charge(run_id, permit, outcome))

    on_chat_model_start: Any = either(_call_begins, _call_begins_now)
    on_llm_start: Any = either(_call_begins, _call_begins_now)
    on_llm_end: Any = either(_call_ends, _call_ends_now)
    on_llm_error: Any = either(_call_ends, _call_ends_now)

    async def _take(self, request: Request) -> Permit:
        self._check_time()
        loop = asyncio.get_running_loop()
        ask = self._ask(request, loop)
        with self._refusal_noted():
            if loop is self._home.loop:
                permit = await self._account.take(ask, self._line.waiting_of)
            else:
                permit = await self._line.take_elsewhere(ask)
        if self._is_over:
            # The attempt ended while this call waited: its usage would not be counted.
            await self._line.settle(permit, Spending())
            raise RuntimeError(_OVER)
        return permit

    @contextmanager
    def _refusal_noted(self) -> Generator[None]:
        try:
            yield
        except LimitReachedError as error:
            self._refused = self.refused or error
            raise

    def _note_call(self, call: UUID, permit: Permit, request: Callable[[], Request]) -> bool:
        """Count a call; return whether it may still be made."""
        with self._guard:
            if not self._is_over:
                self._calls[call] = permit
                self._line.is_own = True
                self._made += 1
            is_made = not self._is_over
        if is_made and self.calls is not None:
            asked = request()
            self.calls.called(permit.ask.id, permit.ask.model, asked.messages, asked.provider)
        return is_made

    def _check_time(self) -> None:
        if self._is_over:
            raise RuntimeError(_OVER)

    def _charge(
        self, call: UUID, permit: Permit, outcome: LLMResult | BaseException
    ) -> tuple[Spending, tuple[int, int] | None]:
        """Count the outcome of a call: what is charged for it, and what its server counted."""
        # By the tokens that its server reported, else by the bytes of its reply.
        if isinstance(outcome, BaseException):
            # In full if it was cut off, unless its server certainly did nothing.
            spent = Spending(calls=1) if brought_nothing(outcome) else permit.reservation.amount
            reported = TokenCount()
        else:
            spent, reported = charged_for_reply(permit, outcome, self._counts.get(call, ()))
        with self._guard:
            self._counts.pop(call, None)
            # Whoever ended it meanwhile has counted it.
            if self._calls.pop(call, None) is not None:
                self._line.is_own = bool(self._calls)
                self._used.append(_priced(permit, reported, spent.cost))
        self._tell_end(permit, outcome, reported, spent.cost)
        counted = (reported.input_tokens, reported.output_tokens)
        return spent, counted if any(counted) else None

    def _tell_end(
        self, permit: Permit, outcome: LLMResult | BaseException, reported: TokenCount, cost: float
    ) -> None:
        ask = permit.ask
        if self.calls is not None:
            known = None if ask.price is None else cost
            self.calls.answered(ask.id, ask.model, outcome, reported, known)

    def _handed_permit(self) -> Permit | None:
        for handed in _handed.get():
            if handed.meter is self and not handed.is_used:
                handed.is_used = True
                return handed.permit
        return None

    def _ask(self, request: Request, loop: AbstractEventLoop | None) -> Ask:
        is_money_bound = any(scope.budget.max_cost is not None for scope in self.scopes)
        price = known_price(request.names, self._prices)
        if price is None and is_money_bound:
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


def _priced(permit: Permit, reported: TokenCount, cost: float) -> TokenCount:
    """What a call used, with its cost, which may be unknown."""
    if permit.ask.price is None:
        return reported.replace(unpriced_calls=1)
    return reported.replace(known_cost=cost)


def _request(serialized: dict[str, Any] | None, said: Said, given: dict[str, Any]) -> Request:
    """Read a call from LangChain's callback: the messages of a chat model, else plain texts."""
    messages = ([HumanMessage(each)] if isinstance(each, str) else each for each in said)
    return announced(serialized, [*chain.from_iterable(messages)], given)
