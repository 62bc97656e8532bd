"""One search, and its event."""

import asyncio
import time
from dataclasses import dataclass
from functools import partial
from typing import Any

from langchain_core.runnables import RunnableConfig

from replan.events.emitter import Emitter
from replan.events.types import KnowledgeRetrieved
from replan.failures import describe, ends_whole_work
from replan.knowledge.condensing import Ask, Reading
from replan.knowledge.found import best_of
from replan.ports.retriever import Retriever, SearchRequest, SearchResponse
from replan.specialists.function import call
from replan.spending.deadline import Timed, in_time
from replan.state.knowledge import Knowledge, RAGOptions


@dataclass(frozen=True)
class Search:
    """Everything needed to search for knowledge about a task."""

    retriever: Retriever
    options: RAGOptions
    task: str
    tenant: str
    config: RunnableConfig
    timed: Timed  # whose time it takes
    ask: Ask

    async def told(self, emitter: Emitter, **about: Any) -> Knowledge | None:
        """Search, and report it; None if it failed, and the work continues without knowledge."""
        started = time.monotonic()
        knowledge, left_out, error = Knowledge(), (), ""
        try:
            chunks, left_out = best_of(await self._found(), self.options)
            reading = Reading(self.options, self.task, self.timed, self.ask)
            knowledge = await reading.of(chunks)
        except Exception as problem:
            # A retriever is code of others.
            if ends_whole_work(problem):
                raise
            error = describe(problem)
        emitter.stream(
            KnowledgeRetrieved,
            **about,
            mode=self.options.mode,
            sources=knowledge.sources,
            left_out=left_out,
            unused=knowledge.unused,
            failed=knowledge.failed,
            error=error,
            seconds=time.monotonic() - started,
        )
        return None if error else knowledge

    async def _found(self) -> SearchResponse:
        options = self.options.said
        names = ("knowledge_base_ids", "top_k", "min_score", "filters")
        request = SearchRequest(
            query=self.task, tenant_id=self.tenant, **{name: options[name] for name in names}
        )
        seconds = self.options.said["timeout_seconds"]
        return await in_time(partial(self._asked, request), self.timed, seconds)

    async def _asked(self, request: SearchRequest) -> SearchResponse:
        try:
            found = await call(self.retriever.search, request, self.config)
        except SystemExit as error:
            raise RuntimeError(f"it tried to exit the process (exit {error.code})") from error
        except (Exception, asyncio.CancelledError, KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:
            raise RuntimeError(describe(error)) from error
        return SearchResponse.model_validate(found)
