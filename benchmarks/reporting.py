"""What every benchmark shares: its options, and how its rows are printed."""

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from itertools import groupby
from typing import Any

Row = dict[str, Any]
"""One line of a table; its `table` says of which."""


def options(description: str) -> ArgumentParser:
    """The options that every benchmark has."""
    parser = ArgumentParser(description=description)
    parser.add_argument("--json", action="store_true", help="print one line of JSON")
    parser.add_argument("--long", action="store_true", help="more sizes and repetitions")
    return parser


def publish(name: str, args: Namespace, main: Callable[[Namespace], list[Row]]) -> None:
    """Run a benchmark and print its rows."""
    rows = main(args)
    used = {key: value for key, value in vars(args).items() if key != "json"}
    if args.json:
        print(json.dumps({"benchmark": name, "options": used, "rows": rows}))
        return
    print(f"## {name}\n")
    print(", ".join(f"{key}: {value}" for key, value in used.items()))
    for table, group in groupby(rows, lambda row: row["table"]):
        print(f"\n### {table}\n\n{markdown(list(group))}")


def markdown(rows: list[Row]) -> str:
    """The rows of one table."""
    columns = [key for key in rows[0] if key != "table"]
    lines = [columns, ["---:"] * len(columns)]
    lines += [[_shown(row.get(column)) for column in columns] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def judged(
    value: float, *, name: str = "ratio", most: float | None = None, least: float | None = None
) -> Row:
    """A figure, its target, and whether it is met."""
    targets = {"at most": most, "at least": least}
    target = " ".join(f"{word} {bound:g}" for word, bound in targets.items() if bound is not None)
    is_met = (most is None or value <= most) and (least is None or value >= least)
    return {name: value, "target": target, "met": ("yes" if is_met else "no") if target else ""}


def _shown(value: object) -> str:
    match value:
        case None:
            return ""
        case float():
            return f"{value:.2f}" if value < 10 else f"{value:,.1f}"  # noqa: PLR2004
        case int():
            return f"{value:,}"
        case _:
            return str(value)
