"""Reserves and counts the model calls of a node or an attempt, and stops excess calls.

A meter is one of LangChain's callbacks, so it learns of all calls, awaited or not: it goes wherever
the caller's configuration goes, also into tool loops. Replan's own calls ask it directly; of those
that LangChain reports, too, it counts the report.
"""

import asyncio
import math
import threading
import time
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from concurrent import futures
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from types import TracebackType
from typing import Any, Self
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.outputs import ChatGenerationChunk, GenerationChunk, LLMResult

from replan.base.errors import LimitReachedError, UnpricedModelError
from replan.base.failures import is_unbilled
from replan.base.langgraph_inside.callbacks import either
from replan.base.texts.storable import well_formed
from replan.log.amounts import NOTHING, Spending
from replan.log.events.calls import CallReporter, ForeignTools
from replan.models.spending.account import Account
from replan.models.spending.charging import (
    NO_TOKENS,
    announced,
    charged_for_replies,
    holds_more_than_text,
    replies_in,
    reported_tokens,
)
from replan.models.spending.deadline import Stopwatch, no_sign_within
from replan.models.spending.scopes import CallRequest, Permit, Scope, known_price, tokens_of_request
from replan.ports.allowance import Allowance, Request
from replan.ports.run_context import here
from replan.ports.specialist_port import TEXT_BESIDE, TEXT_SHOWN
from replan.state.limits import Price
from replan.state.usage import TokenCount, Tokens, total

MOMENT = 0.1
"""Seconds that the loop of a run may be blocked before a thread takes the room that there is."""

PATIENCE = 5.0
"""Seconds that it may be blocked before a call in a thread that found no room is refused."""

Said = Sequence[str | list[BaseMessage]]

_OVER = "the attempt that this call belongs to is over"


