"""What is said when something cannot be done as it was asked for."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from langchain_core.tools import ToolException

_NEAR = 0.6


class CannotAnswerError(ToolException):
    """Something cannot be answered as it is; the message says why and what there is instead."""


def one_of(wanted: str | None, names: Sequence[str], what: str) -> str:
    """The name that is meant, whatever its case; the only one needs not be named."""
    if not wanted and len(names) == 1:
        return names[0]
    for name in names:
        if wanted and name.casefold() == wanted.casefold():
            return name
    raise unknown(wanted, names, what)


def unknown(wanted: str | None, names: Sequence[str], what: str) -> CannotAnswerError:
    wrong = f"No {what} is '{wanted}'." if wanted else f"Name the {what}."
    there = f"There are: {', '.join(names)}." if names else "There is none."
    return CannotAnswerError(f"{wrong} {there}{did_you_mean(wanted or '', names)}")


def did_you_mean(wrong: str, names: Iterable[str]) -> str:
    """A question for the nearest name, with a blank before it; empty if no name is near."""
    by_key = {name.casefold(): name for name in names}
    found = get_close_matches(wrong.casefold(), list(by_key), n=1, cutoff=_NEAR)
    return f" Did you mean '{by_key[found[0]]}'?" if found else ""
