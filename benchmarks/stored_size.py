"""What a run leaves in its store and says to models, and how that grows with steps and rounds.

Nothing is timed: bytes and tokens are counted, and the same run gives the same tokens. Each step's
result has 400 tokens. There are three kinds of runs: a plan in one round; the same with
`round_scope="step"`, one step a round; and revisions, where each round does one step and each
judgement but the last adds one to the plan. Then a run with long results is looked for in the pages
of its SQLite file.
"""

import asyncio
import sqlite3
import tempfile
import zlib
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import psycopg
from harness import Row, judged, options, publish, stores
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.messages.utils import count_tokens_approximately
from plans import Shape, chain, random_dag, step_line
from step_cost import given, worker_team

from replan import Host, Limits, Specialist, Team, build_graph, open_runtime, open_storage, run
from replan.prompts.sections import call_of
from replan.state.limits import RoundScope
from replan.testing import ModelCall, ScriptedModel, always

MOST_COPIES = 3
MOST_SIZE = 6
OF_CHECKPOINTS = ("replan_checkpoints", "replan_channels", "replan_writes")
"""The tables of checkpoints; all others are of the log."""

REQUEST = "Find out what there is to know about the subject, part by part, and sum it up."
THOUGHT = "---\ncomplexity: complex\n---\n"
GO_ON = "---\nverdict: continue\nsuggested_action: update_plan\nupdate: One more part.\n---\n"
COMPLETE = "---\nverdict: complete\n---\nAll parts were looked into."

RESULT_CHARACTERS = 1_600
"""A result of 400 tokens, at four characters each."""

_MARK = "result of step {}: "
_WORDS = 500  # of a result: 2.3 kB
_STEPS_KEPT = 24

Query = Callable[[str], Iterable[Any]]
"""Gives the rows of a statement."""


@dataclass(frozen=True)
class Grown:
    """One run, and what was counted of it.

    Attributes:
        shape: All steps that were done.
        rounds: Its rounds.
        calls: Its model calls, in the order of arrival.
        bytes: The lengths of all values in each table of its store.
        checkpoints: How many there are.
    """

    shape: Shape
    rounds: int
    calls: Sequence[ModelCall]
    bytes: dict[str, int]
    checkpoints: int


def arguments() -> ArgumentParser:
    """The options of this benchmark."""
    parser = options(__doc__ or "")
    parser.add_argument("--seed", type=int, default=1, help="draws the plans over steps")
    parser.add_argument("--steps", type=int, nargs="+", help="default 5, 20, 50, 100")
    parser.add_argument("--rounds", type=int, nargs="+", help="default 10, 100; long: 1,000")
    parser.add_argument("--postgres", action="store_true", help="also in a PostgreSQL of its own")
    return parser


def main(args: Namespace) -> list[Row]:
    """Count for each number of steps in one round, then for each number of rounds."""
    args.steps = args.steps or [5, 20, 50, 100]
    args.rounds = args.rounds or [10, 100, *([1_000] if args.long else [])]
    rows: list[Row] = []
    with stores(with_postgres=args.postgres) as places:
        for store, where in places.items():
            grown: dict[str, list[Grown]] = {
                "a plan in one round": [
                    asyncio.run(_run(random_dag(steps, args.seed), where)) for steps in args.steps
                ],
                "one step a round": [
                    asyncio.run(_run(random_dag(rounds, args.seed), where, scope="step"))
                    for rounds in args.rounds
                ],
                "one revision a round": [
                    asyncio.run(_run(chain(rounds), where, revisions=rounds - 1))
                    for rounds in args.rounds
                ],
            }
            for kind, runs in grown.items():
                rows += [{"table": f"Bytes in {store}: {kind}", **bytes_row(one)} for one in runs]
    # The tokens are the same in any store.
    for kind, runs in grown.items():
        rows += [{"table": f"Tokens: {kind}", **tokens_row(one)} for one in runs]
    return [*rows, *asyncio.run(_rows_of_file())]


async def _run(
    shape: Shape, where: str, *, revisions: int = 0, scope: RoundScope = "plan"
) -> Grown:
    """Do a run whose first plan has all steps but the last `revisions`, which are added singly.

    Raises:
        RuntimeError: It did not come to its end as it should.
    """
    lines = [step_line(step, waits) for step, waits in shape.waits.items()]
    first = len(lines) - revisions
    script = {
        "think": THOUGHT + "\n".join(lines[:first]),
        "specialist": always(lambda messages: result_text(_step_of(messages))),
        # The least that a revision may say: the new step, and nothing of those that are done.
        "feedback": [*(GO_ON + line for line in lines[first:]), COMPLETE],
    }
    limits = Limits(
        max_rounds=len(lines) + 1, max_steps=len(lines), max_model_calls=3 * len(lines) + 10
    )
    before = _in(where)
    with ScriptedModel(script) as model:
        worker = Specialist(name="worker", intended_use="Looks into parts.", chat_model=model)
        team = Team(host=Host(model=model), specialists=[worker], limits=limits, round_scope=scope)
        async with open_storage(where) as storage:
            thread = {"configurable": {"thread_id": f"{scope} {revisions} {len(lines)}"}}
            state = (await run(build_graph(team, storage=storage), REQUEST, config=thread)).state
    if state["outcome"] != "completed" or len(state["current_specialist_results"]) != len(lines):
        raise RuntimeError(f"A run of {len(lines)} steps ended as {state['outcome']}.")
    after = _in(where)
    stored = {name: size - before.get(name, (0, 0))[1] for name, (_, size) in after.items()}
    checkpoints = "replan_checkpoints"
    count = after[checkpoints][0] - before.get(checkpoints, (0, 0))[0]
    return Grown(shape, state["current_round"], model.calls, stored, count)


