"""The keys of a reply's front matter, in the spellings and languages that models use."""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache

from replan.replies.vocabulary import tables, words
from replan.replies.vocabulary.labels import (
    action_of,
    complexity_of,
    flag_of,
    number_of,
    status_of,
    verdict_of,
)
from replan.replies.vocabulary.naming import squeezed

BODY_KEYS = frozenset(words("others", "bodies"))
"""The keys that hold the body."""

LABEL_KEYS = frozenset(
    ("complexity", "score", "next_action", "verdict", "suggested_action", "plan_update_type")
) | frozenset(("status", "confidence", "replan_needed", "retry"))
"""The keys whose value is one word or number; prose cannot continue such a value."""

_READERS: Mapping[str, Sequence[Callable[[str], object]]] = {
    "complexity": (complexity_of, number_of),
    "score": (number_of,),
    "confidence": (number_of,),
    "verdict": (verdict_of,),
    "next_action": (action_of,),
    "suggested_action": (action_of,),
    "status": (status_of,),
}
_KEYS = tables("keys")
# A flag says with yes or no what its key's label says in a word: key, word for yes, word for no.
_FLAGS = tables("flags")


@lru_cache(maxsize=16)
def _key_table(known: frozenset[str]) -> dict[str, tuple[str, bool]]:
    aliases = {
        squeezed(alias): (key, False)
        for key, aliases in _KEYS.items()
        if key in known
        for alias in aliases
    }
    return aliases | {squeezed(key): (key, True) for key in known}


def find_key(written: str, known: Collection[str]) -> tuple[str, bool] | None:
    """Find the key that the text before a colon means."""
    word = squeezed(written)
    if word in _FLAGS:
        key = _FLAGS[word][0]
        return (key, False) if key in known else None
    return _key_table(frozenset(known)).get(word) if word else None


def spelled_out(written: str, value: str) -> str:
    """Turn the yes or no of a flag such as `should_continue` into the label that it means."""
    flag = _FLAGS.get(squeezed(written))
    answer = flag_of(value) if flag else None
    if flag is None or answer is None:
        return value
    return flag[1] if answer else flag[2]


def fits(key: str, value: str) -> bool:
    """Whether this value certainly belongs to the key: a label or a number, not prose."""
    return any(read(value) is not None for read in _READERS.get(key, ()))
