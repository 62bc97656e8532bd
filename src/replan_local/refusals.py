"""What is said when something cannot be done as it was asked for."""

from collections.abc import Iterable
from difflib import get_close_matches

from langchain_core.tools import ToolException

_NEAR = 0.6


class CannotAnswerError(ToolException):
    """Something cannot be answered as it is; the message says why and what there is instead."""


def did_you_mean(wrong: str, names: Iterable[str], *, near: float = _NEAR) -> str:
    """A question for the nearest name, with a blank before it; empty if no name is near."""
    by_key = {name.casefold(): name for name in names}
    found = get_close_matches(wrong.casefold(), list(by_key), n=1, cutoff=near)
    return f" Did you mean '{by_key[found[0]]}'?" if found else ""