def _in(where: str) -> dict[str, tuple[int, int]]:
    """The rows, and the length of all values, of each table of a store; nothing of a new one."""
    if where.startswith("postgresql"):
        with psycopg.connect(where) as connection:
            return _counted(
                connection.execute, "select tablename from pg_tables where schemaname = 'public'"
            )
    with closing(sqlite3.connect(where)) as database:
        return _counted(database.execute, "select name from sqlite_master where type = 'table'")


def _counted(query: Query, tables: str) -> dict[str, tuple[int, int]]:
    found: dict[str, tuple[int, int]] = {}
    for name in [name for (name,) in query(tables) if name.startswith("replan_")]:
        rows = list(query(f"select * from {name}"))  # noqa: S608 - its own
        found[name] = len(rows), sum(len(_bytes(value)) for row in rows for value in row)
    return found


def _bytes(value: object) -> bytes:
    return value if isinstance(value, bytes) else b"" if value is None else str(value).encode()


def bytes_row(grown: Grown) -> Row:
    """What the run wrote, and which part of it was the log."""
    steps, total = len(grown.shape.waits), sum(grown.bytes.values())
    log = total - sum(grown.bytes[each] for each in OF_CHECKPOINTS)
    return {
        "steps": steps,
        "rounds": grown.rounds,
        "checkpoints": grown.checkpoints,
        "bytes": total,
        "per step": round(total / steps),
        "of it the log": round(log / steps),
        "over the results' own bytes": total / (steps * RESULT_CHARACTERS),
    }


def tokens_row(grown: Grown) -> Row:
    """What was said to models, next to the least that could be said."""
    said = sum(count_tokens_approximately(call.messages) for call in grown.calls)
    least = least_tokens(grown)
    return {
        "steps": len(grown.shape.waits),
        "rounds": grown.rounds,
        "calls": len(grown.calls),
        "tokens": said,
        "least": least,
        "over the least": said / least,
    }


def least_tokens(grown: Grown) -> int:
    """The tokens of the least prompts.

    Every call says its own system prompt and the request. A step's adds the result of each step
    that it waits for; a judgement's the results that no judgement has seen, and the last one's,
    which writes the answer, all results.
    """
    seen: set[int] = set()
    total = 0
    judgements = [call for call in grown.calls if call.node == "feedback"]
    for call in grown.calls:
        shown: Sequence[int] = ()
        if call.step is not None:
            shown = grown.shape.waits[call.step]
            seen.add(call.step)
        elif call.node == "feedback":
            shown = sorted(grown.shape.waits if call is judgements[-1] else seen)
            seen.clear()
        text = "\n\n".join([REQUEST, *map(result_text, shown)])
        total += count_tokens_approximately([call.messages[0], HumanMessage(text)])
    return total


def result_text(step: int) -> str:
    """The result of a step: 400 tokens that no other step's result has."""
    word = f"fact{step:03} "
    return (word * RESULT_CHARACTERS)[:RESULT_CHARACTERS].strip().ljust(RESULT_CHARACTERS, ".")


def _step_of(messages: Sequence[BaseMessage]) -> int:
    call = call_of(messages)
    return 0 if call is None or call.step is None else call.step


async def _rows_of_file() -> list[Row]:
    """What a chain of steps with long results leaves, each result with a beginning of its own."""
    words = Path(__file__).with_name("README.md").read_text(encoding="utf-8").split()

    async def work(step: int) -> str:
        # Words in another order for each step: as compressible as any text.
        return _MARK.format(step) + " ".join(Random(step).choices(words, k=_WORDS))  # noqa: S311 - no secret

    shape = chain(_STEPS_KEPT)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "runs.sqlite"
        async with open_runtime(worker_team(shape, work), storage=path) as runtime:
            result = await runtime.run(given(shape))
        texts = sum(len(each.text) for each in result.results.values())
        copies = _copies(path, _MARK.format(_STEPS_KEPT // 2))
        size = path.stat().st_size
    row = {"table": f"What {_STEPS_KEPT} results take in the SQLite file"}
    return [
        {**row, "what": "copies of a result", **judged(copies, most=MOST_COPIES)},
        {**row, "what": "size of the file over the texts", **judged(size / texts, most=MOST_SIZE)},
    ]


def _copies(path: Path, text: str) -> int:
    with closing(sqlite3.connect(path)) as database:
        tables = database.execute("select name from sqlite_master where type = 'table'").fetchall()
        values = [
            _bytes(value)
            for (table,) in tables
            for row in database.execute(f"select * from {table}")  # noqa: S608 - the file's own
            for value in row
        ]
    return sum(_unpacked(value).count(text.encode()) for value in values)


def _unpacked(value: bytes) -> bytes:
    """A value as it was before the storage compressed it."""
    return zlib.decompress(value) if value.startswith(b"x\x01") else value


if __name__ == "__main__":
    publish("stored_size", arguments().parse_args(), main)
