"""What a call or a try is charged to: the run, and the budgets of its specialist and its step."""

from dataclasses import replace

from replan.errors import UnpricedModelError
from replan.ports.account import RUN
from replan.ports.asking import Scope
from replan.services import Services
from replan.state.limits import (
    CLOSING_TOKENS,
    LEAST_CLOSING_REPLY,
    LEAST_CLOSING_REQUEST,
    Budget,
    Limits,
)

_UNBOUNDED = Budget()


def run_scope(limits: Limits, services: Services, *, closing: bool) -> Scope:
    """The run; a call that is not `closing` leaves the closing reserve to one that is."""
    if closing:
        return Scope(RUN, limits.whole)
    kept = limits.kept
    if services.prices:
        prices = services.prices.values()
        most = max(price.of(CLOSING_TOKENS, CLOSING_TOKENS) for price in prices)
        least = max(price.of(LEAST_CLOSING_REQUEST, LEAST_CLOSING_REPLY) for price in prices)
        least = min(least, (limits.max_cost or 0.0) / 2)
        kept = replace(kept, cost=min(most, max(kept.cost, least)))
    return Scope(RUN, limits.whole, kept)


def step_scopes(limits: Limits, services: Services, specialist: str, step_id: int) -> list[Scope]:
    """The run, and what else a step at a specialist is charged to."""
    scopes = [run_scope(limits, services, closing=False)]
    if (budget := services.budgets.get(specialist, _UNBOUNDED)) != _UNBOUNDED:
        scopes.append(Scope(f"specialist/{specialist}", budget))
    if limits.per_step != _UNBOUNDED:
        scopes.append(Scope(f"step/{step_id}", limits.per_step))
    return scopes


def check_prices(limits: Limits, services: Services) -> None:
    """Refuse to bound money that nobody can count.

    Raises:
        UnpricedModelError: A configured model has no price, and some `max_cost` is set.
    """
    budgets = (limits.whole, limits.per_step, *services.budgets.values())
    if any(budget.max_cost is not None for budget in budgets):
        for field, model in services.unpriced.items():
            raise UnpricedModelError(field, model)
