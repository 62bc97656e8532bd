"""What the value of an item's row says, and the words that it is found by."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

from langgraph.store.base import get_text_at_path, tokenize_path

from replan.adapters.storage.store.full_text import words_in


@dataclass(frozen=True)
class Kept:
    """An item's value, and LangGraph's `index` of it."""

    value: dict[str, Any]
    index: list[str] | bool | None  # which fields are looked through; False: none, None: all

    @cached_property
    def words(self) -> str:
        if self.index is False:
            return ""
        if isinstance(self.index, list):
            paths = (tokenize_path(path) for path in self.index)
            texts = (said for path in paths for said in get_text_at_path(self.value, path))
        else:
            texts = _texts_in(self.value)
        return words_in("\n".join(texts))


def _texts_in(value: object) -> Iterable[str]:
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        yield str(value)
    elif isinstance(value, dict | list):
        parts = cast("Any", value)
        for each in parts.values() if isinstance(value, dict) else parts:
            yield from _texts_in(each)