# Leaving it as a context ends it: what is not settled then stays charged in full, and a thread that
# was abandoned makes no further call.
class Meter(Allowance):
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
        calls: CallReporter | None = None,
    ) -> None:
        """Count for a run, on the running event loop."""
        self.calls = calls
        self.scopes = scopes  # what calls are charged to
        self.clocks = account.clocks  # how long they were at work
        self.waiting = Stopwatch()  # how long it has waited for room held by other calls
        self.patience = math.inf  # seconds that it waits for room at most while no call ends
        self.idle = math.inf  # seconds that may pass without a sign of work
        self.signed_at = time.monotonic()  # when there was the newest one
        self._silent_ends: set[asyncio.Timeout] = set()  # ends of calls that fail if silent
        self._made = 0
        self._used: list[TokenCount] = []
        self._refused: LimitReachedError | None = None
        self._on_token = on_token
        self._has_spoken = False
        self._tools = None if calls is None else ForeignTools(calls, lambda: here().tool)
        self._account = account
        self._new_id = new_id
        self._prices = prices or {}
        self._is_money_bound = any(scope.budget.max_cost is not None for scope in scopes)
        self._loop = asyncio.get_running_loop()
        self._guard = threading.Lock()
        self._is_over = False
        # By the ids of permits, and by LangChain's ids of the calls that it alone reports.
        self._calls: dict[str | UUID, Permit] = {}
        self._counts: dict[str | UUID, list[Tokens]] = {}
        # Replan's own calls that LangChain will report, and those that it reports, by its ids.
        self._to_be_reported: set[str] = set()
        self._own: dict[UUID, str] = {}
        # Calls of threads that the loop of the run reserves.
        self._taking: set[asyncio.Task[None]] = set()

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
                self._used.append(_priced(permit, NO_TOKENS, permit.reservation.amount.cost))
        for permit in calls:
            self._account.give_up(permit)
            cost = permit.reservation.amount.cost
            self._tell_end(permit, error or RuntimeError(_OVER), NO_TOKENS, cost)
        if self._tools is not None:
            self._tools.close()
        for task in [*self._taking]:
            task.cancel()
            await asyncio.wait({task})
        await self._account.wait_written()

    @property
    def handlers(self) -> Sequence[BaseCallbackHandler]:
        """What is among the callbacks of a configuration, for models and for tools."""
        # LangChain never awaits the handlers that are behind one that refuses a call.
        return [self] if self._tools is None else [self._tools, self]

    @property
    def hears_tokens(self) -> bool:
        """Whether a reply is to be streamed for it."""
        return self.shows_tokens or self.idle < math.inf

    @property
    def shows_tokens(self) -> bool:
        """Whether somebody sees them: its own watch over silence shows nothing."""
        return self._on_token is not None

    @property
    def ignore_chain(self) -> bool:
        return True

    def sign(self, *_: Any, **__: Any) -> None:
        """Take a sign of work: something came, began or ended."""
        self.signed_at = time.monotonic()

    def pauses(self, seconds: float) -> None:
        """Note a pause before a call is made again: silence begins behind it."""
        self.signed_at = time.monotonic() + seconds

    @asynccontextmanager
    async def ending_if_silent(self) -> AsyncGenerator[None]:
        """A block that fails if its work falls silent; what is around it goes on."""
        if self.idle == math.inf or not self._is_here:
            yield
            return
        idle, end = self.idle, asyncio.timeout(None)
        try:
            async with end:
                self._silent_ends.add(end)
                try:
                    yield
                finally:
                    self._silent_ends.discard(end)
        except TimeoutError as error:
            if not end.expired():
                raise
            raise no_sign_within(idle) from error

    def end_silent_calls(self) -> bool:
        """End the blocks that fail if they fall silent; return whether there was one."""
        for end in (silent := [*self._silent_ends]):
            end.reschedule(self._loop.time())
        self._silent_ends.clear()
        self.sign()
        return bool(silent)

    on_tool_start: Any = sign
    on_tool_end: Any = sign
    on_tool_error: Any = sign
    on_retriever_end: Any = sign

    @property
    def made(self) -> int:
        """How many calls it has let begin here."""
        return self._made

    @property
    def count(self) -> TokenCount:
        """What the calls used that have ended; when it is left, all have."""
        return total(self._used)

    def spends_elsewhere(self) -> None:
        """Note that another process makes calls of the run, and has an eye on the work."""
        self.idle = math.inf
        self._account.spends_elsewhere()

    def count_elsewhere(self, used: TokenCount, refused: LimitReachedError | None) -> None:
        """Count calls that another process made, and charged, and take what it was refused."""
        with self._guard:
            self._used.append(used)
        self._refused = self.refused or refused

    @property
    def refused(self) -> LimitReachedError | None:
        """The first limit that kept a call from being made, or None."""
        refused = self._refused
        return None if refused is None or refused.is_overcome else refused

    async def take(self, request: Request) -> "_MeteredCall":
        """Take a permit for a call; see `Allowance`."""
        return _MeteredCall(self, await self._take(request), request)

    async def _take(self, request: Request) -> Permit:
        call = self._call(request)
        try:
            if self._is_here:
                permit = await self._account.take(call, self._patience, self._waiting)
            else:
                permit = await asyncio.to_thread(self._permit_from_loop, call)
        except LimitReachedError as error:
            self._refused = self.refused or error
            raise
        if self._is_over:
            # The attempt ended while this call waited: its usage would not be counted.
            await self.settle(permit, NOTHING)
            raise RuntimeError(_OVER)
        return permit

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
        if not isinstance(token, str):
            token = "" if piece is None else piece.text
        self.hear(self._own.get(run_id, run_id), piece, token)

    def hear(self, call: str | UUID, piece: BaseMessage | None, text: str) -> None:
        """Take a piece of the reply to a call."""
        if text or (piece is not None and holds_more_than_text(piece)):
            self.sign()
        if piece is not None and getattr(piece, "usage_metadata", None):
            # Some servers report the total so far with each piece.
            counts = self._counts.setdefault(call, [])
            counts.append(reported_tokens(piece))
            if counts[-1].output_tokens > (counts[-2].output_tokens if counts[1:] else 0):
                # Of what is not in the piece, such as what a model thinks.
                self.sign()
        if text and self._on_token is not None:
            self._has_spoken = True
            self._on_token(well_formed(text))

    def on_custom_event(self, name: str, data: Any, **_: Any) -> None:
        """Pass on text that no model wrote; the tokens of models come through the callbacks."""
        self.sign()
        is_new = name == TEXT_BESIDE or (name == TEXT_SHOWN and not self._has_spoken)
        if is_new and self._on_token is not None:
            self._on_token(str(data))

    async def _call_begins(
        self, serialized: dict[str, Any], messages: Said, *, run_id: UUID, **options: Any
    ) -> None:
        """Reserve a call before it is made, and wait for room that other calls hold."""
        if self._is_own(run_id):
            return
        request = partial(_request, serialized, messages, options)
        permit = await self._take(request())
        if not self.note_call(run_id, permit, request):
            await self.settle(permit, NOTHING)
            raise RuntimeError(_OVER)

    def _call_begins_now(
        self, serialized: dict[str, Any], messages: Said, *, run_id: UUID, **options: Any
    ) -> None:
        """Reserve a call of code that does not await it."""
        if self._is_own(run_id):
            return
        request = partial(_request, serialized, messages, options)
        call = self._call(request())
        try:
            # Code that blocks the loop of the run never waits.
            permit = (
                self._account.take_now(call, self._loop)
                if self._is_here
                else self._permit_from_loop(call)
            )
        except LimitReachedError as error:
            self._refused = self.refused or error
            raise
        if not self.note_call(run_id, permit, request):
            self._account.settle_now(permit, NOTHING, self._loop)
            raise RuntimeError(_OVER)

    async def _call_ends(
        self, outcome: LLMResult | BaseException, *, run_id: UUID, **_: Any
    ) -> None:
        await self.end_call(self._own.pop(run_id, run_id), _came(outcome))

    async def end_call(self, call: str | UUID, came: Sequence[BaseMessage] | BaseException) -> None:
        """Charge a call, and settle it, unless the attempt has ended it."""
        if (permit := self._calls.get(call)) is not None:
            used = self._charge(call, permit, came)
            await self.settle(permit, used)
            self._warn_if_passed(permit, used)

    def _call_ends_now(self, outcome: LLMResult | BaseException, *, run_id: UUID, **_: Any) -> None:
        """Settle a call; the log records it as soon as possible."""
        call = self._own.pop(run_id, run_id)
        if (permit := self._calls.get(call)) is not None:
            used = self._charge(call, permit, _came(outcome))
            self._account.settle_now(permit, used, self._loop)
            self._warn_if_passed(permit, used)

    on_chat_model_start: Any = either(_call_begins, _call_begins_now)
    on_llm_start: Any = either(_call_begins, _call_begins_now)
    on_llm_end: Any = either(_call_ends, _call_ends_now)
    on_llm_error: Any = either(_call_ends, _call_ends_now)

    def _permit_from_loop(self, call: CallRequest) -> Permit:
        """Let the loop of the run reserve a call of this thread, unless that loop is blocked."""
        while True:
            answer: Future[Permit] = Future()
            self._loop.call_soon_threadsafe(self._begin_to_take, call, answer)
            while not answer.done() and not self._is_over and self._turns(MOMENT):
                futures.wait({answer}, MOMENT)
            if not answer.cancel():
                return answer.result()
            if self._is_over:
                raise RuntimeError(_OVER)
            # What the loop may still take under the former id is given back there.
            call, ended = replace(call, id=self._new_id()), self._account.ended
            try:
                return self._account.take_now(call, self._loop)
            except LimitReachedError as error:
                if not self._is_room_made(call, error, ended):
                    raise
                call = replace(call, id=self._new_id())

    def _is_room_made(self, call: CallRequest, error: LimitReachedError, ended: int) -> bool:
        """Wait in a thread until a call in flight ends, or the loop is free again."""
        until = time.monotonic() + PATIENCE
        while self._account.makes_room(call, error) and time.monotonic() < until:
            if self._account.ended != ended or self._turns(MOMENT):
                return True
        return self._account.ended != ended

    def _begin_to_take(self, call: CallRequest, answer: Future[Permit]) -> None:
        task = asyncio.ensure_future(self._take_for(call, answer))
        self._taking.add(task)
        task.add_done_callback(self._taking.discard)

    async def _take_for(self, call: CallRequest, answer: Future[Permit]) -> None:
        if answer.cancelled():
            # The loop was blocked, and the call was made meanwhile.
            return
        try:
            permit = await self._account.take(call, self._patience, self._waiting)
        except asyncio.CancelledError:
            answer.cancel()
            raise
        except Exception as error:  # noqa: BLE001 - whoever waits in the thread raises it
            if answer.set_running_or_notify_cancel():
                answer.set_exception(error)
            return
        if answer.set_running_or_notify_cancel():
            answer.set_result(permit)
        else:
            await self._account.settle(permit, NOTHING)

    def _turns(self, seconds: float) -> bool:
        """Whether the loop of the run runs its callbacks within this time, seen from a thread."""
        turned = threading.Event()
        self._loop.call_soon_threadsafe(turned.set)
        return turned.wait(seconds)

    @property
    def _is_here(self) -> bool:
        try:
            return asyncio.get_running_loop() is self._loop
        except RuntimeError:
            return False

    @property
    def _patience(self) -> float | None:
        return None if self.patience == math.inf else self.patience

    @contextmanager
    def _waiting(self) -> Generator[None]:
        # While it has calls in flight itself, it does not only wait.
        with nullcontext() if self._calls else self.waiting.running():
            yield

    async def settle(self, permit: Permit, used: Spending) -> None:
        if self._is_here:
            await self._account.settle(permit, used)
        else:
            self._account.settle_now(permit, used, self._loop)

    def will_be_reported(self, call: str) -> None:
        """Note that LangChain will report a call of Replan's own."""
        self._to_be_reported.add(call)

    def _is_own(self, reported: UUID) -> bool:
        """Whether LangChain reports a call that Replan makes: the first one inside its permit."""
        own = [held.id for held in here().permits if held.id in self._to_be_reported]
        if own:
            self._to_be_reported.discard(own[0])
            self._own[reported] = own[0]
        return bool(own)

    def note_call(self, call: str | UUID, permit: Permit, request: Callable[[], Request]) -> bool:
        """Count a call; return whether it may still be made."""
        self.sign()
        with self._guard:
            if not self._is_over:
                self._calls[call] = permit
                self._made += 1
            is_made = not self._is_over
        if is_made and self.calls is not None:
            made = request()
            self.calls.called(permit.id, permit.call.model, made.messages, made.provider)
        return is_made

    def _charge(
        self, call: str | UUID, permit: Permit, came: Sequence[BaseMessage] | BaseException
    ) -> Spending:
        """Count the outcome of a call, and return what is charged for it."""
        # By the tokens that its server reported, else by what one can judge.
        self.sign()
        if isinstance(came, BaseException):
            # In full if it was cut off, unless its server certainly did nothing.
            spent = Spending(calls=1) if is_unbilled(came) else permit.reservation.amount
            reported = NO_TOKENS
        else:
            spent, reported = charged_for_replies(permit, came, self._counts.get(call, ()))
        with self._guard:
            self._counts.pop(call, None)
            # Whoever ended it meanwhile has counted it.
            if self._calls.pop(call, None) is not None:
                self._used.append(_priced(permit, reported, spent.cost))
        self._tell_end(permit, came, reported, spent.cost)
        return spent

    def _warn_if_passed(self, permit: Permit, used: Spending) -> None:
        """Report a limit that was passed since a call used more than was reserved for it."""
        if used.beyond(permit.reservation.amount) == NOTHING:
            return
        if passed := self._account.passed(permit.call.scopes):
            here().warn(
                f"{passed.limit}={passed.value:g} was passed by {passed.by:g}: a call of "
                f"{permit.call.model} used more than was reserved for it."
            )

    def _tell_end(
        self,
        permit: Permit,
        came: Sequence[BaseMessage] | BaseException,
        reported: Tokens,
        cost: float,
    ) -> None:
        call = permit.call
        if self.calls is not None:
            priced = None if call.price is None else cost
            self.calls.answered(call.id, call.model, came, reported, priced)

    def _call(self, request: Request) -> CallRequest:
        if self._is_over:
            raise RuntimeError(_OVER)
        price = known_price(request.names, self._prices)
        if price is None and self._is_money_bound:
            raise UnpricedModelError("prices", request.model)
        return CallRequest(
            id=self._new_id(),
            run_id=self._account.run_id,
            model=request.model,
            scopes=self.scopes,
            input_tokens=tokens_of_request(request.messages, request.tools),
            output_tokens=request.most_output,
            price=price,
            part_of=frozenset(permit.id for permit in here().permits),
        )


