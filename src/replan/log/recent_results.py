"""Results that were written or read a short while ago: no node reads them from the log again."""

from collections import OrderedDict

from replan.state.results import SpecialistResult

MOST_CHARACTERS = 8_000_000
"""Characters of the texts of results that are kept in memory, of all runs of a log together."""


class RecentResults:
    """The results of a log that were used last; a row never changes, so nothing goes stale."""

    def __init__(self, room: int = MOST_CHARACTERS) -> None:
        self._results: OrderedDict[tuple[str, str], SpecialistResult] = OrderedDict()
        self._room = room

    def get(self, run_id: str, key: str) -> SpecialistResult | None:
        result = self._results.get((run_id, key))
        if result is not None:
            self._results.move_to_end((run_id, key))
        return result

    def put(self, run_id: str, key: str, result: SpecialistResult) -> None:
        if (run_id, key) in self._results:
            return
        self._results[run_id, key] = result
        self._room -= len(result.text)
        while self._room < 0 and self._results:
            _, oldest = self._results.popitem(last=False)
            self._room += len(oldest.text)
