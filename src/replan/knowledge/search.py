"""One search: what of its answer counts, and its event.

A retriever may not know of the bounds here, so they are checked again.
"""

import asyncio
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from langchain_core.runnables import RunnableConfig
from pydantic import ValidationError

from replan.base.failures import describe, is_fatal_for_run, reason_of
from replan.base.langgraph_inside.tasks import inherited_config
from replan.base.texts.storable import storable_text
from replan.base.user_code import call
from replan.knowledge.condensing import Ask, ChunkReader
from replan.log.events.emitter import Emitter
from replan.log.events.types import KnowledgeRetrieved
from replan.models.spending.deadline import HasDeadline, in_time
from replan.ports.retriever import Retriever, SearchRequest, SearchResponse
from replan.prompts.sections import place_of, within_budget
from replan.state.knowledge import Chunk, Knowledge, RAGOptions

LONGEST_CHUNK = 4_000
"""The most characters of a chunk that are shown; other retrievers may return whole books."""

LONGEST_NAME = 400
"""Characters of a source, a heading, or a sentence of a retriever."""

MOST_TOLD = 20
"""Sentences about what could not be searched."""


@dataclass(frozen=True)
class _Counting:
    """What of a retriever's answer counts, and a sentence for each chunk that does not."""

    chunks: list[Chunk]  # the best first
    left_out: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


def _counting(response: SearchResponse, options: RAGOptions) -> _Counting:
    least, most = options.given["min_score"], options.given["top_k"]
    chunks = [*response.chunks, *response.below]
    odd = [chunk for chunk in chunks if not math.isfinite(chunk.score)]
    full = [chunk for chunk in chunks if math.isfinite(chunk.score) and chunk.content.strip()]
    ordered = sorted(full, key=lambda chunk: -chunk.score)[:most]
    enough = [chunk for chunk in ordered if chunk.score >= least]
    low = ordered[len(enough) :]
    left_out = [*map(_name, response.skipped), *map(_left_out_for_score, odd)]
    unused = [
        f"{place_of(_bounded(chunk))} is not used: its score {chunk.score:.3g} is below "
        f"min_score={least:g}."
        for chunk in low
    ]
    failed = ()
    if low and not enough:
        best = f"the best passage has the score {low[0].score:.3g}"
        failed = (f"{best}, and min_score is {least:g}.",)
    return _Counting([*map(_bounded, enough)], _few(left_out), _few(unused), failed)


def _few(sentences: Sequence[str]) -> tuple[str, ...]:
    more = len(sentences) - MOST_TOLD
    return (*sentences[:MOST_TOLD], *((f"{more} more are left out.",) if more > 0 else ()))


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


def _response(value: object) -> SearchResponse:
    """Read what a retriever returned."""
    if not isinstance(value, SearchResponse | Mapping):
        kind = "nothing" if value is None else type(value).__name__
        raise TypeError(f"the retriever returned {kind}; return a SearchResponse(chunks=[...])")
    try:
        return SearchResponse.model_validate(value)
    except ValidationError as error:
        raise TypeError(f"the retriever returned what is {reason_of(error)}") from None


@dataclass(frozen=True)
class Search:
    """Everything needed to search for knowledge about a task."""

    retriever: Retriever
    options: RAGOptions
    task: str
    tenant: str
    config: RunnableConfig
    timed: HasDeadline  # whose time it takes
    ask: Ask

    async def run(self, emitter: Emitter, **about: Any) -> Knowledge | None:
        """Search, and report it; None if it failed, and the work continues without knowledge."""
        started = time.monotonic()
        knowledge, counting, error = Knowledge(), _Counting([]), ""
        try:
            counting = _counting(await self._search(), self.options)
            reading = ChunkReader(self.options, self.task, self.timed, self.ask)
            knowledge = await reading.read(counting.chunks)
        except Exception as problem:
            # A retriever is code of others.
            if is_fatal_for_run(problem):
                raise
            error = describe(problem)
        emitter.stream(
            KnowledgeRetrieved,
            **about,
            mode=self.options.mode,
            sources=knowledge.sources,
            skipped=counting.left_out,
            unused=(*knowledge.unused, *counting.unused),
            failed=(*knowledge.failed, *counting.failed),
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
            response = await call(self.retriever.search, request, self.config)
        except SystemExit as error:
            raise RuntimeError(f"it tried to exit the process (exit {error.code})") from error
        except (Exception, asyncio.CancelledError, KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:
            raise RuntimeError(describe(error)) from error
        finally:
            inherited_config.reset(inherited)
        return _response(response)
