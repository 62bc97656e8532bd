"""Whether every run ends within its bound: teams that try to keep it going, drawn from seeds.

Each seed draws the habits of a host and of two specialists, the limits, and a person who often
answers nonsense; see `adversaries.py`. Nothing is timed. With `--http` the model stands behind an
HTTP server, which counts what the client really asks.
"""

from argparse import ArgumentParser, Namespace
from collections import defaultdict

from adversaries import Ended, adversary, play, play_over_http
from harness import Row, options, publish


def arguments() -> ArgumentParser:
    """The options of this benchmark."""
    parser = options(__doc__ or "")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--runs", type=int, help="default 1,000, and 10,000 with --long")
    parser.add_argument("--http", action="store_true", help="ask the model by a real client")
    return parser


def main(args: Namespace) -> list[Row]:
    """Play every seed, and tell how the runs ended."""
    args.runs = args.runs or (10_000 if args.long else 1_000)
    by_end: defaultdict[str, list[Ended]] = defaultdict(list)
    broken: list[Row] = []
    for seed in range(args.first, args.first + args.runs):
        ended = play_over_http(seed) if args.http else play(seed)
        by_end[_end_of(ended)].append(ended)
        broken += [
            {"table": "Broken laws", "seed": seed, "fault": fault}
            for fault in ended.faults(adversary(seed).config.limits)
        ]
    every = [ended for each in by_end.values() for ended in each]
    rows = [_row(end, by_end[end]) for end in sorted(by_end)]
    return [*rows, _row("all", every) | {"broken laws": len(broken)}, *broken]


def _end_of(ended: Ended) -> str:
    if ended.refused is not None:
        return "an error, before anything was done"
    return "still waiting, the person went" if ended.is_left else str(ended.state["outcome"])


def _row(end: str, runs: list[Ended]) -> Row:
    return {
        "table": "How the runs ended",
        "end": end,
        "runs": len(runs),
        "judgements": sum(len(ended.measures) for ended in runs),
        "most rounds": max(ended.state.get("current_round", 0) for ended in runs),
        "calls": sum(ended.calls for ended in runs),
        "most calls": max(ended.calls for ended in runs),
        "highest share of the bound": max(ended.calls / ended.bound for ended in runs),
        "broken laws": None,
    }


if __name__ == "__main__":
    publish("termination", arguments().parse_args(), main)
