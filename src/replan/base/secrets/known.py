"""The secret values that this process knows of, and texts without them.

They are collected once, where they are handed in (`sources.py`), so that masking a text looks at
nothing but the text.
"""

import json
from collections.abc import Iterable
from urllib.parse import quote

MASK = "***"
SHORTEST = 8  # characters of a value that is masked; a shorter one may be part of any word
MOST = 1_000  # the most values that are kept; the oldest are dropped

_PLACEHOLDERS = frozenset({"not-needed"})


class KnownSecrets:
    def __init__(self) -> None:
        self._values: dict[str, None] = {}
        self.forms: tuple[str, ...] = ()  # how they look in other texts

    def add(self, values: Iterable[str]) -> None:
        """Remember values, except those too short to distinguish from words."""
        stripped = (value.strip() for value in values)
        new = {
            value: None
            for value in stripped
            if len(value) >= SHORTEST and value not in _PLACEHOLDERS
        }
        if new.keys() <= self._values.keys():
            return
        # Other threads mask meanwhile: what they read is replaced, never changed.
        kept = [*(value for value in self._values if value not in new), *new][-MOST:]
        self._values = dict.fromkeys(kept)
        forms = {form for value in kept for form in _forms(value)}
        self.forms = tuple(sorted(forms, key=len, reverse=True))

    def clear(self) -> None:
        self._values, self.forms = {}, ()

    def masked(self, text: str) -> str:
        for form in self.forms:
            if form in text:
                text = text.replace(form, MASK)
        return text

    def occur_in(self, text: str) -> bool:
        return any(form in text for form in self.forms)


KNOWN = KnownSecrets()  # what this process knows


def _forms(value: str) -> set[str]:
    return {value, quote(value, safe=""), json.dumps(value)[1:-1], repr(value)[1:-1]}
