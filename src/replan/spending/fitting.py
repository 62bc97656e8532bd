"""The amount that a call may reserve: pure arithmetic, for one call at a time."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from replan.errors import LimitReachedError
from replan.log.amounts import NOTHING, Reservation, Spending
from replan.spending.scopes import Scope
from replan.state.limits import Price

LEAST_REPLY = 64  # tokens for its reply without which a call is not worth its money
ENOUGH = 1_024  # tokens for its reply that a call waits for while others may still make room
SHARE = 4  # while others are in flight, a call takes one part in this many of the free room


@dataclass(frozen=True, kw_only=True, slots=True)
class CallRequest:
    """A call that wants to be made."""

    id: str  # unique
    run_id: str
    model: str
    scopes: Sequence[Scope]  # what the call is charged to
    input_tokens: int  # tokens of its request, as far as one can judge
    output_tokens: int  # tokens of its reply, at most, if there is room
    price: Price | None = None  # what it costs; none: nothing is known, and nothing bounds it
    # Calls that are in flight, and that this one is made inside.
    part_of: frozenset[str] = frozenset()

    def cost(self, input_tokens: float, output_tokens: float) -> float:
        return 0.0 if self.price is None else self.price.of(input_tokens, output_tokens)


@dataclass(frozen=True, slots=True)
class Permit:
    """The permission to make a call."""

    call: CallRequest
    reservation: Reservation  # what is charged until it is settled
    # Tokens that its reply may have; none where neither tokens nor money are bound.
    most_output: int | None


def fit(
    call: CallRequest, charged: Mapping[str, Spending], crowded: Collection[str] = ()
) -> Permit | LimitReachedError:
    """Fit a call into what its scopes have left.

    Args:
        call: The call.
        charged: What each scope is charged with, reservations in full.
        crowded: The scopes in which other calls are in flight, which need room and will make some.
    """
    for scope in call.scopes:
        calls = charged.get(scope.name, NOTHING).calls
        if calls + 1 > scope.most("calls"):
            return scope.reached("calls", calls, 1)
    most, is_bounded = float(call.output_tokens), False
    for scope in call.scopes:
        if not scope.bounds_amounts:
            continue
        is_bounded, spent = True, charged.get(scope.name, NOTHING)
        room, kind = _room(scope, spent, call)
        is_crowded = scope.name in crowded
        least = min(call.output_tokens, ENOUGH if is_crowded else LEAST_REPLY)
        if room < least:
            return _refusal(scope, kind, spent, call, least)
        most = min(most, max(least, room / SHARE) if is_crowded else room)
    output = int(most)
    tokens, cost = call.input_tokens + output, call.cost(call.input_tokens, output)
    amount = Spending(calls=1, tokens=tokens, cost=cost)
    reservation = Reservation(id=call.id, run_id=call.run_id, amount=amount)
    return Permit(call, reservation, output if is_bounded else None)


def _room(scope: Scope, spent: Spending, call: CallRequest) -> tuple[float, str]:
    """The tokens of a reply that fit in addition to the request, and what bounds them."""
    tokens = scope.most("tokens") - spent.tokens - call.input_tokens
    money = scope.most("cost") - spent.cost - call.cost(call.input_tokens, 0)
    each = call.cost(0, 1)
    affordable = money / each if each else (math.inf if money >= 0 else -1.0)
    return (tokens, "tokens") if tokens <= affordable else (affordable, "cost")


def _refusal(
    scope: Scope, kind: str, spent: Spending, call: CallRequest, least: int
) -> LimitReachedError:
    if kind == "cost":
        return scope.reached("cost", spent.cost, call.cost(call.input_tokens, least))
    return scope.reached("tokens", spent.tokens, call.input_tokens + least)
