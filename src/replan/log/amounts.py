"""What calls may spend and did: reservations, and the bounds that refuse them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

ROUNDING = 1e-9  # sums of prices are not exact; this much above a bound is still within it

_KINDS: tuple[Literal["calls", "tokens", "cost"], ...] = ("calls", "tokens", "cost")


@dataclass(frozen=True, kw_only=True, slots=True)
class Spending:
    """An amount of the quantities that limits bound."""

    calls: int = 0
    tokens: int = 0  # tokens in and out
    cost: float = 0.0  # money, in the currency of the configured prices

    def __add__(self, other: "Spending") -> "Spending":
        return Spending(
            calls=self.calls + other.calls,
            tokens=self.tokens + other.tokens,
            cost=self.cost + other.cost,
        )

    def __sub__(self, part: "Spending") -> "Spending":
        """Take a part away; what rounding leaves of the last one is nothing."""
        cost = self.cost - part.cost
        return Spending(
            calls=self.calls - part.calls,
            tokens=self.tokens - part.tokens,
            cost=cost if abs(cost) > ROUNDING else 0.0,
        )

    def beyond(self, reserved: "Spending") -> "Spending":
        """What of it is more than was reserved."""
        tokens, cost = self.tokens - reserved.tokens, self.cost - reserved.cost
        if tokens <= 0 and cost <= ROUNDING:
            return NOTHING
        return Spending(tokens=max(0, tokens), cost=cost if cost > ROUNDING else 0.0)

    def as_json(self) -> dict[str, float]:
        """Return it as JSON."""
        return {"calls": self.calls, "tokens": self.tokens, "cost": self.cost}


NOTHING = Spending()


@dataclass(frozen=True, kw_only=True, slots=True)
class Bound:
    """The bounds of one scope of a run; None means unbounded."""

    scope: str  # `run`, `specialist/<name>` or `step/<id>`
    calls: int | None = None
    tokens: int | None = None
    cost: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Reservation:
    """What one model call may spend, as far as one can judge; charged before it is made."""

    id: str  # unique; made by who reserves
    run_id: str
    amount: Spending  # charged in full until the call is settled, and forever if it never is


class Charged(NamedTuple):
    """What is charged to a run."""

    spent: Mapping[str, Spending]  # by scope, open reservations in full
    open: frozenset[str]  # the ids of these reservations


@dataclass(frozen=True, kw_only=True, slots=True)
class Refused:
    """Why a reservation was not made."""

    scope: str  # the scope of the bound that has no room
    # Which amount has no room: `calls`, `tokens` or `cost`.
    kind: Literal["calls", "tokens", "cost"]


def first_refusal(bound: Bound, amount: Spending, charged: Spending) -> Refused | None:
    """Return the part of a bound that has no room for an amount; every log uses this rule."""
    for kind in _KINDS:
        most = getattr(bound, kind)
        if most is not None and getattr(charged, kind) + getattr(amount, kind) > most + ROUNDING:
            return Refused(scope=bound.scope, kind=kind)
    return None
