"""What the calls of models of a run, or of a step, took, as every door shows it."""

from typing import Self

from replan.log.calls import Calls
from replan.values import Value


class Usage(Value):
    """What the calls of models took until now.

    Attributes:
        calls: The calls that came to an end.
        input_tokens: The counted tokens that models read.
        output_tokens: The counted tokens that models wrote.
        cached_tokens: Those of the input tokens that came from a cache of the provider.
        tokens: Both.
        cost: Money in the currency of the prices; null where a price is not known.
        uncounted_cost: The part of it for calls that were charged in full, without a count.
        unfinished_calls: Calls that continue, or were cut off.
        unfinished_cost: What is charged for them, in addition to `cost`.
    """

    calls: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    tokens: int
    cost: float | None
    uncounted_cost: float
    unfinished_calls: int
    unfinished_cost: float

    @classmethod
    def of(cls, calls: Calls) -> Self:
        """Select what is shown of calls."""
        return cls(
            calls=calls.number,
            input_tokens=calls.input_tokens,
            output_tokens=calls.output_tokens,
            cached_tokens=calls.cached_tokens,
            tokens=calls.tokens,
            cost=calls.cost,
            uncounted_cost=calls.uncounted_cost,
            unfinished_calls=calls.unfinished,
            unfinished_cost=calls.unfinished_cost,
        )
