"""What a run has used: model calls, tokens and money, in all and by node or specialist."""

from collections.abc import Iterable
from operator import attrgetter
from typing import Any, NamedTuple, cast

from pydantic import Field, computed_field, model_validator

from replan.base.values import Value

CUT_OFF = "(cut off)"
"""The name under which calls are counted that were cut off, so their outcome is unknown."""


class Tokens(NamedTuple):
    """The tokens of one reply as its server reported them, else 0; see `TokenCount`."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0


class TokenCount(Value):
    """Model calls, their tokens as the servers reported them (else 0), and their cost.

    Attributes:
        calls: Model calls.
        input_tokens: Tokens that the models read.
        output_tokens: Tokens that the models wrote.
        cached_tokens: Those of the input tokens that came from a cache of the provider.
        known_cost: The cost of the calls whose model has a price.
        unpriced_calls: The number of calls with an unknown cost.
    """

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    known_cost: float = 0.0
    unpriced_calls: int = 0

    @computed_field
    @property
    def cost(self) -> float | None:
        """The cost of all calls; None if the cost of a call is unknown."""
        return None if self.unpriced_calls else self.known_cost

    @model_validator(mode="before")
    @classmethod
    def _without_cost(cls, count: object) -> object:
        """Take what was written out, the computed cost included."""
        if not isinstance(count, dict) or "cost" not in count or "known_cost" not in count:
            return cast("object", count)
        fields = cast("dict[str, Any]", count)
        return {name: value for name, value in fields.items() if name != "cost"}

    @property
    def total_tokens(self) -> int:
        """Tokens in and out."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: "TokenCount") -> "TokenCount":
        return total([self, other])


_NOTHING = TokenCount()
_figures = attrgetter(*TokenCount.model_fields)


def sums_of(counts: Iterable[TokenCount]) -> dict[str, Any]:
    """The sum of each field of some counts."""
    figures = zip(*map(_figures, (_NOTHING, *counts)), strict=True)
    return dict(zip(TokenCount.model_fields, map(sum, figures), strict=True))


def total(counts: Iterable[TokenCount]) -> TokenCount:
    """The sum of some counts; most are the only one of their kind."""
    filled = [count for count in counts if any(_figures(count))]
    return filled[0] if len(filled) == 1 else TokenCount(**sums_of(filled))


class Usage(TokenCount):
    """The usage of a run: the sum, and its parts.

    Calls that were cut off, by a kill or a stop, are charged too: under `CUT_OFF`.

    Attributes:
        by: The parts by node or specialist.
    """

    by: dict[str, TokenCount] = Field(default_factory=dict)

    def plus(self, *parts: tuple[str, TokenCount]) -> "Usage":
        """Add the usage of a node or specialist, under its name."""
        added = dict[str, list[TokenCount]]()
        for name, count in parts:
            if any(_figures(count)):
                added.setdefault(name, [self.by.get(name, _NOTHING)]).append(count)
        if not added:
            return self
        by = {**self.by, **{name: total(counts) for name, counts in added.items()}}
        return Usage(**sums_of(by.values()), by=by)
