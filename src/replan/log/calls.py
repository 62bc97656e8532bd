"""What the calls of models in a run took: a pure fold of its events."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from replan.log.events.types import Event, MemorySummary, ModelCompleted, ModelInvoked
from replan.state.usage import CUT_OFF, TokenCount, Usage, sums_of

if TYPE_CHECKING:
    from replan.log.amounts import Spending


class Calls(TokenCount):
    """What calls of models took, also those of which no count or no end is known.

    Attributes:
        uncounted_calls: Those that were charged without a count of their tokens, since they were
            cut off: in full.
        uncounted_cost: What of `known_cost` was charged for them: they cost that at most.
        uncounted_tokens: What was charged, in addition to `total_tokens`, for calls without a
            count.
        unfinished_calls: Those without an end, which are not among `calls`: still at work, or cut
            off by a kill or a stop. What they cost is not in `known_cost`.
        unfinished_cost: What was charged for them: they cost that at most.
        seconds: How long the calls took.
    """

    uncounted_calls: int = 0
    uncounted_cost: float = 0.0
    uncounted_tokens: int = 0
    unfinished_calls: int = 0
    unfinished_cost: float = 0.0
    seconds: float = 0.0


def with_usage(calls: Calls, usage: Usage) -> Calls:
    """Return what the state of a run counted, where its events do not tell of all calls.

    Those of an imported run do not, and those of a run that a graph called by itself worked on.
    """
    counted = sums_of(count for name, count in usage.by.items() if name != CUT_OFF)
    return calls.replace(**counted) if counted["calls"] > calls.calls else calls


def with_charged(calls: Calls, charged: Spending, reserved: Spending) -> Calls:
    """Return all that was charged.

    Args:
        calls: The calls of which events tell, or the state.
        charged: What was charged in all.
        reserved: What of it is reserved for calls that have no end. All else has one, whether an
            event tells of it or not.
    """
    unfinished = max(calls.unfinished_calls, reserved.calls)
    untold = max(0, charged.calls - calls.calls - unfinished)
    has_any = unfinished or untold or calls.uncounted_calls
    # Sums of the same amounts in another order differ in their last digits.
    more = max(0.0, round(charged.cost - calls.known_cost, 12))
    unfinished_cost = min(more, reserved.cost) if untold else more
    return calls.replace(
        calls=calls.calls + untold,
        known_cost=calls.known_cost + (more - unfinished_cost if untold else 0.0),
        unfinished_calls=unfinished,
        unfinished_cost=unfinished_cost if unfinished else 0.0,
        uncounted_tokens=max(0, charged.tokens - calls.total_tokens) if has_any else 0,
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
    return sum_of([*calls, Calls(unfinished_calls=len(began - ended))])


def _taken(event: ModelCompleted | MemorySummary, number: int) -> Calls:
    is_uncounted = event.cost and event.input_tokens is None and event.output_tokens is None
    return Calls(
        calls=number,
        input_tokens=event.input_tokens or 0,
        output_tokens=event.output_tokens or 0,
        cached_tokens=event.cached_tokens if isinstance(event, ModelCompleted) else 0,
        known_cost=event.cost or 0.0,
        unpriced_calls=1 if event.cost is None else 0,
        uncounted_calls=1 if is_uncounted else 0,
        uncounted_cost=(event.cost or 0.0) if is_uncounted else 0.0,
        seconds=event.seconds,
    )


def sum_of(calls: Iterable[Calls]) -> Calls:
    """What all of them took together."""
    each = list(calls)
    return Calls(**{name: sum(getattr(one, name) for one in each) for name in Calls.model_fields})
