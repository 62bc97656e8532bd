"""Queue a run, answer its question, and wait for its end; a worker does the work."""

import asyncio
import os
from pathlib import Path

from replan import open_storage
from replan.workers.queue import open_queue
from replan.workers.queued_runtime import open_queued_runtime
from replan.workers.versions import version_of

HERE = Path(__file__).parent
ADDRESS = os.environ["REPLAN_STORAGE"]


async def main() -> None:
    """Do no work of the run here."""
    digest = version_of(HERE / "team.yaml").digest
    async with (
        open_storage(ADDRESS) as storage,
        open_queue(ADDRESS) as queue,
        open_queued_runtime(
            HERE / "team.yaml", storage=storage, queue=queue, digest=digest
        ) as runtime,
    ):
        run = await runtime.start({"plan": (HERE / "plan.md").read_text("utf-8")})
        result = await run
        print(result.outcome, [ask.text for ask in result.pending_questions])
        run = await runtime.answer(result.run_id, {"2": "10"}, by="anna")
        print((await run).outcome)


asyncio.run(main())
