"""A team whose runs are in a queue on PostgreSQL, and workers that are real processes.

A step waits at its gate for as long as the file is there; each time that a step begins it leaves a
line with the id of its process.
"""

import asyncio
import os
import time
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

import warm
from replan import build_graph, open_storage
from replan.team.team_file import read_team_file
from replan.workers.open_worker import publish
from replan.workers.queue import open_queue
from replan.workers.queued_runtime import open_queued_runtime
from replan.workers.versions import version_of

TEAMS = Path(__file__).with_name("crew_team")
LEASE = 1.5
PATIENCE = 30.0
_numbers = count()


class Crew:
    """A folder with a team, its storage, and the workers that were started."""

    def __init__(self, folder, address):
        self.folder, self.address, self.team = folder, address, folder / "team.yaml"
        self.workers = []

    def is_of(self, file, url=""):
        """Have the team of a file, whose models are at an address."""
        # What one process has imported under a name it does not import again from elsewhere.
        crew = f"crew_{next(_numbers)}"
        (self.folder / f"{crew}.py").write_text((TEAMS / "crew.py").read_text())
        text = (TEAMS / file).read_text().replace("crew:", f"{crew}:").replace("URL", url)
        self.team.write_text(text)
        publish(self.team, self.address)

    def worker(self, *words, **variables):
        words = ["--team", self.team, "--lease", LEASE, *words]
        process = warm.Process(
            ["-m", "replan", "worker", "--storage", self.address, *words],
            env={**os.environ, **variables},
        )
        self.workers.append(process)
        return process

    def gate(self, name):
        (self.folder / f"gate-{name}").touch()

    def open(self, name):
        (self.folder / f"gate-{name}").unlink()

    @property
    def begun(self):
        file = self.folder / "begun"
        lines = file.read_text().splitlines() if file.exists() else []
        return [(words, int(pid)) for words, pid, *_ in map(str.split, lines)]

    def keys(self, name):
        """The idempotency keys under which a step has begun, one for each time."""
        lines = map(str.split, (self.folder / "begun").read_text().splitlines())
        return [key for words, _, key in lines if words == name]

    async def has_begun(self, name, but=()):
        async def looked():
            return next(
                (pid for words, pid in self.begun if words == name and pid not in but), None
            )

        return await until(looked)


@asynccontextmanager
async def queued(crew):
    """A runtime that leaves runs to workers, with its storage and its queue."""
    read, digest = read_team_file(crew.team, os.environ), version_of(crew.team).digest
    async with open_storage(crew.address) as storage, open_queue(crew.address) as queue:
        graph = build_graph(read.config, storage=storage, models=read.models)
        options = {"storage": storage, "queue": queue, "digest": digest}
        async with open_queued_runtime(graph, **options) as runtime:
            yield runtime, storage, queue


async def until(looked):
    """Look again and again, and give what is found."""
    latest = time.monotonic() + PATIENCE
    while not (found := await looked()):
        assert time.monotonic() < latest, "it did not happen"
        await asyncio.sleep(0.02)
    return found
