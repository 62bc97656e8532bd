"""Reserves the model calls of one node or try, counts them, and stops what would be too much."""

import asyncio
import inspect
import logging
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Coroutine,
    Iterable,
    Mapping,
    Sequence,
)
from concurrent.futures import Future
from contextlib import asynccontextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import chain
from types import TracebackType
from typing import Any, Self, TypeVar
from uuid import UUID

from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.outputs import ChatGenerationChunk, GenerationChunk, LLMResult

from replan.errors import LimitReachedError, UnpricedModelError
from replan.nodes.charging import (
    announced,
    charged_for_error,
    charged_for_reply,
    reported_tokens,
)
from replan.ports.account import Account
from replan.ports.asking import Ask, Permit, Scope
from replan.ports.chat import Allowance, Request, well_formed
from replan.ports.journal import Spending
from replan.ports.prices import price_of
from replan.ports.request_size import likely_tokens, most_tokens
from replan.ports.specialist import TEXT_SHOWN
from replan.ports.stopwatch import Stopwatch
from replan.state.limits import Price
from replan.state.usage import TokenCount

T = TypeVar("T")


class _WithoutMeters(logging.Filter):
    """Leaves out that a meter raised: it does so to stop a call, and that is heard anyway."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not any(str(arg) == Meter.__name__ for arg in record.args or ())


# LangChain logs an exception of a callback as a warning also where the callback asks to be heard.
logging.getLogger("langchain_core.callbacks.manager").addFilter(_WithoutMeters())


@dataclass
class _Handed:
    """A permit that was taken before its call.

    The first call that begins inside is the one; any other is a part of it.
    """

    meter: "Meter"
    permit: Permit
    is_used: bool = False


_handed: ContextVar[tuple[_Handed, ...]] = ContextVar("replan_permits", default=())


class _Either:
    """A callback that is asynchronous for asynchronous code, and synchronous for all other.

    LangChain looks a callback up where it calls it. In synchronous code it would run one that is
    asynchronous on the side, and drop what it raises; in asynchronous code one that is synchronous
    could wait for nothing.
    """

    def __init__(self, awaited: Callable[..., Any], plain: Callable[..., Any]) -> None:
        self._awaited = awaited
        self._plain = plain

    def __get__(self, meter: Any, owner: type | None = None) -> Any:
        frame = inspect.currentframe()
        caller = frame and frame.f_back
        is_awaited = caller is None or bool(caller.f_code.co_flags & inspect.CO_COROUTINE)
        return (self._awaited if is_awaited else self._plain).__get__(meter, owner)


class Meter(AsyncCallbackHandler, Allowance):
    """A LangChain callback that goes wherever the caller's config goes, also into tool loops.

    What it counts and charges happens on the event loop that made it, wherever a call is made: on
    that loop, on another one, or in a thread. Leaving it as a context ends it: what is not settled
    then stays charged in full, and a thread that was given up makes no further call.

    Attributes:
        count: What was used so far.
        waiting: How long it has waited for room that others hold.
        refused: The first limit that kept a call from being made, or none.
    """

    # An error raised here must stop the call instead of being logged.
    raise_error = True
    # Else LangChain makes a task of it for each token.
    run_inline = True

    def __init__(
        self,
        account: Account,
        scopes: Sequence[Scope],
        *,
        new_id: Callable[[], str],
        prices: Mapping[str, Price] | None = None,
        on_token: Callable[[str], None] | None = None,
    ) -> None:
        """Count for a run.

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
        self._account = account
        self._new_id = new_id
        self._prices = prices or {}
        self._on_token = on_token
        self._has_spoken = False
        self._loop = asyncio.get_running_loop()
        self._is_over = False
        self._calls: dict[UUID, Permit] = {}
        self._counts: dict[UUID, list[TokenCount]] = {}
        self._abroad: set[asyncio.Task[Any] | None] = set()
        self._written: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        await self._account.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._is_over = True
        for task in self._abroad:
            if task is not None:
                task.cancel()
        for permit in self._calls.values():
            self._account.give_up(permit)
            self.count += TokenCount(cost=permit.reservation.amount.cost)
        self._calls.clear()
        if self._written is not None:
            await self._written

    @property
    def hears_tokens(self) -> bool:
        """Whether a reply is to be streamed for it."""
        return self._on_token is not None

    @asynccontextmanager
    async def allowed(self, request: Request) -> AsyncGenerator[int | None]:
        """Allow the one call that is made inside; see `Allowance`."""
        permit = await self._take(self._ask(request))
        handed = _Handed(self, permit)
        token = _handed.set((*_handed.get(), handed))
        try:
            yield permit.most_output
        finally:
            _handed.reset(token)
            if not handed.is_used:
                # It was not made after all.
                await self._account.settle(permit, Spending())

    async def _chat_starts(
        self, serialized: dict[str, Any], messages: list[list[BaseMessage]], **given: Any
    ) -> None:
        """Reserve a call before it is made.

        Raises:
            LimitReachedError: There is no room for it.
            UnpricedModelError: Money is bound, and the model has no price.
        """
        permit = self._handed_over()
        if permit is None:
            call = self._announced(serialized, chain.from_iterable(messages), given)
            await self._at_home(lambda: self._begin(*call))
        else:
            self._note(given["run_id"], permit)

    def _chat_starts_now(
        self, serialized: dict[str, Any], messages: list[list[BaseMessage]], **given: Any
    ) -> None:
        self._begin_now(*self._announced(serialized, chain.from_iterable(messages), given))

    async def _text_starts(
        self, serialized: dict[str, Any], prompts: list[str], **given: Any
    ) -> None:
        """Reserve a call of a model that takes plain text."""
        said = [HumanMessage(prompt) for prompt in prompts]
        call = self._announced(serialized, said, given)
        await self._at_home(lambda: self._begin(*call))

    def _text_starts_now(
        self, serialized: dict[str, Any], prompts: list[str], **given: Any
    ) -> None:
        said = [HumanMessage(prompt) for prompt in prompts]
        self._begin_now(*self._announced(serialized, said, given))

    async def _ends(self, came: LLMResult | BaseException, *, run_id: UUID, **given: Any) -> None:
        """Settle a call.

        By the tokens that its server reported, else by the bytes of its reply; one that broke off
        in full, unless its server surely did nothing.
        """
        if run_id in self._calls:
            await self._at_home(lambda: self._end(run_id, came))

    def _ends_now(self, came: LLMResult | BaseException, *, run_id: UUID, **given: Any) -> None:
        if run_id not in self._calls:
            return
        if not self._is_home:
            self._called_home(lambda: self._end(run_id, came)).result()
            return
        permit = self._calls.pop(run_id)
        spending, counted = self._spent(run_id, permit, came)
        self._account.settle_now(permit, spending, counted)
        self._later(lambda: self._account.record_settled(permit, spending))

    on_chat_model_start: Any = _Either(_chat_starts, _chat_starts_now)
    on_llm_start: Any = _Either(_text_starts, _text_starts_now)
    on_llm_end: Any = _Either(_ends, _ends_now)
    on_llm_error: Any = _Either(_ends, _ends_now)

    async def on_llm_new_token(
        self,
        token: str | list[str | dict[str, Any]],
        *,
        chunk: GenerationChunk | ChatGenerationChunk | None = None,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        **kwargs: Any,
    ) -> None:
        """Pass a piece of text on; of a piece that is more than text, its text."""
        if isinstance(chunk, ChatGenerationChunk):
            self._note_count(run_id, chunk)
        if self._on_token is None:
            return
        if not isinstance(token, str) and isinstance(chunk, ChatGenerationChunk):
            token = chunk.message.text
        if isinstance(token, str) and token:
            self._has_spoken = True
            self._on_token(well_formed(token))

    def _note_count(self, run_id: UUID, chunk: ChatGenerationChunk) -> None:
        """Keep what a piece reports: some servers report with each what the reply took so far."""
        if getattr(chunk.message, "usage_metadata", None):
            self._counts.setdefault(run_id, []).append(reported_tokens(chunk.message))

    async def on_custom_event(
        self,
        name: str,
        data: Any,
        *,
        run_id: UUID,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Pass on what no model said; the words of models come by themselves."""
        if name == TEXT_SHOWN and self._on_token is not None and not self._has_spoken:
            self._on_token(str(data))

    def _begin_now(self, run_id: UUID, ask: Ask) -> None:
        if not self._is_home:
            self._called_home(lambda: self._begin(run_id, ask)).result()
            return
        # The loop stands still while such a call is made: nothing can be waited for or written.
        self._check_time()
        try:
            permit = self._account.take_now(ask)
        except LimitReachedError as error:
            self.refused = self.refused or error
            raise
        self._later(lambda: self._account.record(permit))
        self._note(run_id, permit)

    async def _begin(self, run_id: UUID, ask: Ask) -> None:
        self._note(run_id, await self._take(ask))

    def _note(self, run_id: UUID, permit: Permit) -> None:
        self._calls[run_id] = permit
        self.count += TokenCount(calls=1)

    async def _take(self, ask: Ask) -> Permit:
        self._check_time()
        # A try that has calls on their way waits for itself, too.
        with nullcontext() if self._calls else self.waiting.running():
            try:
                permit = await self._account.take(ask)
            except LimitReachedError as error:
                self.refused = self.refused or error
                raise
        if self._is_over:
            # The try ended while this call was asking: what comes now, nobody would count.
            await self._account.settle(permit, Spending())
        self._check_time()
        return permit

    def _check_time(self) -> None:
        if self._is_over:
            raise RuntimeError("the try that this call belongs to is over")

    async def _end(self, run_id: UUID, came: LLMResult | BaseException) -> None:
        permit = self._calls.pop(run_id, None)
        if permit is not None:
            await self._account.settle(permit, *self._spent(run_id, permit, came))

    def _spent(
        self, run_id: UUID, permit: Permit, came: LLMResult | BaseException
    ) -> tuple[Spending, tuple[int, int] | None]:
        """Count what came of a call: what is charged for it, and what its server counted."""
        counts = self._counts.pop(run_id, ())
        if isinstance(came, BaseException):
            spent = charged_for_error(permit, came)
            self.count += TokenCount(cost=spent.cost)
            return spent, None
        spent, reported = charged_for_reply(permit, came, counts)
        self.count += reported.replace(cost=spent.cost)
        counted = (reported.input_tokens, reported.output_tokens)
        return spent, counted if any(counted) else None

    def _handed_over(self) -> Permit | None:
        for handed in _handed.get():
            if handed.meter is self and not handed.is_used:
                handed.is_used = True
                return handed.permit
        return None

    def _announced(
        self, serialized: dict[str, Any] | None, said: Iterable[BaseMessage], given: dict[str, Any]
    ) -> tuple[UUID, Ask]:
        """Read what LangChain says of a call that is about to be made."""
        return given["run_id"], self._ask(announced(serialized, list(said), given))

    def _ask(self, request: Request) -> Ask:
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
        )

    @property
    def _is_home(self) -> bool:
        """Whether this is the event loop that made the meter."""
        try:
            return asyncio.get_running_loop() is self._loop
        except RuntimeError:
            return False

    async def _at_home(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        return await (work() if self._is_home else asyncio.wrap_future(self._called_home(work)))

    def _called_home(self, work: Callable[[], Coroutine[Any, Any, T]]) -> Future[T]:
        async def at_home() -> T:
            task = asyncio.current_task()
            self._abroad.add(task)
            try:
                return await work()
            finally:
                self._abroad.discard(task)

        going = at_home()
        try:
            return asyncio.run_coroutine_threadsafe(going, self._loop)
        except RuntimeError:
            # The loop is closed: a thread that was given up is still at it.
            going.close()
            raise

    def _later(self, write: Callable[[], Awaitable[None]]) -> None:
        """Write as soon as the loop runs again, one after the other."""
        before = self._written

        async def in_turn() -> None:
            if before is not None:
                await before
            await write()

        self._written = self._loop.create_task(in_turn())
