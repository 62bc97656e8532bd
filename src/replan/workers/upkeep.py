"""Jobs of upkeep for a team: summaries of its threads, the index of its knowledge."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Literal, cast

from pydantic import JsonValue

from replan.base.errors import (
    ConfigurationError,
    InputError,
    ReplanError,
    StorageError,
    ThreadBusyError,
)
from replan.knowledge.folder import FolderRetriever
from replan.log.labels import TENANT, VERSION
from replan.ports.run_book import RunOutcome
from replan.ports.storage import Storage
from replan.runs.calling.compiled import Graph, services_in
from replan.runs.summaries import summarise
from replan.specialists.services import Services
from replan.workers.queue import NewJob, Queue

Upkeep = Literal["summaries", "index"]  # what such a job is for

MOST_RUNS = 1_000  # of so many runs, the newest, the threads are summarised

_OVER: Collection[RunOutcome] = ("answered", "completed", "partial", "failed", "rejected")
_SUMMARY = "summary"

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class UpkeepJobs:
    """Puts such jobs into the queue, and does them."""

    graph: Graph  # that of the team, on the storage
    storage: Storage  # where the threads are
    queue: Queue
    digest: str  # the version of the team

    @property
    def handlers(self) -> Mapping[str, Callable[..., Awaitable[None]]]:
        """What does them, by their kinds."""
        return {"summaries": self.look_through, _SUMMARY: self.summarise, "index": self.index}

    def check(self, upkeep: Upkeep) -> None:
        """Refuse upkeep that the team does not need."""
        if upkeep == "summaries" and self._services.prompts.memory_in({}).mode != "summary":
            problem = "The memory of this team is not in mode 'summary'."
            fix = "Give the team memory: {mode: summary}, or remove the schedule."
            raise ConfigurationError("schedules.upkeep", upkeep, problem, fix)
        if upkeep == "index" and not isinstance(self._services.knowledge, FolderRetriever):
            problem = "The knowledge of this team has no index that a worker could maintain."
            fix = "Give the team knowledge: {folder: ...}, or remove the schedule."
            raise ConfigurationError("schedules.upkeep", upkeep, problem, fix)

    async def put(self, upkeep: Upkeep, labels: Mapping[str, str]) -> bool:
        """Put the job into the queue; return False if the same one waits there already."""
        tenant = labels.get(TENANT, "")
        return await self._put_job(upkeep, f"{tenant}:{self.digest}", labels, {"whose": tenant})

    async def look_through(self, whose: str) -> None:
        """Queue a job for each thread whose newest run is over, of one tenant or of all."""
        labels = {VERSION: self.digest, **({TENANT: whose} if whose else {})}
        newest = dict[str, tuple[RunOutcome, Mapping[str, str]]]()
        for record in await self.storage.runs.recent(MOST_RUNS, labels):
            newest.setdefault(record.thread_id, (record.outcome, record.labels))
        for thread_id, (outcome, thread) in newest.items():
            if outcome in _OVER:
                await self._put_job(_SUMMARY, thread_id, thread, {"thread_id": thread_id})

    async def summarise(self, thread_id: str) -> None:
        """Write the summary of a thread, if there is anything new to cover."""
        try:
            await summarise(self.graph, {"configurable": {"thread_id": thread_id}})
        except StorageError:
            raise
        except (InputError, ThreadBusyError):
            # A run began meanwhile; the next time finds the thread at rest.
            return
        except ReplanError as error:
            fields = {"thread_id": thread_id, "error": str(error)}
            logger.warning("summary not written", extra=fields)

    async def index(self, whose: str) -> None:
        """Bring the index of the knowledge up to date."""
        knowledge = self._services.knowledge
        if not isinstance(knowledge, FolderRetriever):
            return
        try:
            _, _, left_out = await asyncio.to_thread(knowledge.looked_through, whose)
        except ReplanError as error:
            logger.warning("index not updated", extra={"tenant": whose, "error": str(error)})
        else:
            logger.info("index updated", extra={"tenant": whose, "left_out": len(left_out)})

    @property
    def _services(self) -> Services:
        return cast("Services", services_in(self.graph))

    async def _put_job(
        self, kind: str, about: str, labels: Mapping[str, str], arguments: Mapping[str, JsonValue]
    ) -> bool:
        lock = f"{kind}:{about}"
        if await self.queue.has(lock):
            return False
        return await self.queue.put(NewJob.labelled(kind, lock, self.digest, labels, arguments))
