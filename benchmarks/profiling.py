"""Where the CPU of a piece of work goes: its stack is looked at at every tick of its CPU time.

Other than with a tracing profiler, small functions cost no more than they do. What other threads
do is counted where the main thread is meanwhile, mostly in `select`.
"""

import cProfile
import signal
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Self

from reporting import Row

_TICK = 0.001
_OURS = "/src/replan/"


@dataclass
class Profile:
    """The stacks that were seen, the innermost function first."""

    seen: Counter[tuple[CodeType, ...]] = field(default_factory=Counter[tuple[CodeType, ...]])

    def __enter__(self) -> Self:
        signal.signal(signal.SIGPROF, self._look)
        signal.setitimer(signal.ITIMER_PROF, _TICK, _TICK)
        return self

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, signal.SIG_DFL)

    def _look(self, _: int, frame: FrameType | None) -> None:
        stack: list[CodeType] = []
        while frame is not None:
            stack.append(frame.f_code)
            frame = frame.f_back
        self.seen[tuple(stack)] += 1

    def rows(self, table: str, most: int) -> list[Row]:
        """The shares of packages, of Replan's functions with all they call, of functions alone."""
        counts = {
            "of package": self._counted(lambda stack: [_package(stack[0])]),
            "of function": self._counted(lambda stack: [_named(stack[0])]),
            "of Replan's function and what it calls": self._counted(
                lambda stack: {_named(code) for code in stack if _OURS in code.co_filename}
            ),
        }
        total = sum(self.seen.values())
        return [
            {"table": f"{table}, {kind}", "%": 100 * count / total, "": name}
            for kind, counted in counts.items()
            for name, count in counted.most_common(most)
        ]

    def _counted(self, names: Callable[[tuple[CodeType, ...]], Iterable[str]]) -> Counter[str]:
        counted: Counter[str] = Counter()
        for stack, count in self.seen.items():
            for name in names(stack):
                counted[name] += count
        return counted


async def functions_called(work: Callable[[], Awaitable[object]]) -> int:
    """How many functions this thread calls for a piece of work: a count, whatever else goes on."""
    counting = cProfile.Profile()
    with counting:
        await work()
    return sum(entry.callcount for entry in counting.getstats())


async def profiled(work: Callable[[], Awaitable[object]], times: int) -> Profile:
    """Do something so many times, after a first time that does not count."""
    await work()
    with Profile() as profile:
        for _ in range(times):
            await work()
    return profile


def _package(code: CodeType) -> str:
    file = code.co_filename
    if _OURS in file:
        return "replan"
    _, found, inside = file.partition("/site-packages/")
    return inside.partition("/")[0] if found else "Python's own"


def _named(code: CodeType) -> str:
    """A function as `package/file.py:line name`."""
    place = "/".join(code.co_filename.rsplit("/", 3)[-2:])
    return f"{place}:{code.co_firstlineno} {code.co_qualname}"
