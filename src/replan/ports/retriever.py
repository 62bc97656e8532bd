"""Where knowledge is found: passages for a question, with their sources."""

from collections.abc import Awaitable, Mapping, Sequence
from typing import Protocol

from pydantic import Field

from replan.base.values import Value
from replan.state.knowledge import ANY_SCORE, Chunk, Filter


class SearchRequest(Value):
    """A question to a retriever. Tenant and filters come from settings, never from a model.

    Attributes:
        query: The question, as people or models wrote it.
        knowledge_base_ids: Where to look; empty: everywhere.
        top_k: The maximum number of chunks.
        min_score: The minimum score; by default any.
        filters: Conditions on chunks, in the terms of the retriever.
        tenant_id: The tenant; empty without tenants.
    """

    query: str
    knowledge_base_ids: Sequence[str] = ()
    top_k: int = Field(default=5, ge=1)
    min_score: float = ANY_SCORE
    filters: Mapping[str, Filter] = Field(default_factory=dict[str, Filter])
    tenant_id: str = ""


class SearchResponse(Value):
    """What a retriever found.

    Attributes:
        chunks: The best first.
        skipped: What could not be searched, one sentence each, with the name of the file.
        below: What was found and has less than the minimum score, if the retriever knows it.
    """

    chunks: Sequence[Chunk] = ()
    skipped: Sequence[str] = ()
    below: Sequence[Chunk] = ()


def best_of(
    chunks: Sequence[Chunk], request: SearchRequest, skipped: Sequence[str] = ()
) -> SearchResponse:
    """Keep of what was found what a question asks for, the best first."""
    ordered = sorted(chunks, key=lambda chunk: -chunk.score)[: request.top_k]
    enough = [chunk for chunk in ordered if chunk.score >= request.min_score]
    # A score that is no number is neither more nor less.
    below = [chunk for chunk in ordered if chunk not in enough]
    return SearchResponse(chunks=enough, skipped=skipped, below=below)


class Retriever(Protocol):
    """Finds knowledge."""

    def search(self, request: SearchRequest) -> SearchResponse | Awaitable[SearchResponse]:
        """Find the chunks that fit a question best; a function that is not async gets a thread.

        It may raise: the caller then continues without knowledge, and reports that. A second
        parameter gets the `RunnableConfig`; a chat model that it calls is only counted with it.
        """
        ...
