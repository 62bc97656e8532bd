"""The sums of a period as the lines of a table."""

from collections.abc import Callable, Collection, Sequence
from typing import get_args

from replan.base.texts.signs import one_line
from replan.log.period import By, Sums
from replan.views.cells import amount, columns, seconds


def _cost(sums: Sums) -> str:
    """What was charged in each currency, one after the other; money of none is not added to any."""
    texts = [
        f"unknown {one_line(currency)}".rstrip() if cost is None else amount(cost, currency)
        for currency, cost in sums.costs.items()
    ]
    return " + ".join(texts) or amount(0)


_RUNS: Collection[By] = ("day", "team")
_WITH_TOKENS: Collection[By] = ("day", "team", "specialist", "model")
_ALL: Collection[By] = get_args(By)
_CELLS: dict[str, tuple[Collection[By], Callable[[Sums], str]]] = {
    "runs": (_ALL, lambda sums: f"{sums.runs:,}"),
    "attempts": (("specialist",), lambda sums: f"{sums.number:,}"),
    "calls": (("tool", "model"), lambda sums: f"{sums.number:,}"),
    "failed": (_ALL, lambda sums: f"{sums.failed:,}"),
    "partial": (_RUNS, lambda sums: f"{sums.partial:,}"),
    "at work": (_ALL, lambda sums: seconds(sums.seconds)),
    "tokens in": (_WITH_TOKENS, lambda sums: f"{sums.input_tokens:,}"),
    "out": (_WITH_TOKENS, lambda sums: f"{sums.output_tokens:,}"),
    "cost": (_WITH_TOKENS, _cost),
    "waited": (_RUNS, lambda sums: seconds(sums.waited)),
}
"""The columns: what runs are added up by where each of them is there, and its cells."""


def period_lines(sums: Sequence[Sums], by: By) -> list[str]:
    """The lines of a table, its heading first."""
    if not sums:
        return [f"There is no {by} in the runs of this period."]
    return columns(period_rows(sums, by), right=range(1, 1 + len(_CELLS)))


def period_rows(sums: Sequence[Sums], by: By) -> list[list[str]]:
    """The cells of the table, its heading first."""
    shown = {name: text_of for name, (axes, text_of) in _CELLS.items() if by in axes}
    rows = ([one_line(one.name), *(text_of(one) for text_of in shown.values())] for one in sums)
    return [[by, *shown], *rows]
