"""One search: what of its answer counts, and its event.

A retriever may not know of the bounds here, so they are checked again.
"""

import asyncio
import math
import time
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import Any

from langchain_core.runnables import RunnableConfig

from replan.events.emitter import Emitter
from replan.events.types import KnowledgeRetrieved
from replan.failures import describe, ends_whole_work
from replan.knowledge.condensing import Ask, ChunkReader
from replan.langgraph_inside.tasks import inherited_config
from replan.ports.retriever import Retriever, SearchRequest, SearchResponse
from replan.prompts.knowledge_section import place_of
from replan.prompts.sections import within_budget
from replan.specialists.function import call
from replan.spending.deadline import Timed, in_time
from replan.state.knowledge import Chunk, Knowledge, RAGOptions
from replan.texts.storable import storable_text

LONGEST_CHUNK = 4_000
"""The most characters of a chunk that are shown; other retrievers may return whole books."""

LONGEST_NAME = 400
"""Characters of a source, a heading, or a sentence of a retriever."""

MOST_TOLD = 20
"""Sentences about what could not be searched."""


def _best_of(found: SearchResponse, options: RAGOptions) -> tuple[list[Chunk], tuple[str, ...]]:
    """Return the chunks that count, the best first, and a sentence for each that is left out."""
    least, most = options.given["min_score"], options.given["top_k"]
    odd = [each for each in found.chunks if not math.isfinite(each.score)]
    counting = (each for each in found.chunks if math.isfinite(each.score) and each.score >= least)
    full = (each for each in counting if not each.content.isspace() and each.content)
    best = sorted(full, key=lambda each: -each.score)[:most]
    left_out = [
        *islice(chain(map(_name, found.left_out), map(_left_out_for_score, odd)), MOST_TOLD)
    ]
    more = len(found.left_out) + len(odd) - len(left_out)
    rest = (f"{more} more are left out.",) if more else ()
    return [_bounded(each) for each in best], (*left_out, *rest)


def _bounded(chunk: Chunk) -> Chunk:
    content = storable_text(within_budget(chunk.content.strip("\r\n"), LONGEST_CHUNK))
    names = {name: _name(getattr(chunk, name)) for name in ("id", "source", "heading")}
    return chunk.replace(content=content, **names)


def _left_out_for_score(chunk: Chunk) -> str:
    return f"{place_of(_bounded(chunk))} is left out: its score is {chunk.score}."


def _name(text: str) -> str:
    text = text[: LONGEST_NAME + 1]
    cut = text if len(text) <= LONGEST_NAME else f"{text[: LONGEST_NAME - 1]}…"
    return storable_text(cut)


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

    async def run(self, emitter: Emitter, **about: Any) -> Knowledge | None:
        """Search, and report it; None if it failed, and the work continues without knowledge."""
        started = time.monotonic()
        knowledge, left_out, error = Knowledge(), (), ""
        try:
            chunks, left_out = _best_of(await self._search(), self.options)
            reading = ChunkReader(self.options, self.task, self.timed, self.ask)
            knowledge = await reading.read(chunks)
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

    async def _search(self) -> SearchResponse:
        options = self.options.given
        names = ("knowledge_base_ids", "top_k", "min_score", "filters")
        request = SearchRequest(
            query=self.task, tenant_id=self.tenant, **{name: options[name] for name in names}
        )
        seconds = self.options.given["timeout_seconds"]
        return await in_time(partial(self._call_retriever, request), self.timed, seconds)

    async def _call_retriever(self, request: SearchRequest) -> SearchResponse:
        """Search; whatever a retriever raises is an ordinary error."""
        # A model that the retriever calls without the configuration finds it here.
        inherited = inherited_config.set(self.config)
        try:
            found = await call(self.retriever.search, request, self.config)
        except SystemExit as error:
            raise RuntimeError(f"it tried to exit the process (exit {error.code})") from error
        except (Exception, asyncio.CancelledError, KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:
            raise RuntimeError(describe(error)) from error
        finally:
            inherited_config.reset(inherited)
        return SearchResponse.model_validate(found)