@dataclass(slots=True)
class _MeteredCall:
    """A call of Replan's own; of what is bound to its model, LangChain reports it, too.

    That may be more than one call, such as a fallback, so it counts what LangChain says of each.
    """

    meter: Meter
    permit: Permit
    request: Request
    is_begun: bool = False
    is_reported: bool = False

    @property
    def id(self) -> str:
        return self.permit.id

    @property
    def most_output(self) -> int | None:
        return self.permit.most_output

    def begin(self, *, is_reported: bool) -> None:
        if not self.meter.note_call(self.id, self.permit, lambda: self.request):
            raise RuntimeError(_OVER)
        self.is_begun, self.is_reported = True, is_reported
        if is_reported:
            self.meter.will_be_reported(self.id)

    def hear(self, piece: BaseMessage, text: str) -> None:
        if not self.is_reported:
            self.meter.hear(self.id, piece, text)

    async def end(self, outcome: BaseMessage | BaseException) -> None:
        if not self.is_begun:
            await self.meter.settle(self.permit, NOTHING)
            return
        came = outcome if isinstance(outcome, BaseException) else [outcome]
        await self.meter.end_call(self.id, came)


def _priced(permit: Permit, reported: Tokens, cost: float) -> TokenCount:
    """What a call used, with its cost, which may be unknown."""
    is_priced = permit.call.price is not None
    return TokenCount(
        calls=1,
        **reported._asdict(),
        known_cost=cost if is_priced else 0.0,
        unpriced_calls=0 if is_priced else 1,
    )


def _came(outcome: LLMResult | BaseException) -> Sequence[BaseMessage] | BaseException:
    return outcome if isinstance(outcome, BaseException) else replies_in(outcome)


def _request(serialized: dict[str, Any] | None, said: Said, options: dict[str, Any]) -> Request:
    """Read a call from LangChain's callback: the messages of a chat model, else plain texts."""
    messages = ([HumanMessage(each)] if isinstance(each, str) else each for each in said)
    return announced(serialized, [*chain.from_iterable(messages)], options)
