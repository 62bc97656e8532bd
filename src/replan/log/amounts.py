"""What calls may spend and did: reservations, and the bounds that refuse them."""

from typing import Literal

from pydantic import Field

from replan.plan.model import Value

ROUNDING = 1e-9  # sums of prices are not exact; this much above a bound is still within it


class Spending(Value):
    """An amount of the quantities that limits bound."""

    calls: int = Field(default=0, ge=0)
    tokens: int = Field(default=0, ge=0)  # tokens in and out
    cost: float = Field(default=0.0, ge=0)  # money, in the currency of the configured prices

    def __add__(self, other: "Spending") -> "Spending":
        return Spending(
            calls=self.calls + other.calls,
            tokens=self.tokens + other.tokens,
            cost=self.cost + other.cost,
        )


class Bound(Value):
    """The bounds of one scope of a run; None means unbounded."""

    scope: str  # `run`, `specialist/<name>` or `step/<id>`
    calls: int | None = None
    tokens: int | None = None
    cost: float | None = None


class Reservation(Value):
    """What one model call may spend at most, charged before it is made."""

    id: str  # unique; made by who reserves
    run_id: str
    amount: Spending  # charged in full until the call is settled, and forever if it never is


class Charged(Value):
    """What is charged to a scope of a run."""

    spent: Spending = Spending()  # all of it, reservations in full
    # What of it is reserved, by the ids of the reservations.
    reserved: dict[str, Spending] = Field(default_factory=dict[str, Spending])


class Refused(Value):
    """Why a reservation was not made."""

    scope: str  # the scope of the bound that has no room
    # Which amount has no room: `calls`, `tokens` or `cost`.
    kind: Literal["calls", "tokens", "cost"]


def first_refusal(bound: Bound, amount: Spending, charged: Spending) -> Refused | None:
    """Return the part of a bound that has no room for an amount; every log uses this rule."""
    for kind in ("calls", "tokens", "cost"):
        most = getattr(bound, kind)
        if most is not None and getattr(charged, kind) + getattr(amount, kind) > most + ROUNDING:
            return Refused(scope=bound.scope, kind=kind)
    return None
