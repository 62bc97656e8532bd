"""What is charged to a scope of a run, as this process knows it."""

from collections.abc import Collection
from dataclasses import dataclass, field

from replan.ports.journal import Charged, Spending
from replan.spending.fitting import Permit

NOTHING = Spending()


@dataclass
class Picture:
    """What is charged to a scope, and the calls that hold a part of it and will be settled."""

    calls: int = 0
    tokens: int = 0
    cost: float = 0.0
    on_way: dict[str, Permit] = field(default_factory=dict[str, Permit])  # those of this process
    elsewhere: dict[str, Spending] = field(default_factory=dict[str, Spending])

    @property
    def held_elsewhere(self) -> Spending:
        return sum(self.elsewhere.values(), NOTHING)

    def add(self, amount: Spending, sign: int = 1) -> None:
        self.calls += sign * amount.calls
        self.tokens += sign * amount.tokens
        self.cost += sign * amount.cost

    def read(self, found: Charged, on_record: Collection[str], lost: Collection[str]) -> bool:
        """Take over what the journal has; tell whether a call elsewhere came to its end.

        Args:
            found: What it has.
            on_record: The calls of this process that were on record before it was asked.
            lost: Reservations that nobody will settle.
        """
        for name in [each for each in self.on_way if each not in found.reserved]:
            if name in on_record:
                # It is settled there, and what it used is in the sum.
                del self.on_way[name]
        self.calls, self.tokens, self.cost = found.spent.calls, found.spent.tokens, found.spent.cost
        for name, permit in self.on_way.items():
            if name not in found.reserved:
                self.add(permit.reservation.amount)
        before, ours = self.elsewhere, {*self.on_way, *lost}
        self.elsewhere = {name: each for name, each in found.reserved.items() if name not in ours}
        return bool(before.keys() - self.elsewhere.keys())
