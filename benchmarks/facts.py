"""What a search among facts takes.

Ten thousand facts of one user, each a line of the standard library's docstrings, stand in a store;
with `--others`, so many facts of each of ten other users, too. A hundred queries are asked: some
words of a fact. The time is the CPU time of the process for the whole search: what is found is
read, decrypted, ranked and returned. The work of a PostgreSQL server is not in it.
"""

import asyncio
import json
import random
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from typing import Any

from knowledge import sources
from langgraph.store.base import BaseStore, PutOp

from replan import open_storage
from replan.adapters.storage.store.full_text import words_in
from replan.adapters.storage.store.words_in_memory import WordsInMemory

_FACTS, _ASKED, _WORDS, _OTHERS = 10_000, 100, 4, 10
_BATCH = 1_000
_OPENED = 6  # times: the first time, and as another process
_FIRST = "very first search, ms of CPU"
_NEW = "first search of another process, ms of CPU"
_LATER = "a search, median, ms of CPU"
_LINE = range(60, 110)


def facts() -> list[str]:
    """Lines of prose, in an order of their own."""
    lines = {line.strip() for text in sources(all_of_them=True) for line in text.splitlines()}
    chosen = sorted(each for each in lines if len(each) in _LINE and each.count(" ") > _WORDS)
    random.Random(1).shuffle(chosen)  # noqa: S311 - nothing secret
    return chosen[:_FACTS]


def queries(among: list[str]) -> list[str]:
    """Some words of some facts."""
    return [" ".join(each.split()[:_WORDS]) for each in among[:_ASKED]]


async def milliseconds(work: Callable[[], Awaitable[object]]) -> float:
    """The CPU time of some work."""
    started = time.process_time()
    await work()
    return 1_000 * (time.process_time() - started)


async def searches(where: str, key: str | None, others: int) -> dict[str, float]:
    """Keep facts and search among them."""
    said = facts()
    async with open_storage(where, key=key) as storage:
        store = storage.store
        for user in ("me", *(f"other {number}" for number in range(others))):
            puts = [PutOp(("facts", user), str(at), {"text": text}) for at, text in enumerate(said)]
            for at in range(0, len(puts), _BATCH):
                await store.abatch(puts[at : at + _BATCH])
    asked = queries(said)
    first: list[float] = []
    later: list[float] = []
    for _ in range(_OPENED):
        async with open_storage(where, key=key) as storage:
            store = storage.store

            def search(query: str, store: BaseStore = store) -> Callable[[], Awaitable[object]]:
                return lambda: store.asearch(("facts", "me"), query=query)

            first.append(await milliseconds(search(asked[0])))
            later = [await milliseconds(search(query)) for query in asked]
    return {
        _FIRST: round(first[0]),
        _NEW: round(median(first[1:]), 1),
        _LATER: round(median(later), 1),
    }


async def ranking() -> float:
    """The CPU time of ranking alone, of all facts in memory."""
    said = facts()
    words = WordsInMemory()
    texts = {number: words_in(text) for number, text in enumerate(said, start=1)}
    words.update((len(said), len(said)), texts.keys(), texts)

    async def rank(query: str) -> None:
        words.ranked(query, 10)

    return median([await milliseconds(lambda query=query: rank(query)) for query in queries(said)])


async def measured(postgres: str | None, others: int) -> dict[str, Any]:
    """All tables, by the kind of storage."""
    with tempfile.TemporaryDirectory() as folder:
        plain, sealed = (str(Path(folder) / name) for name in ("plain.db", "sealed.db"))
        found: dict[str, Any] = {
            "SQLite": await searches(plain, None, others),
            "SQLite with a key": await searches(sealed, "a key", others),
        }
    if postgres:
        found["PostgreSQL"] = await searches(postgres, None, others)
    found["ranking alone, in memory"] = {_LATER: round(await ranking(), 1)}
    return found


def main() -> None:
    """Measure, and print a table, or JSON with --json."""
    given = sys.argv[1:]
    postgres = given[given.index("--postgres") + 1] if "--postgres" in given else None
    found = asyncio.run(measured(postgres, _OTHERS if "--others" in given else 0))
    if "--json" in given:
        print(json.dumps(found))
        return
    columns = (_FIRST, _NEW, _LATER)
    print(f"| 10,000 facts | {' | '.join(columns)} |\n|---|---|---|---|")
    for kind, times in found.items():
        print(f"| {kind} | {' | '.join(str(times.get(each, '')) for each in columns)} |")


if __name__ == "__main__":
    main()
