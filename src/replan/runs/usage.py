"""What the calls of models of a run, or of a step, took, as every door shows it."""

from typing import Self

from pydantic import AliasChoices, ConfigDict, Field

from replan.base.values import Value
from replan.log.calls import Calls


class Usage(Value):
    """What the calls of models took until now.

    Attributes:
        calls: The calls that came to an end.
        input_tokens: The counted tokens that models read.
        output_tokens: The counted tokens that models wrote.
        cached_tokens: Those of the input tokens that came from a cache of the provider.
        tokens: Both.
        cost: Money in the currency of the prices; null where a price is not known.
        currency: What the team calls that currency; empty where it does not.
        uncounted_cost: The part of it for calls that were charged in full, without a count.
        unfinished_calls: Calls that continue, or were cut off.
        unfinished_cost: What is charged for them, in addition to `cost`.
    """

    model_config = ConfigDict(from_attributes=True)

    calls: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    tokens: int = Field(validation_alias=AliasChoices("tokens", "total_tokens"))
    cost: float | None
    currency: str = ""
    uncounted_cost: float
    unfinished_calls: int
    unfinished_cost: float

    @classmethod
    def of(cls, calls: Calls, currency: str = "") -> Self:
        """Select what is shown of calls."""
        return cls.model_validate(calls).replace(currency=currency)
