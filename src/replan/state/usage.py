"""What a run has used: model calls, tokens and money, in all and by whom."""

from collections.abc import Iterable

from pydantic import Field

from replan.plan.model import Value

CUT_OFF = "(cut off)"
"""Under this name stand calls that were cut off, so that nobody took down what came of them."""


class TokenCount(Value):
    """Model calls, and the tokens that the servers reported for them (0 where none were).

    `cost` is the money that was charged for them, 0 for a model without a price.
    """

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0

    @property
    def total_tokens(self) -> int:
        """Tokens in and out."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: "TokenCount") -> "TokenCount":
        return sum_counts((self, other))


_NOTHING = TokenCount()


class Usage(TokenCount):
    """The usage of a run: the sum, and its parts by node or specialist.

    Calls that were cut off, by a kill or a stop, are charged too: under `CUT_OFF`.
    """

    by: dict[str, TokenCount] = Field(default_factory=dict)

    def plus(self, *parts: tuple[str, TokenCount]) -> "Usage":
        """Add what somebody used, under their name."""
        counts = {name: [count] for name, count in self.by.items()}
        for name, count in parts:
            if count != _NOTHING:
                counts.setdefault(name, []).append(count)
        by = {name: sum_counts(each) for name, each in counts.items()}
        total = sum_counts(by.values())
        return Usage(**dict(total), by=by)


def sum_counts(counts: Iterable[TokenCount]) -> TokenCount:
    parts = list(counts)
    return TokenCount(
        calls=sum(each.calls for each in parts),
        input_tokens=sum(each.input_tokens for each in parts),
        output_tokens=sum(each.output_tokens for each in parts),
        cost=sum(each.cost for each in parts),
    )
