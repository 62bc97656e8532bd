"""A journal in memory: it lives as long as the process, and forgets the oldest runs."""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field

from replan.ports.journal import Attempt
from replan.state.results import SpecialistResult


@dataclass
class _Run:
    calls: int = 0
    attempts: list[Attempt] = field(default_factory=list[Attempt])
    results: dict[str, SpecialistResult] = field(default_factory=dict[str, SpecialistResult])


class MemoryJournal:
    """The rows of the newest runs, for graphs without a database."""

    def __init__(self, *, max_runs: int = 1_000) -> None:
        self._runs: OrderedDict[str, _Run] = OrderedDict()
        self._max_runs = max_runs

    async def reserve(self, run_id: str, *, limit: int) -> bool:
        """Count one model call before it is made; false, and not counted, at the limit."""
        run = self._run(run_id)
        if run.calls >= limit:
            return False
        run.calls += 1
        return True

    async def started(self, attempt: Attempt) -> None:
        """Record that a try begins."""
        self._run(attempt.run_id).attempts.append(attempt)

    async def finished(self, attempt: Attempt, result: SpecialistResult) -> None:
        """Record the final result of a step at a specialist."""
        self._run(attempt.run_id).results[attempt.key] = result

    async def ended(self, run_id: str) -> None:
        """Forget a run that is over."""
        self._runs.pop(run_id, None)

    async def results(self, run_id: str) -> Mapping[str, SpecialistResult]:
        """The recorded final results of a run, by idempotency key."""
        run = self._runs.get(run_id)
        return {} if run is None else dict(run.results)

    def _run(self, run_id: str) -> _Run:
        run = self._runs.setdefault(run_id, _Run())
        self._runs.move_to_end(run_id)
        while len(self._runs) > self._max_runs:
            self._runs.popitem(last=False)
        return run
