"""The queue of `replan serve --queue`, in which the runs of its teams wait for workers."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from replan.assembly.graphs import AnyTeam
from replan.runs.service import Runtime
from replan.server.served_teams import Queueing
from replan.team.team_file import TeamFile
from replan.workers.queue import open_queue
from replan.workers.queued_runtime import open_queued_runtime
from replan.workers.versions import check_published, version_of


@asynccontextmanager
async def open_served_queue(
    storage: str, teams: Mapping[str, TeamFile]
) -> AsyncGenerator[Queueing]:
    """Open the queue of the storage for the versions of the teams that these files have now.

    Raises:
        UsageError: The storage is not PostgreSQL, or a version was not published to workers.
    """
    async with open_queue(storage) as queue:
        versions = {name: version_of(team_file.path) for name, team_file in teams.items()}
        for version in versions.values():
            await check_published(queue, version)

        def opening(
            name: str, team: AnyTeam, options: Mapping[str, Any]
        ) -> AbstractAsyncContextManager[Runtime]:
            return open_queued_runtime(team, queue=queue, digest=versions[name].digest, **options)

        async def waiting() -> dict[str, int]:
            jobs = await queue.waiting()
            return {name: jobs.get(version.digest, 0) for name, version in versions.items()}

        yield Queueing(opening=opening, answers=lambda: queue.has(""), waiting=waiting)
