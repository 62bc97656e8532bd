"""How well a model answers through Replan, next to one agent with all tools and to deepagents.

Twelve tasks over a small world, whose answers are checked by rules; each side has three tries at
each. `make quality MODEL=openai:NAME` makes the environment that this needs, with the packages
`deepagents` and `pydantic-evals`. It calls a real model, and costs money: no test runs it.
"""

import asyncio
import os
import statistics
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Sequence
from importlib.util import find_spec

from harness import Row, options, publish
from langchain_core.language_models import BaseChatModel
from quality_sides import SIDES, Attempt, attempt
from quality_tasks import TASKS, Task

from replan import Price
from replan.models.providers.chat_models import LangChainModels

TRIES = 3
PACKAGES = ("deepagents", "langchain", "pydantic-evals")
"""What this needs beyond Replan."""


def arguments() -> ArgumentParser:
    """The options of this benchmark."""
    parser = options(__doc__ or "")
    add = parser.add_argument
    add("--model", required=True, help="the model: openai:NAME, PROVIDER:NAME or a server's NAME")
    add("--base-url", help="the address of an OpenAI-compatible server")
    add("--prices", nargs=2, type=float, metavar=("IN", "OUT"), help="of a million tokens")
    add("--sides", nargs="+", choices=SIDES, default=list(SIDES), help="sides (default all)")
    add("--tasks", nargs="+", choices=[task.name for task in TASKS], help="tasks (default all)")
    add("--tries", type=int, default=TRIES, help=f"tries at each task (default {TRIES})")
    add("--at-once", type=int, default=4, help="attempts at the same time (default 4)")
    return parser


def main(args: Namespace) -> list[Row]:
    """Let the sides answer the requests of the tasks.

    Raises:
        SystemExit: A package is missing; says which, and what installs it.
    """
    missing = [name for name in PACKAGES if find_spec(name.replace("-", "_")) is None]
    if missing:
        sys.exit(f"{', '.join(missing)}: not installed here. `make quality` installs them.")
    # The key and the address of the provider stand where its own programs look for them.
    models = LangChainModels(base_url=args.base_url, environment=os.environ)  # noqa: TID251
    return asyncio.run(_main(models.chat_model(args.model), args))


async def _main(model: BaseChatModel, args: Namespace) -> list[Row]:
    tasks = [task for task in TASKS if task.name in (args.tasks or [task.name])]
    attempts: list[Attempt] = []
    for side in args.sides:
        attempts += await _evaluated(side, tasks, model, args)
    _tell_wrong(attempts)
    price = Price(input=args.prices[0], output=args.prices[1]) if args.prices else None
    return rows_of(attempts, price)


async def _evaluated(
    side: str, tasks: Sequence[Task], model: BaseChatModel, args: Namespace
) -> list[Attempt]:
    """All attempts of a side, made by pydantic-evals."""
    from pydantic_evals import Case, Dataset  # noqa: PLC0415 - only a real measure needs it
    from pydantic_evals.evaluators import Evaluator, EvaluatorContext  # noqa: PLC0415 - as above

    class Right(Evaluator[Task, Attempt, None]):
        def evaluate(self, ctx: EvaluatorContext[Task, Attempt, None]) -> bool:
            return ctx.output.is_right

    async def answer(task: Task) -> Attempt:
        return await attempt(side, task, model)

    dataset = Dataset(
        name="quality",
        cases=[Case(name=task.name, inputs=task) for task in tasks],
        evaluators=[Right()],
    )
    report = await dataset.evaluate(
        answer, name=side, repeat=args.tries, max_concurrency=args.at_once, progress=False
    )
    for failure in report.failures:
        raise RuntimeError(failure.error_message)
    return [case.output for case in report.cases]


def rows_of(attempts: Sequence[Attempt], price: Price | None = None) -> list[Row]:
    """A table of the sides, and one of the tasks."""
    sides = list(dict.fromkeys(each.side for each in attempts))
    tasks = list(dict.fromkeys(each.task for each in attempts))
    rows = [
        _side_row(side, [each for each in attempts if each.side == side], price) for side in sides
    ]
    for task in tasks:
        row: Row = {"table": "Right answers, by task", "task": task}
        for side in sides:
            tried = [each for each in attempts if (each.side, each.task) == (side, task)]
            row[side] = f"{sum(each.is_right for each in tried)} of {len(tried)}"
        rows.append(row)
    return rows


def _side_row(side: str, attempts: Sequence[Attempt], price: Price | None) -> Row:
    by_task: dict[str, list[bool]] = {}
    for each in attempts:
        by_task.setdefault(each.task, []).append(each.is_right)
    tries = max(map(len, by_task.values()))

    def mean(of: Callable[[Attempt], float]) -> float:
        return statistics.mean(map(of, attempts))

    asked = [each.answered.asked_again for each in attempts if each.answered]
    return {
        "table": "Answers, means of an attempt",
        "runtime": side,
        "right, %": 100 * mean(lambda each: each.is_right),
        f"pass^{tries}, %": 100 * statistics.mean(map(all, by_task.values())),
        "calls": mean(lambda each: each.counted.calls),
        "tokens in": mean(lambda each: each.counted.tokens_in),
        "tokens out": mean(lambda each: each.counted.tokens_out),
        "cost of 100": price
        and mean(lambda each: 100 * price.of(each.counted.tokens_in, each.counted.tokens_out)),
        "s": mean(lambda each: each.seconds),
        "replies asked again": _mean_of_known(asked),
        "words of a brief": _mean_of_known(each.brief_words for each in attempts),
    }


def _mean_of_known(values: Iterable[float | None]) -> float | None:
    known = [each for each in values if each is not None]
    return statistics.mean(known) if known else None


def _tell_wrong(attempts: Iterable[Attempt]) -> None:
    for each in attempts:
        if not each.is_right:
            print(f"{each.side}, {each.task}: without {', '.join(each.missing)}", file=sys.stderr)


if __name__ == "__main__":
    publish("quality", arguments().parse_args(), main)
