"""What a model call is charged to, what it asks for, and the leave that it gets."""

import math
from asyncio import AbstractEventLoop
from collections.abc import Sequence
from dataclasses import dataclass, field

from replan.errors import LimitReachedError
from replan.ports.journal import Bound, Reservation
from replan.state.limits import Budget, ClosingReserve, Price

_LIMITS = {
    "calls": "max_model_calls",
    "tokens": "max_tokens",
    "cost": "max_cost",
    "seconds": "max_seconds",
}


@dataclass(frozen=True, slots=True)
class Scope:
    """A part of a run that has bounds of its own.

    Attributes:
        name: `run`, `specialist/<name>` or `step/<id>`.
        budget: What it may spend.
        kept: What of that is kept back for others.
    """

    name: str
    budget: Budget
    kept: ClosingReserve = field(default_factory=ClosingReserve)

    @property
    def bound(self) -> Bound:
        """What the journal checks of it."""
        budget = self.budget
        return Bound(
            scope=self.name,
            calls=None if budget.max_model_calls is None else int(self.most("calls")),
            tokens=None if budget.max_tokens is None else int(self.most("tokens")),
            cost=None if budget.max_cost is None else self.most("cost"),
        )

    @property
    def bounds_amounts(self) -> bool:
        """Whether it bounds tokens or money: what nobody knows before a call."""
        return self.budget.max_tokens is not None or self.budget.max_cost is not None

    def most(self, kind: str) -> float:
        """The most of `calls`, `tokens`, `cost` or `seconds` that may be charged."""
        limit = getattr(self.budget, _LIMITS[kind])
        return math.inf if limit is None else max(0.0, limit - getattr(self.kept, kind))

    def reached(self, kind: str) -> LimitReachedError:
        """Say that nothing of a kind is left."""
        name = _LIMITS[kind]
        return LimitReachedError(name, getattr(self.budget, name), self.name)


@dataclass(frozen=True, kw_only=True, slots=True)
class Ask:
    """A call that wants to be made.

    Attributes:
        id: Unique.
        run_id: The run.
        model: The model's name.
        scopes: What the call is charged to.
        input_tokens: Tokens of its request, at most.
        likely_tokens: Tokens of its request as far as one can judge; no more than that.
        output_tokens: Tokens of its reply, at most, if there is room.
        cuttable: Whether the server can be told to stop earlier.
        price: What it costs; none: nothing is known, and nothing bounds it.
        part_of: Calls that are on their way, and that this one is made inside of.
        loop: The event loop that must turn for it to end; none where a thread waits for its reply.
    """

    id: str
    run_id: str
    model: str
    scopes: Sequence[Scope]
    input_tokens: int
    output_tokens: int
    likely_tokens: int
    cuttable: bool = False
    price: Price | None = None
    part_of: frozenset[str] = frozenset()
    loop: AbstractEventLoop | None = None

    @property
    def limited(self) -> list[Scope]:
        """The scopes that bound tokens or money."""
        return [scope for scope in self.scopes if scope.bounds_amounts]

    def cost(self, input_tokens: float, output_tokens: float) -> float:
        """The money that so many tokens cost."""
        return 0.0 if self.price is None else self.price.of(input_tokens, output_tokens)


@dataclass(frozen=True, slots=True)
class Permit:
    """Leave to make a call.

    Attributes:
        ask: What was asked for.
        reservation: What is charged until it is settled.
        most_output: Tokens that its reply may have; none where neither tokens nor money are bound.
    """

    ask: Ask
    reservation: Reservation
    most_output: int | None
