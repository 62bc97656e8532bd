"""What a call or a try is charged to: the run, and the budgets of its specialist and its step."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol

from replan.errors import UnpricedModelError
from replan.spending.account import RUN
from replan.spending.permits import Scope
from replan.state.limits import (
    CLOSING_TOKENS,
    LEAST_CLOSING_REPLY,
    LEAST_CLOSING_REQUEST,
    Budget,
    Limits,
    Price,
)

_UNBOUNDED = Budget()


class Terms(Protocol):
    """What models cost and specialists may spend; `Services` has them."""

    @property
    def prices(self) -> Mapping[str, Price]:
        """What models cost, by name."""
        ...

    @property
    def unpriced(self) -> Mapping[str, str]:
        """For each configured model without a price, the field that it stands in."""
        ...

    @property
    def budgets(self) -> Mapping[str, Budget]:
        """What a specialist may spend in one run, by its name."""
        ...


def run_scope(limits: Limits, terms: Terms, *, closing: bool) -> Scope:
    """The run; a call that is not `closing` leaves the closing reserve to one that is."""
    if closing:
        return Scope(RUN, limits.whole)
    kept = limits.kept
    if terms.prices:
        prices = terms.prices.values()
        most = max(price.of(CLOSING_TOKENS, CLOSING_TOKENS) for price in prices)
        least = max(price.of(LEAST_CLOSING_REQUEST, LEAST_CLOSING_REPLY) for price in prices)
        least = min(least, (limits.max_cost or 0.0) / 2)
        kept = replace(kept, cost=min(most, max(kept.cost, least)))
    return Scope(RUN, limits.whole, kept)


def step_scopes(limits: Limits, terms: Terms, specialist: str, step_id: int) -> list[Scope]:
    """The run, and what else a step at a specialist is charged to."""
    scopes = [run_scope(limits, terms, closing=False)]
    if (budget := terms.budgets.get(specialist, _UNBOUNDED)) != _UNBOUNDED:
        scopes.append(Scope(f"specialist/{specialist}", budget))
    if limits.per_step != _UNBOUNDED:
        scopes.append(Scope(f"step/{step_id}", limits.per_step))
    return scopes


def check_prices(limits: Limits, terms: Terms) -> None:
    """Refuse to bound money that nobody can count.

    Raises:
        UnpricedModelError: A configured model has no price, and some `max_cost` is set.
    """
    budgets = (limits.whole, limits.per_step, *terms.budgets.values())
    if any(budget.max_cost is not None for budget in budgets):
        for field, model in terms.unpriced.items():
            raise UnpricedModelError(field, model)
