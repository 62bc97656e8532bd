"""Shapes of plans for benchmarks: which step waits for which."""

import random
from collections.abc import Mapping
from dataclasses import dataclass

_REACH = 12
_MOST_WAITS = 3


@dataclass(frozen=True)
class Shape:
    """A plan's steps, numbered from 1; each waits for earlier ones only.

    Attributes:
        waits: The steps that each step waits for.
    """

    waits: Mapping[int, tuple[int, ...]]

    @property
    def document(self) -> str:
        """The shape as a plan document, all steps for @worker."""
        return "".join(f"{step_line(step, waits)}\n" for step, waits in self.waits.items())

    @property
    def waves(self) -> list[list[int]]:
        """The steps by wave, where a wave begins when the one before has ended."""
        depths: dict[int, int] = {}
        for step, waits in self.waits.items():
            depths[step] = 1 + max((depths[other] for other in waits), default=-1)
        return [
            [step for step, depth in depths.items() if depth == wave]
            for wave in range(1 + max(depths.values(), default=-1))
        ]

    def critical_path(self, seconds: Mapping[int, float]) -> float:
        """The least time that the steps can take, however many run at once."""
        ends: dict[int, float] = {}
        for step, waits in self.waits.items():
            ends[step] = seconds[step] + max((ends[other] for other in waits), default=0.0)
        return max(ends.values(), default=0.0)


def flat(steps: int) -> Shape:
    """No step waits for another."""
    return Shape(dict.fromkeys(range(1, steps + 1), ()))


def chain(steps: int) -> Shape:
    """Each step waits for the one before."""
    return Shape({step: (step - 1,) if step > 1 else () for step in range(1, steps + 1)})


def random_dag(steps: int, seed: int) -> Shape:
    """Each step waits for up to three of the twelve before it."""
    drawn = random.Random(seed)  # noqa: S311 - the same draw on every run, no secret
    waits: dict[int, tuple[int, ...]] = {}
    for step in range(1, steps + 1):
        near = range(max(1, step - _REACH), step)
        count = min(len(near), drawn.randint(0, _MOST_WAITS))
        waits[step] = tuple(sorted(drawn.sample(near, count)))
    return Shape(waits)


def step_line(step: int, waits: tuple[int, ...]) -> str:
    """One step as a line of a plan document."""
    after = f" (after {', '.join(map(str, waits))})" if waits else ""
    return f"- [ ] {step}. Look into part {step} @worker{after}"
