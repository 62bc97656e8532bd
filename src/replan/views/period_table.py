"""The sums of a period as the lines of a table."""

from collections.abc import Sequence

from replan.base.texts.signs import one_line
from replan.log.period import By, Sums
from replan.views.cells import amount, cut, padded, seconds

_WIDEST = 40
_NUMBERS: dict[By, str] = {"specialist": "attempts", "tool": "calls", "model": "calls"}


def period_lines(sums: Sequence[Sums], by: By) -> list[str]:
    """The lines of a table, its heading first."""
    if not sums:
        return [f"There is no {by} in the runs of this period."]
    rows = period_rows(sums, by)
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(
            [
                padded(row[0], widths[0]),
                *(cell.rjust(wide) for cell, wide in zip(row[1:], widths[1:], strict=True)),
            ]
        ).rstrip()
        for row in rows
    ]


def period_rows(sums: Sequence[Sums], by: By) -> list[list[str]]:
    """The cells of the table; days and teams have no number besides their runs, tools no tokens."""
    number = _NUMBERS.get(by)
    head = [by, "runs", *([number] if number else []), "failed"]
    head += ["partial", "at work"] if number is None else ["at work"]
    head += ["tokens in", "out", "cost"] if by != "tool" else []
    head += ["waited"] if number is None else []
    return [head, *(_row(row, by) for row in sums)]


def _row(each: Sums, by: By) -> list[str]:
    cells = [cut(one_line(each.name), _WIDEST), f"{each.runs:,}"]
    cells += [f"{each.number:,}"] if by in _NUMBERS else []
    cells += [f"{each.failed:,}", *([f"{each.partial:,}"] if by not in _NUMBERS else [])]
    cells += [seconds(each.seconds)]
    if by != "tool":
        cells += [f"{each.input_tokens:,}", f"{each.output_tokens:,}", _cost(each)]
    return [*cells, seconds(each.waited)] if by not in _NUMBERS else cells


def _cost(sums: Sums) -> str:
    """What was charged in each currency, one after the other; money of none is not added to any."""
    texts = [
        f"unknown {one_line(currency)}".rstrip() if cost is None else amount(cost, currency)
        for currency, cost in sums.costs.items()
    ]
    return " + ".join(texts) or amount(0)
