"""How much a call may reserve of what is left: pure arithmetic, for one call at a time.

Where there is room, a call reserves the most that it can use, so that nothing goes past a limit
whatever its server does. Where room is short, it waits for calls that are on their way. Only when
nothing is on its way any more does it get what is left, judged by what requests were counted as so
far; what it can then go past the limit by is the error of that judgement.
"""

import math
from asyncio import AbstractEventLoop
from collections.abc import Sequence
from dataclasses import dataclass

from replan.errors import LimitReachedError
from replan.ports.journal import Reservation, Spending
from replan.spending.scopes import Scope
from replan.state.limits import Price

LEAST_REPLY = 256
"""Tokens for its reply that a call waits for in any case, as long as others can make room."""

USUAL = 2
"""So many times the longest reply so far it waits for, too."""

BARE_REPLY = 64
"""Tokens for its reply without which a call is not worth its money."""

LONG_REPLY = 1_024
"""Tokens for its reply with which it is, whatever the longest one was."""

SHARE = 4
"""While others want room too, a call takes one such part of it for its reply."""

MARGIN = 1.25
"""What the tokens of a request may grow by beside the likely ones, where they were more."""

# Sums of prices are not exact, and must not come out above a limit by their last bit.
_EXACT = 1 - 1e-9


@dataclass(frozen=True, kw_only=True, slots=True)
class Ask:
    """A call that wants to be made.

    Attributes:
        id: Unique.
        run_id: The run.
        model: The model's name.
        scopes: What the call is charged to.
        input_tokens: Tokens of its request, at most.
        likely_tokens: Tokens of its request as far as one can judge; no more than that.
        output_tokens: Tokens of its reply, at most, if there is room.
        cuttable: Whether the server can be told to stop earlier.
        price: What it costs; none: nothing is known, and nothing bounds it.
        part_of: Calls that are on their way, and that this one is made inside of.
        loop: The event loop that must turn for it to end; none where a thread waits for its reply.
    """

    id: str
    run_id: str
    model: str
    scopes: Sequence[Scope]
    input_tokens: int
    output_tokens: int
    likely_tokens: int
    cuttable: bool = False
    price: Price | None = None
    part_of: frozenset[str] = frozenset()
    loop: AbstractEventLoop | None = None

    @property
    def limited(self) -> list[Scope]:
        return [scope for scope in self.scopes if scope.bounds_amounts]

    def cost(self, input_tokens: float, output_tokens: float) -> float:
        return 0.0 if self.price is None else self.price.of(input_tokens, output_tokens)


@dataclass(frozen=True, slots=True)
class Permit:
    """Leave to make a call.

    Attributes:
        ask: What was asked for.
        reservation: What is charged until it is settled.
        most_output: Tokens that its reply may have; none where neither tokens nor money are bound.
    """

    ask: Ask
    reservation: Reservation
    most_output: int | None


@dataclass
class Seen:
    """What a model's calls were counted as so far.

    Attributes:
        ratio: The most tokens for each that a request could have.
        likely: The most tokens for each that a request was likely to have.
        over: The most tokens for each that a reply was allowed to have.
        largest: The longest reply.
    """

    ratio: float = 0.0
    likely: float = 0.0
    over: float = 1.0
    largest: int = 0

    def add(self, permit: Permit, input_tokens: int, output_tokens: int) -> None:
        self.ratio = max(self.ratio, input_tokens / permit.ask.input_tokens)
        self.likely = max(self.likely, input_tokens / permit.ask.likely_tokens)
        self.largest = max(self.largest, output_tokens)
        if permit.most_output and permit.ask.cuttable:
            self.over = max(self.over, output_tokens / permit.most_output)


