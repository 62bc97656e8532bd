"""How replies are read: recorded ones, deviations of small models, and mutations of both.

The outcome of a reply is one of these: right at once; asked, so that one more call settles it;
told, since people are warned; or silently wrong. What keeps a reply's meaning must be read as the
reply; what damages its form must never be a plan with other steps.
"""

import time
from argparse import ArgumentParser, Namespace
from collections import Counter, defaultdict
from collections.abc import Callable
from random import Random

from harness import Row, options, publish
from reply_forms import replies
from reply_mutations import Base, bases, damaged, equal, kept, same
from reply_reading import grade, read

from replan.prompts.replies.readings import read_feedback, read_think


def arguments() -> ArgumentParser:
    """The options of this benchmark."""
    parser = options(__doc__ or "")
    parser.add_argument("--seed", type=int, default=1, help="draws the mutations")
    parser.add_argument("--count", type=int, help="mutations; default 2,000, long 100,000")
    return parser


def main(args: Namespace) -> list[Row]:
    """Read every reply, and tell how that went."""
    count = args.count or (100_000 if args.long else 2_000)
    rows = [*_families(), _recorded()]
    for name, mutation in (("that keep the meaning", kept), ("that damage the form", damaged)):
        counted = Counter(outcome(mutation, args.seed, number)[0] for number in range(count))
        row = {"table": "Mutations", "mutations": name, "count": count}
        rows.append(row | {each: counted[each] for each in ("right", "asked", "told", "wrong")})
    return rows


def _families() -> list[Row]:
    grades: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for family, meant, text in replies():
        grades[family][grade(meant, read(meant, text))] += 1
    grades["all"] = sum(grades.values(), Counter[str]())
    return [
        {
            "table": "Deviations of small models",
            "family": name,
            "replies": found.total(),
            **{each: found[each] for each in ("right", "asked", "wrong")},
            "asked %": 100 * found["asked"] / found.total(),
        }
        for name, found in grades.items()
    ]


def _recorded() -> Row:
    """The CPU of reading the recorded replies: the front matter, and where the body is."""
    recorded = [base for base in bases() if base.name.split()[-1] in ("think", "feedback")]
    seconds = min(_seconds(recorded) for _ in range(5))
    return {
        "table": "Recorded replies",
        "replies": len(recorded),
        "asked": sum(bool(base.read(base.text).asked) for base in recorded),
        "CPU of one, ms": 1_000 * seconds / len(recorded),
    }


def _seconds(recorded: list[Base]) -> float:
    started = time.process_time()
    for base in recorded:
        if base.is_thought:
            read_think(base.text, base.team)
        else:
            read_feedback(base.text)
    return time.process_time() - started


def outcome(
    mutation: Callable[[Base, Random], str], seed: int, number: int
) -> tuple[str, Base, str]:
    """How one mutation is read, with the reply and its mutation."""
    base = bases()[number % len(bases())]
    text = mutation(base, Random(f"{seed}/{number}"))  # noqa: S311 - texts, no secrets
    found = base.read(text)
    if equal(base, found):
        return "right", base, text
    if mutation is kept:
        return "wrong", base, text
    if found.asked:
        return "asked", base, text
    if same(base, found, text):
        return "right", base, text
    return ("told" if found.unread else "wrong"), base, text


if __name__ == "__main__":
    publish("replies", arguments().parse_args(), main)
