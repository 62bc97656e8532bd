"""Matches names as models write them to the specialists of the team."""

import re
import unicodedata
from collections.abc import Collection

_AFFIXES = re.compile(r"^(?:the|specialist)(?=\w{3})|(?:agent|specialist|assistant|expert)$|s$")


def squeezed(text: str) -> str:
    """Return a word without the differences that do not matter: case, width, blanks, `_`, `-`."""
    return re.sub(r"[\W_]+", "", unicodedata.normalize("NFKC", text).casefold())


class Names:
    """The names of a team; without a team, whatever is behind an `@` is a name."""

    def __init__(self, team: Collection[str] = ()) -> None:
        self.team = tuple(team)
        self._by_word = {squeezed(name): name for name in team}

    def find(self, written: str) -> str | None:
        """Find the specialist that a whole text names, also as `Data Analyst` or `coder_agent`."""
        word = squeezed(written)
        found = self._by_word.get(word)
        while found is None and (shorter := _AFFIXES.sub("", word, count=1)) != word:
            word = shorter
            found = self._by_word.get(word)
        return found
