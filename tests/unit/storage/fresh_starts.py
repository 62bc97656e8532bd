"""Several processes open the same fresh storage at the same instant; says what went wrong.

Usage: fresh_starts.py PROCESSES ADDRESS...
"""

import asyncio
import os
import sys
import traceback
from datetime import UTC, datetime

from replan import open_storage
from replan.ports.run_book import RunRecord


async def enter(where: str, number: int) -> None:
    async with open_storage(where) as storage:
        now = datetime.now(UTC)
        name = str(number)
        record = RunRecord(run_id=name, thread_id=name, started_at=now, updated_at=now)
        await storage.runs.begin(record)
        await storage.log.note("shared", "first", number)


async def entered(where: str, at_most: int) -> int:
    async with open_storage(where) as storage:
        return len(await storage.runs.recent(at_most + 1))


def main(processes: int, places: list[str]) -> None:
    # What is opened here starts threads, and nothing may be forked beside them.
    ends = {where: started(where, processes) for where in places}
    for where in places:
        if any(ends[where]) or asyncio.run(entered(where, processes)) != processes:
            sys.exit(f"{where}: {ends[where]}")


def started(where: str, processes: int) -> list[int]:
    reader, writer = os.pipe()
    children = []
    for number in range(processes):
        child = os.fork()
        if child == 0:
            os.close(writer)
            # Every child waits for the same end of file, so that all start at once.
            os.read(reader, 1)
            try:
                asyncio.run(enter(where, number))
            except BaseException:  # noqa: BLE001 - told, whatever it is
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        children.append(child)
    os.close(reader)
    os.close(writer)
    return [os.waitpid(child, 0)[1] for child in children]


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
