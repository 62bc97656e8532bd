"""Results that were written or read a short while ago: no node reads them from the log again."""

from collections import OrderedDict

from replan.state.results import SpecialistResult

MOST_CHARACTERS = 8_000_000
"""Characters of the texts of results that are kept in memory, of all runs of a log together."""


class RecentResults:
    """The results of a log that were used last.

    A row never changes; one of a run that was removed and begun again takes the place of the first.
    """

    def __init__(self, room: int = MOST_CHARACTERS) -> None:
        self._results: OrderedDict[tuple[str, str], SpecialistResult] = OrderedDict()
        self._room = room

    def get(self, run_id: str, key: str) -> SpecialistResult | None:
        result = self._results.get((run_id, key))
        if result is not None:
            self._results.move_to_end((run_id, key))
        return result

    def put(self, run_id: str, key: str, result: SpecialistResult) -> None:
        before = self._results.pop((run_id, key), None)
        self._results[run_id, key] = result
        self._room += (len(before.text) if before else 0) - len(result.text)
        while self._room < 0 and self._results:
            _, oldest = self._results.popitem(last=False)
            self._room += len(oldest.text)
