"""The words of a reply's values: labels, numbers and flags, as models write them."""

import re
import unicodedata
from collections.abc import Mapping
from typing import Literal, TypeVar

from replan.plan.model import PlanUpdateType
from replan.replies.vocabulary import tables, words
from replan.state.results import ActionType, ExecutionStatus, TaskComplexity

Verdict = Literal["complete", "continue"]
"""The verdict of the host on a round: the work is done, or it continues."""

_NEGATIONS = frozenset(words("others", "negations"))
_FILLERS = frozenset(words("others", "fillers"))
_LABEL_REACH = 200
_MAX_WORDS = 8
_SEGMENT_END = re.compile(
    r"[\n,;(\[#\u2014\u2013\u3002\uff0c\u3001\uff1b\uff08]"
    r"|\.\s|:\s|\s-+\s|\s?[-=]>|→|\bbecause\b|\bbut\b"
)
_WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)?")
_CHOICE = re.compile(r"(?:(?<!\s)\s++)?(?:[,/|，、;]|\bor\b|\boder\b|\bou\b|\bo\b|→|->)\s*+")
_NUMBER = re.compile(
    r"[~≈\s]*(\d{1,9}+(?:[.,]\d{1,12}+)?+|[.,]\d{1,12}+)\s*"
    r"(?:(%)|(?:/|out of|von|sur|de)\s*(\d{1,6}))?(?=$|[\s,;.()\]}#-])"
    r"(?!\s*(?:to|or|bis|-|\u2013|\.\.)\s*\d)"  # a range is not a number
)

Label = TypeVar("Label")


def _index(name: str, labels: Mapping[str, Label]) -> dict[str, Label]:
    return {_folded(word): labels[key] for key, listed in tables(name).items() for word in listed}


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


_COMPLEXITY_WORDS = _index("complexity", {str(label): label for label in TaskComplexity})
_VERDICTS: dict[str, Verdict] = {"complete": "complete", "continue": "continue"}
_VERDICT_WORDS = _index("verdict", _VERDICTS)
_STATUS_WORDS = _index("status", {str(status): status for status in ExecutionStatus})
_ACTION_WORDS = _index("action", {str(action): action for action in ActionType})
_FLAG_WORDS = _index("flag", {"yes": True, "no": False})
_UPDATE_WORDS = {kind.value.replace("_", " "): kind for kind in PlanUpdateType}


def complexity_of(value: str) -> TaskComplexity | None:
    """Read a complexity label; None for a choice of several, or a denial."""
    return None if is_choice(value, _COMPLEXITY_WORDS) else _label(value, _COMPLEXITY_WORDS)[0]


def is_choice(value: str, words: Mapping[str, Label] | None = None) -> bool:
    if words is None:
        return is_choice(value, _COMPLEXITY_WORDS) or is_choice(value, _VERDICT_WORDS)
    pieces = [
        piece.strip(" \t[]<>{}()`'\"*.").split()
        for piece in _CHOICE.split(_folded(value[:_LABEL_REACH]))
    ]
    labels = [words.get(" ".join(piece)) for piece in pieces if piece]
    return len(labels) > 1 and all(labels) and len(set(labels)) > 1


def verdict_of(value: str) -> Verdict | None:
    """Read a verdict; "not complete" is continue."""
    if is_choice(value, _VERDICT_WORDS):
        return None
    label, negated = _label(value, _VERDICT_WORDS)
    if not negated:
        return label
    return "continue" if negated == "complete" else None


def status_of(value: str) -> ExecutionStatus | None:
    """Read the status of a specialist's work."""
    return _label(value, _STATUS_WORDS)[0]


def action_of(value: str) -> ActionType | None:
    """Read an action, by its own name or in a few other words."""
    return _label(value, _ACTION_WORDS)[0]


def update_type_of(value: str) -> PlanUpdateType | None:
    return _label(value, _UPDATE_WORDS)[0]


def flag_of(value: str) -> bool | None:
    return _label(value, _FLAG_WORDS)[0]


def number_of(value: str) -> float | None:
    """Read a number from 0 to 1, also as `80%`, `8/10` or `0,8`; a larger one says nothing."""
    found = _NUMBER.match(value[:_LABEL_REACH].strip(" \t\"'*`_"))
    if found is None:
        return None
    digits, percent, scale = found.groups()
    number = float(digits.replace(",", "."))
    if percent:
        number /= 100
    elif scale:
        number = number / int(scale) if int(scale) else -1.0
    return number if 0 <= number <= 1 else None


def _label(value: str, words: Mapping[str, Label]) -> tuple[Label | None, Label | None]:
    """Return the label that a value means, and the one that it denies; None for either."""
    text = re.sub(r"^[\W_]+", "", _folded(value[:_LABEL_REACH]))
    found = _WORD.findall(_SEGMENT_END.split(text, maxsplit=1)[0].replace("_", " "))
    phrase = " ".join(found)
    if phrase in words:
        return words[phrase], None
    labels = {words[word] for word in found if word in words}
    others = [word for word in found if word not in words]
    if len(labels) != 1 or len(found) > _MAX_WORDS:
        return None, None
    (label,) = labels
    denied = any(word in _NEGATIONS for word in others)
    plain = all(word in _FILLERS or word in _NEGATIONS for word in others)
    if not plain:
        return None, None
    return (None, label) if denied else (label, None)
