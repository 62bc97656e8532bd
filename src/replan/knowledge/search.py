"""One search, and what is made of what it finds."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphBubbleUp

from replan.errors import LimitReachedError, StorageError
from replan.events.emitter import Emitter
from replan.events.types import KnowledgeRetrieved
from replan.failures import describe
from replan.ports.retriever import Retriever, SearchRequest, SearchResponse
from replan.prompts.knowledge import build_knowledge_prompt, knowledge_text, source_of
from replan.prompts.sections import within_budget
from replan.secrets.masking import with_masked_traceback
from replan.specialists.function import call
from replan.spending.deadline import Timed, in_time
from replan.state.knowledge import Chunk, Knowledge, RAGOptions

T = TypeVar("T")

logger = logging.getLogger(__name__)
logger.addFilter(with_masked_traceback)

LONGEST_CHUNK = 4_000
"""Characters of a chunk that is shown; retrievers of others may give whole books."""

LONGEST_NOTE = 8_000
"""Characters of what a model makes of a chunk."""

Ask = Callable[[list[BaseMessage]], Awaitable[str]]
"""Asks a model, and pays for it."""

_NOTHING = "none"


@dataclass(frozen=True)
class Search:
    """What it takes to look for what helps with a task."""

    retriever: Retriever
    options: RAGOptions
    task: str
    tenant: str
    config: RunnableConfig
    timed: Timed  # whose time it takes
    ask: Ask

    async def told(self, emitter: Emitter, **about: Any) -> Knowledge | None:
        """Search, and tell of it; None where that failed, and the work goes on without."""
        started = time.monotonic()
        knowledge, left_out, error = Knowledge(), (), ""
        try:
            found = await self._in_time(self._found)
            left_out = tuple(found.left_out)
            knowledge = await self._made(_best(found.chunks, self.options))
        except (LimitReachedError, GraphBubbleUp, StorageError):
            raise
        except Exception as problem:  # noqa: BLE001 - a retriever is code of others
            error = describe(problem)
        emitter.stream(
            KnowledgeRetrieved,
            **about,
            mode=self.options.mode,
            sources=knowledge.sources,
            left_out=left_out,
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
        found = await call(self.retriever.search, request, self.config)
        return SearchResponse.model_validate(found)

    async def _made(self, chunks: Sequence[Chunk]) -> Knowledge:
        """Give what was found as it is, or what a model makes of it; failing that as it is."""
        text: str | None = None
        if chunks and self.options.mode == "map_reduce":
            asked = chunks[: self.options.map_max_chunks]
            text = await self._mapped(asked)
            chunks = chunks if text is None else asked
        if chunks and text is None:
            text = knowledge_text(chunks)
            if self.options.use_summary:
                text = await self._tried(text) or text
        return Knowledge(text=text or "", sources=tuple(map(source_of, chunks)) if text else ())

    async def _mapped(self, chunks: Sequence[Chunk]) -> str | None:
        """What a model makes of each chunk, put together; None where it made nothing of any."""
        tried = await asyncio.gather(*(self._tried(knowledge_text([each])) for each in chunks))
        notes = [note for note in tried if note is not None]
        told = [note for note in notes if note]
        if len(told) < 2:  # noqa: PLR2004 - there is nothing to put together
            return "".join(told) if notes else None
        return await self._tried("\n\n".join(told))

    async def _tried(self, text: str) -> str | None:
        """What a model makes of a text: empty where nothing helps, None where it failed."""
        try:
            made = await self._in_time(partial(self.ask, build_knowledge_prompt(self.task, text)))
        except (LimitReachedError, GraphBubbleUp, StorageError):
            raise
        except Exception:
            logger.warning("knowledge was not made shorter", exc_info=True)
            return None
        made = made.strip()
        if not made:
            return None
        is_nothing = made.strip(".*`").casefold() == _NOTHING
        return "" if is_nothing else within_budget(made, LONGEST_NOTE)

    async def _in_time(self, work: Callable[[], Awaitable[T]]) -> T:
        return await in_time(work, self.timed, self.options.said["timeout_seconds"])


def _best(chunks: Sequence[Chunk], options: RAGOptions) -> list[Chunk]:
    """The chunks that count, the best first; a retriever may not know of bounds."""
    least, most = options.said["min_score"], options.said["top_k"]
    told = [each for each in chunks if each.score >= least and each.content.strip()]
    best = sorted(told, key=lambda each: -each.score)[:most]
    return [each.replace(content=within_budget(each.content, LONGEST_CHUNK)) for each in best]
