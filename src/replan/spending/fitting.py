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
    """A call that wants to be made."""

    id: str  # unique
    run_id: str
    model: str
    scopes: Sequence[Scope]  # what the call is charged to
    input_tokens: int  # tokens of its request, at most
    output_tokens: int  # tokens of its reply, at most, if there is room
    likely_tokens: int  # tokens of its request as far as one can judge; no more than that
    cuttable: bool = False  # whether the server can be told to stop earlier
    price: Price | None = None  # what it costs; none: nothing is known, and nothing bounds it
    # Calls that are on their way, and that this one is made inside of.
    part_of: frozenset[str] = frozenset()
    # The event loop that must turn for it to end; none where a thread waits for its reply.
    loop: AbstractEventLoop | None = None

    @property
    def limited(self) -> list[Scope]:
        return [scope for scope in self.scopes if scope.bounds_amounts]

    def cost(self, input_tokens: float, output_tokens: float) -> float:
        return 0.0 if self.price is None else self.price.of(input_tokens, output_tokens)


@dataclass(frozen=True, slots=True)
class Permit:
    """Leave to make a call."""

    ask: Ask
    reservation: Reservation  # what is charged until it is settled
    # Tokens that its reply may have; none where neither tokens nor money are bound.
    most_output: int | None


@dataclass
class Seen:
    """What a model's calls were counted as so far."""

    ratio: float = 0.0  # the most tokens for each that a request could have
    likely: float = 0.0  # the most tokens for each that a request was likely to have
    over: float = 1.0  # the most tokens for each that a reply was allowed to have
    largest: int = 0  # the longest reply

    def add(self, permit: Permit, input_tokens: int, output_tokens: int) -> None:
        self.ratio = max(self.ratio, input_tokens / permit.ask.input_tokens)
        self.likely = max(self.likely, input_tokens / permit.ask.likely_tokens)
        self.largest = max(self.largest, output_tokens)
        if permit.most_output and permit.ask.cuttable:
            self.over = max(self.over, output_tokens / permit.most_output)


@dataclass(frozen=True)
class Room:
    """What a scope that bounds tokens or money has left."""

    scope: Scope
    tokens: float  # tokens that are not charged
    cost: float  # money that is not charged
    tokens_later: float  # tokens, if all calls on their way used nothing
    cost_later: float  # money, if all calls on their way used nothing

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
    """A call has to wait, and so has everyone behind it who wants the same."""

    tag: str  # the scope that has no room, or the model that nothing is known of yet
    error: LimitReachedError  # what to say to somebody who cannot wait


Offer = Permit | LimitReachedError | Blocked


def unbounded(ask: Ask) -> Permit:
    """Let a call be made whose tokens and money nobody bounds."""
    return _permit(ask, ask.input_tokens, ask.output_tokens, None)


def fit(ask: Ask, rooms: Sequence[Room], seen: Seen | None, *, crowded: bool) -> Offer:
    """Fit a call into the room that there is; it is `crowded` where others want the same."""
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
