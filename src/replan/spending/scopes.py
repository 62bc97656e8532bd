"""What a call or an attempt is charged to: the run, and the budgets inside it; and its price."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from replan.errors import LimitReachedError, UnpricedModelError
from replan.log.amounts import Bound
from replan.ports.built_in import built_in_models
from replan.state.limits import (
    CLOSING_TOKENS,
    LEAST_CLOSING_REPLY,
    LEAST_CLOSING_REQUEST,
    Budget,
    ClosingReserve,
    Limits,
    Price,
)

RUN = "run"  # the scope of a whole run

AMOUNTS = ("tokens", "cost")
"""What of a call is known only when it has ended."""

_FREE = Price(input=0, output=0)
_LIMITS = {
    "calls": "max_model_calls",
    "tokens": "max_tokens",
    "cost": "max_cost",
    "seconds": "max_seconds",
}


@dataclass(frozen=True, slots=True)
class Scope:
    """A part of a run that has bounds of its own."""

    name: str  # `run`, `specialist/<name>` or `step/<id>`
    budget: Budget
    # What of that is kept back for others.
    kept: ClosingReserve = field(default_factory=ClosingReserve)

    @property
    def bound(self) -> Bound:
        budget = self.budget
        return Bound(
            scope=self.name,
            calls=None if budget.max_model_calls is None else int(self.most("calls")),
            tokens=None if budget.max_tokens is None else int(self.most("tokens")),
            cost=None if budget.max_cost is None else self.most("cost"),
        )

    @property
    def bounds_amounts(self) -> bool:
        """Whether it bounds tokens or money, which are unknown before a call."""
        return self.budget.max_tokens is not None or self.budget.max_cost is not None

    def limit(self, kind: str) -> tuple[str, float | None]:
        """The limit of `calls`, `tokens`, `cost` or `seconds`, and its value."""
        return _LIMITS[kind], getattr(self.budget, _LIMITS[kind])

    def most(self, kind: str) -> float:
        """The maximum of `calls`, `tokens`, `cost` or `seconds` that may be charged."""
        limit = getattr(self.budget, _LIMITS[kind])
        return math.inf if limit is None else max(0.0, limit - getattr(self.kept, kind))

    def reached(self, kind: str, spent: float = 0, wants: float = 0) -> LimitReachedError:
        """The error for a call without room; `spent` is charged already, `wants` is needed."""
        name, kept = _LIMITS[kind], getattr(self.kept, kind)
        value = getattr(self.budget, name)
        return LimitReachedError(name, value, self.name, spent=spent, wants=wants, kept=kept)


class Terms(Protocol):
    """What models cost and specialists may spend; `Services` has them."""

    @property
    def prices(self) -> Mapping[str, Price]: ...

    @property
    def unpriced(self) -> Mapping[str, str]: ...

    @property
    def budgets(self) -> Mapping[str, Budget]: ...


def run_scope(limits: Limits, terms: Terms, *, closing: bool) -> Scope:
    """The run; only a `closing` call may use the closing reserve."""
    if closing:
        return Scope(RUN, limits.whole)
    kept = limits.kept
    if prices := [each for each in terms.prices.values() if each is not _FREE]:
        most = max(price.of(CLOSING_TOKENS, CLOSING_TOKENS) for price in prices)
        least = max(price.of(LEAST_CLOSING_REQUEST, LEAST_CLOSING_REPLY) for price in prices)
        least = min(least, (limits.max_cost or 0.0) / 2)
        kept = replace(kept, cost=min(most, max(kept.cost, least)))
    return Scope(RUN, limits.whole, kept)


def step_scopes(limits: Limits, terms: Terms, specialist: str, step_id: int) -> list[Scope]:
    """The run, and the other scopes that a step of a specialist is charged to."""
    scopes = [run_scope(limits, terms, closing=False)]
    if (budget := terms.budgets.get(specialist)) is not None and budget.is_bound:
        scopes.append(Scope(f"specialist/{specialist}", budget))
    if limits.per_step.is_bound:
        scopes.append(Scope(f"step/{step_id}", limits.per_step))
    return scopes


def check_prices(limits: Limits, terms: Terms) -> None:
    """Refuse a bound on money if a price is missing."""
    budgets = (limits.whole, limits.per_step, *terms.budgets.values())
    if any(budget.max_cost is not None for budget in budgets):
        for field, model in terms.unpriced.items():
            raise UnpricedModelError(field, model)


def price_of(names: Iterable[str], prices: Mapping[str, Price]) -> Price | None:
    """The price of a model, by the first of its names that has one; built-in ones are free."""
    return known_price(names, with_free_ones(prices))


def known_price(names: Iterable[str], prices: Mapping[str, Price]) -> Price | None:
    """The price under one of a model's names."""
    return next((prices[name] for name in names if name in prices), None)


def with_free_ones(prices: Mapping[str, Price]) -> Mapping[str, Price]:
    """Prices, and those of the built-in models, which cost nothing."""
    return {**dict.fromkeys(built_in_models(), _FREE), **prices}
