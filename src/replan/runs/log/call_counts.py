"""What the calls of models in a run took: a pure fold of its events."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from replan.log.amounts import Spending
    from replan.runs.log.run_event import RunEvent
    from replan.state.usage import Usage

ANSWERED = ("model_completed", "memory_summary")  # the events with the usage of calls of models


@dataclass(frozen=True, kw_only=True)
class Calls:
    """What calls of models took."""

    number: int = 0  # the calls that came to an end
    tokens: int = 0  # tokens in and out, as far as they were counted
    known_cost: float = 0.0  # the cost of the calls that have a price, as it was charged
    unpriced: int = 0  # the calls whose cost is unknown
    # The calls that were charged without a count of their tokens: those that were cut off, in full.
    uncounted: int = 0
    uncounted_cost: float = 0.0  # what of `known_cost` was charged for them: they cost that at most
    # The calls without an end: still at work, or cut off by a kill or a stop. What they cost is not
    # in `known_cost`.
    unfinished: int = 0
    unfinished_cost: float = 0.0  # what was charged for them: they cost that at most
    # What was charged, in addition to `tokens`, for calls without a count.
    uncounted_tokens: int = 0
    seconds: float = 0.0  # how long the calls took

    @classmethod
    def of(cls, usage: Usage) -> Self:
        """What the state of a run has of them."""
        return cls(
            number=usage.calls,
            tokens=usage.total_tokens,
            known_cost=usage.known_cost,
            unpriced=usage.unpriced_calls,
        )

    @property
    def cost(self) -> float | None:
        """What they were charged; None where the cost of one is not known."""
        return None if self.unpriced else self.known_cost


def with_charged(calls: Calls, charged: Spending) -> Calls:
    """Return all that was charged: calls of which no event tells, yet or ever, have not ended."""
    unfinished = max(calls.unfinished, charged.calls - calls.number)
    has_any = unfinished or calls.uncounted
    # Sums of the same amounts in another order differ in their last digits.
    more = max(0.0, round(charged.cost - calls.known_cost, 12))
    return replace(
        calls,
        unfinished=unfinished,
        unfinished_cost=more if unfinished else 0.0,
        uncounted_tokens=max(0, charged.tokens - calls.tokens) if has_any else 0,
    )


def calls_of(events: Iterable[RunEvent]) -> Calls:
    """What the calls of models among events took."""
    told = list(events)
    ends: list[dict[str, Any]] = [e.details for e in told if e.type in ANSWERED]
    # The one event of a summary has all calls that it took, if it took one.
    answered = [each for each in ends if each.get("calls", 1)]
    costs: list[float | None] = [each.get("cost") for each in answered]
    counts = [
        each.get(name) or 0 for each in answered for name in ("input_tokens", "output_tokens")
    ]
    uncounted = [
        cost
        for each, cost in zip(answered, costs, strict=True)
        if cost and each.get("input_tokens") is None and each.get("output_tokens") is None
    ]
    began = {str(e.details.get("call")) for e in told if e.type == "model_invoked"}
    ended = {str(each.get("call")) for each in ends}
    return Calls(
        number=sum(each.get("calls", 1) for each in answered),
        tokens=sum(counts),
        known_cost=sum(cost for cost in costs if cost is not None),
        unpriced=costs.count(None),
        uncounted=len(uncounted),
        uncounted_cost=sum(uncounted),
        unfinished=len(began - ended),
        seconds=sum(each.get("seconds") or 0.0 for each in answered),
    )