@dataclass(frozen=True)
class Room:
    """What a scope that bounds tokens or money has left.

    Attributes:
        scope: The scope.
        tokens: Tokens that are not charged.
        cost: Money that is not charged.
        tokens_later: Tokens, if all calls on their way used nothing.
        cost_later: Money, if all calls on their way used nothing.
    """

    scope: Scope
    tokens: float
    cost: float
    tokens_later: float
    cost_later: float

    @property
    def is_awaited(self) -> bool:
        return self.tokens_later > self.tokens or self.cost_later > self.cost

    def output(self, ask: Ask, input_tokens: float, *, later: bool = False) -> float:
        """Tokens of a reply that there is room for beside a request."""
        tokens = (self.tokens_later if later else self.tokens) - input_tokens
        money = (self.cost_later if later else self.cost) - ask.cost(input_tokens, 0)
        each = ask.cost(0, 1)
        if each:
            return min(tokens, money / each)
        return tokens if money >= 0 else -1.0

    def reached(self, ask: Ask) -> LimitReachedError:
        """Name the bound that has less room for such a call."""
        each = ask.cost(1, 1)
        is_money = each and self.cost_later / each < self.tokens_later
        return self.scope.reached("cost" if is_money else "tokens")


@dataclass(frozen=True)
class Blocked:
    """A call has to wait, and so has everyone behind it who wants the same.

    Attributes:
        tag: The scope that has no room, or the model that nothing is known of yet.
        error: What to say to somebody who cannot wait.
    """

    tag: str
    error: LimitReachedError


Offer = Permit | LimitReachedError | Blocked


def unbounded(ask: Ask) -> Permit:
    """Let a call be made whose tokens and money nobody bounds."""
    return _permit(ask, ask.input_tokens, ask.output_tokens, None)


def fit(ask: Ask, rooms: Sequence[Room], seen: Seen | None, *, crowded: bool) -> Offer:
    """Fit a call into the room that there is.

    Args:
        ask: The call.
        rooms: The room of every scope that bounds tokens or money; at least one.
        seen: What is known of the model's calls; none if nothing is.
        crowded: Whether others want the same room.
    """
    known = seen or Seen()
    request = math.ceil(ask.input_tokens * max(1.0, known.ratio))
    least = _usual(ask, seen)
    want = ask.output_tokens if ask.cuttable else least
    room = min(room.output(ask, request) for room in rooms) / known.over
    if room >= least:
        output = int(min(want, max(least, room / SHARE) if crowded else room))
        return _permit(ask, request, math.ceil(output * known.over), output)
    guessed = min(request, math.ceil(ask.likely_tokens * max(1.0, MARGIN * known.likely)))
    bare = min(want, max(BARE_REPLY, min(known.largest, LONG_REPLY)))
    for one in rooms:
        if one.output(ask, guessed, later=True) < bare:
            return one.reached(ask)
    for one in rooms:
        if one.is_awaited and one.output(ask, request) / known.over < least:
            return Blocked(one.scope.name, one.reached(ask))
    # Nothing will make room, so the call gets all that is left.
    output = int(min(want, *(one.output(ask, guessed) for one in rooms)))
    return _trimmed(_permit(ask, request, output, output), rooms)


def _usual(ask: Ask, seen: Seen | None) -> int:
    """Tokens that a reply should have room for, by what replies were like so far."""
    if seen is None:
        return ask.output_tokens
    return min(ask.output_tokens, max(LEAST_REPLY, USUAL * seen.largest))


def _permit(ask: Ask, input_tokens: int, charged: int, output: int | None) -> Permit:
    amount = Spending(calls=1, tokens=input_tokens + charged, cost=ask.cost(input_tokens, charged))
    return Permit(ask, Reservation(id=ask.id, run_id=ask.run_id, amount=amount), output)


def _trimmed(permit: Permit, rooms: Sequence[Room]) -> Permit:
    """Reserve no more than is left."""
    amount = permit.reservation.amount
    tokens = int(min(amount.tokens, *(room.tokens for room in rooms)))
    cost = min(amount.cost, *(room.cost * _EXACT for room in rooms))
    reservation = permit.reservation.replace(amount=amount.replace(tokens=tokens, cost=cost))
    return Permit(permit.ask, reservation, permit.most_output)
