"""How well the replies of models are read: each of a corpus, by the readers that the nodes use.

The outcome of a reply is one of these: right at once; asked, so that one more call settles it;
told by a mark or an event though it is not right; silently wrong; or an error. Where nobody can
know what a reply means, to ask is right. With `--graph` one reply of each family goes through a
whole run. Details are shown of open families alone; those that are put away are only summed up.
"""

import time
from argparse import ArgumentParser, Namespace
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Literal

from replies_corpus import SEED, replies
from replies_reading import read
from reply_families.drawing import WORDINGS, Item
from reporting import Row, options, publish

Grade = Literal["right", "asked", "told", "wrong", "error"]
GRADES: tuple[Grade, ...] = ("right", "asked", "told", "wrong", "error")


def arguments() -> ArgumentParser:
    """The options of this benchmark."""
    parser = options(__doc__ or "")
    parser.add_argument("--seed", type=int, default=SEED, help="draws other replies")
    parser.add_argument("--wordings", type=int, default=WORDINGS, help="of each family")
    parser.add_argument("--holdout", action="store_true", help="only the sum of what is put away")
    parser.add_argument(
        "--show", default="", help="print replies of this family that are not right"
    )
    parser.add_argument("--graph", action="store_true", help="whole runs of a sample")
    return parser


def main(args: Namespace) -> list[Row]:
    """Read every reply, and tell how that went."""
    show = "" if args.holdout else args.show
    items = replies(seed=args.seed, put_away=args.holdout, wordings=args.wordings, only=show)
    if args.graph:
        from replies_graph import played  # noqa: PLC0415 - the graph takes seconds to load

        return played(items, hidden=args.holdout)
    graded = _graded(items, show=show)
    rows = [_row("all", graded.values())]
    if args.holdout:
        return rows
    by_kind: defaultdict[str, list[tuple[Grade, bool, float]]] = defaultdict(list)
    by_family: defaultdict[str, list[tuple[Grade, bool, float]]] = defaultdict(list)
    for item, result in graded.items():
        by_kind[item.reader].append(result)
        by_family[item.family].append(result)
    rows += [_row(kind, results) for kind, results in by_kind.items()]
    faulty = [
        _row(name, results) | {"table": "Families that are not all right"}
        for name, results in sorted(by_family.items())
        if any(grade != "right" for grade, _, _ in results)
    ]
    return rows + faulty


def _graded(items: Iterable[Item], show: str) -> dict[Item, tuple[Grade, bool, float]]:
    graded: dict[Item, tuple[Grade, bool, float]] = {}
    for item in items:
        start = time.process_time()
        grade, is_clean, why = grade_of(item)
        graded[item] = (grade, is_clean, time.process_time() - start)
        if item.family == show and (grade != "right" or not is_clean):
            print(f"=== {item.name} {grade}: {why}\n{item.text}\n--- meant {item.meant}\n")
    return graded


def grade_of(item: Item) -> tuple[Grade, bool, str]:
    """Read one reply: the grade, whether its texts are clean, and what was found."""
    try:
        found = read(item)
    except Exception as error:  # noqa: BLE001 - the benchmark counts them
        return "error", False, repr(error)
    meant = item.meant
    if found.asked:
        is_right = meant.outcome is None or meant.ask_is_right
        return ("right" if is_right else "asked"), True, found.why
    if meant.outcome is None:
        return ("told" if found.told else "wrong"), False, str(found)
    fault = found.fault(meant)
    if fault:
        return ("told" if found.told else "wrong"), False, fault
    return "right", found.is_clean(meant), "" if found.is_clean(meant) else str(found)


def _row(name: str, results: Iterable[tuple[Grade, bool, float]]) -> Row:
    results = list(results)
    count = Counter(grade for grade, _, _ in results)
    return {
        "table": "How the replies were read",
        "replies of": name,
        "count": len(results),
        **{grade: count[grade] for grade in GRADES},
        "right %": 100 * count["right"] / len(results),
        "silently wrong %": 100 * count["wrong"] / len(results),
        "clean %": 100 * sum(clean for _, clean, _ in results) / len(results),
        "slowest ms": 1000 * max(seconds for _, _, seconds in results),
    }


if __name__ == "__main__":
    publish("replies", arguments().parse_args(), main)
