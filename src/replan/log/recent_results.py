"""Results that were written or read a short while ago: no node reads them from the log again."""

from collections import OrderedDict

from replan.state.results import SpecialistResult

MOST_CHARACTERS = 8_000_000
"""Characters of the texts of results that are kept in memory, of all runs of a log together."""

_Place = tuple[int, str, str]  # the take, the run and the key of the row


class RecentResults:
    """The results of a log that were used last, each by the take of its thread in which it was.

    A row never changes while one process has its thread; a run may be removed and begun again.
    """

    def __init__(self, room: int = MOST_CHARACTERS) -> None:
        self._results: OrderedDict[_Place, SpecialistResult] = OrderedDict()
        self._room = room

    def get(self, place: _Place) -> SpecialistResult | None:
        result = self._results.get(place)
        if result is not None:
            self._results.move_to_end(place)
        return result

    def put(self, place: _Place, result: SpecialistResult) -> None:
        if place in self._results:
            return
        self._results[place] = result
        self._room -= len(result.text)
        while self._room < 0 and self._results:
            _, oldest = self._results.popitem(last=False)
            self._room += len(oldest.text)
