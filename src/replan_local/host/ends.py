"""The ends of a growing plan: which steps the next clause has to wait for."""

from collections.abc import Iterable, Sequence

from replan_local.host.request import Clause
from replan_local.host.team import telling_words

_FEWEST_COMPARED = 2


class Ends:
    """The steps so far, and how they hang together.

    Attributes:
        open: Steps that no other step waits for yet.
        loose: Steps whose results no other step has brought together yet; "then" only waits.
    """

    def __init__(self) -> None:
        self.open: list[int] = []
        self.loose: list[int] = []
        self._place = (-1, -1)
        self._sentences: dict[int, int] = {}
        self._words: dict[int, frozenset[str]] = {}
        self._branch: tuple[int, ...] = ()

    def enter(self, clause: Clause) -> None:
        """Note, where a new part begins, which steps a "then" would follow."""
        if (clause.sentence, clause.part) != self._place:
            self._place = (clause.sentence, clause.part)
            self._branch = self._steps_of(clause.sentence) or self._steps_of(
                max((self._sentences[step] for step in self.open), default=-1)
            )

    def every(self) -> tuple[int, ...]:
        """All steps: a report takes in every result so far."""
        return tuple(self._sentences)

    def compared(self, text: str) -> tuple[int, ...]:
        """The loose steps that a text speaks of, if there are two; else all loose ones."""
        named = self.spoken_of(text, self.loose)
        return named if len(named) >= _FEWEST_COMPARED else tuple(self.loose)

    def spoken_of(self, text: str, steps: Sequence[int] | None = None) -> tuple[int, ...]:
        """The steps that share a word with a text."""
        words = telling_words(text)
        among = self._sentences if steps is None else steps
        return tuple(step for step in among if words & self._words[step])

    def linked(self, clause: Clause) -> tuple[int, ...]:
        """The steps that a clause follows by its "then" or "finally"."""
        if clause.link == "finally":
            return tuple(self.open)
        return self._branch if clause.link == "then" else ()

    def add(self, text: str, after: Iterable[int], sentence: int, *, joins: bool) -> int:
        """The next step takes its place in the plan; give its id."""
        step = len(self._sentences) + 1
        waited_for = set(after)
        self.open = [end for end in self.open if end not in waited_for] + [step]
        taken_in = waited_for if joins else set[int]()
        self.loose = [each for each in self.loose if each not in taken_in] + [step]
        self._sentences[step] = sentence
        self._words[step] = telling_words(text)
        return step

    def _steps_of(self, sentence: int) -> tuple[int, ...]:
        return tuple(step for step in self.open if self._sentences[step] == sentence)
