"""What the calls of models in a run took: a pure fold of its events."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Self

from replan.events.types import Event, MemorySummary, ModelCompleted, ModelInvoked
from replan.state.usage import CUT_OFF, TokenCount, Usage

if TYPE_CHECKING:
    from replan.log.amounts import Spending


@dataclass(frozen=True, kw_only=True)
class Calls:
    """What calls of models took."""

    number: int = 0  # the calls that came to an end
    tokens: int = 0  # tokens in and out, as far as they were counted
    output_tokens: int = 0  # those of them that models wrote
    cached_tokens: int = 0  # those of them that came from a provider's cache
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
            output_tokens=usage.output_tokens,
            cached_tokens=usage.cached_tokens,
            known_cost=usage.known_cost,
            unpriced=usage.unpriced_calls,
        )

    @property
    def input_tokens(self) -> int:
        """The counted tokens that models read."""
        return self.tokens - self.output_tokens

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


def with_counted(usage: Usage, calls: Calls) -> Usage:
    """Return the usage that a state has, with the tokens that only a log has.

    An attempt that was killed returned nothing to the state; its calls were counted.
    """
    lost = TokenCount(
        input_tokens=max(0, calls.input_tokens - usage.input_tokens),
        output_tokens=max(0, calls.output_tokens - usage.output_tokens),
        cached_tokens=max(0, calls.cached_tokens - usage.cached_tokens),
    )
    return usage.plus((CUT_OFF, lost))


def calls_of(events: Iterable[Event]) -> Calls:
    """What the calls of models among events took."""
    began, ended, calls = set[str](), set[str](), list[Calls]()
    for event in events:
        if isinstance(event, ModelInvoked):
            began.add(event.call)
        elif isinstance(event, ModelCompleted):
            ended.add(event.call)
            calls.append(_taken(event, 1))
        # The one event of a summary has all calls that it took, if it took one.
        elif isinstance(event, MemorySummary) and event.calls:
            calls.append(_taken(event, event.calls))
    return replace(sum_of(calls), unfinished=len(began - ended))


def _taken(event: ModelCompleted | MemorySummary, number: int) -> Calls:
    is_uncounted = event.cost and event.input_tokens is None and event.output_tokens is None
    return Calls(
        number=number,
        tokens=(event.input_tokens or 0) + (event.output_tokens or 0),
        output_tokens=event.output_tokens or 0,
        cached_tokens=event.cached_tokens if isinstance(event, ModelCompleted) else 0,
        known_cost=event.cost or 0.0,
        unpriced=1 if event.cost is None else 0,
        uncounted=1 if is_uncounted else 0,
        uncounted_cost=(event.cost or 0.0) if is_uncounted else 0.0,
        seconds=event.seconds,
    )


def sum_of(calls: Iterable[Calls]) -> Calls:
    """What all of them took together."""
    each = list(calls)
    return Calls(**{f.name: sum(getattr(one, f.name) for one in each) for f in fields(Calls)})
