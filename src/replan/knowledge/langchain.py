"""LangChain's retrievers and vector stores as knowledge."""

import json
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, LLMResult
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableConfig
from langchain_core.vectorstores import VectorStore

from replan.base.errors import RetrievalError
from replan.base.langgraph_inside.callbacks import report_call
from replan.base.texts.storable import storable
from replan.ports.retriever import SearchRequest, SearchResponse, best_of
from replan.state.knowledge import Chunk, Filter

Filters = Mapping[str, Filter]

_SCORES = ("score", "similarity")


@dataclass(frozen=True)
class LangChainRetriever:
    """Asks any retriever of LangChain.

    It takes only a question: a request with filters or knowledge bases is refused, and so is one of
    a tenant, unless the knowledge is shared. `score` and `similarity` of a document's metadata
    are its score; without them it is 1 divided by its place.

    Args:
        retriever: The retriever.
        shared: Whether all tenants have the same knowledge.
    """

    retriever: BaseRetriever
    shared: bool = False

    def search(
        self, request: SearchRequest, config: RunnableConfig | None = None
    ) -> SearchResponse:
        """Return the documents in the retriever's order.

        Raises:
            RetrievalError: The request asks for something that a retriever cannot do.
        """
        _check_bases(request)
        if request.filters:
            reason = f"a retriever of LangChain has no filter {', '.join(sorted(request.filters))}"
            raise RetrievalError(reason, "Use VectorStoreRetriever, or no filters.")
        if request.tenant_id and not self.shared:
            fix = "Use VectorStoreRetriever with tenant_field, or say shared=True."
            raise RetrievalError("a retriever of LangChain cannot separate tenants", fix)
        documents = self.retriever.invoke(request.query, config)
        chunks = [_chunk(document, 1 / place) for place, document in enumerate(documents, start=1)]
        return best_of(chunks, request)


@dataclass(frozen=True)
class VectorStoreRetriever:
    """Asks a LangChain vector store for passages close in meaning, with their scores.

    A tenant becomes a filter only by `tenant_field`; without it a request of a tenant is refused,
    unless the knowledge is shared.

    Args:
        store: The store.
        tenant_field: The field of a document's metadata that has its tenant; each request then
            needs one, and a passage of another tenant is an error.
        shared: Whether all tenants have the same knowledge.
        as_filter: Converts the filters to the store's argument `filter`; by default they are passed
            unchanged.
        score: Converts the store's scores, so that larger is better. By default the store's
            relevance scores are used, which some stores do not have.
    """

    store: VectorStore
    tenant_field: str = ""
    shared: bool = False
    as_filter: Callable[[Filters], Any] = dict
    score: Callable[[float], float] | None = None

    def search(
        self, request: SearchRequest, config: RunnableConfig | None = None
    ) -> SearchResponse:
        """Return the nearest passages; the question's embedding is charged as a call of its model.

        Raises:
            RetrievalError: The request asks for something that the store cannot do, or the store
                returned a passage of another tenant.
        """
        _check_bases(request)
        filters = self._filters(request)
        options = {"filter": self.as_filter(filters)} if filters else {}
        with _charged(self.embedding_names, request.query, config):
            scored = self._scored(request.query, request.top_k, options)
        self._check_tenants([document for document, _ in scored], request.tenant_id)
        return best_of([_chunk(*scored_document) for scored_document in scored], request)

    @property
    def embedding_names(self) -> tuple[str, ...]:
        """What the embedding model is called, whose calls are charged; empty without one."""
        model = self.store.embeddings
        if model is None:
            return ()
        names = (
            getattr(model, attribute, None) for attribute in ("model", "model_name", "model_id")
        )
        own = [name for name in names if isinstance(name, str) and name]
        return (own[0] if own else type(model).__name__,)

    def _filters(self, request: SearchRequest) -> Filters:
        tenant = request.tenant_id
        if not self.tenant_field:
            if tenant and not self.shared:
                fix = "Name the field of its metadata as tenant_field, or say shared=True."
                raise RetrievalError("this store cannot separate tenants", fix)
            return request.filters
        if not tenant:
            raise RetrievalError("this store needs a tenant", "Set tenant in RunSettings.")
        if request.filters.get(self.tenant_field, tenant) != tenant:
            fix = f"Leave {self.tenant_field} out: the tenant comes from RunSettings."
            raise RetrievalError("a filter names another tenant", fix)
        return {**request.filters, self.tenant_field: tenant}

    def _scored(self, query: str, most: int, options: Mapping[str, Any]) -> list[Any]:
        if self.score is not None:
            scored_documents = self.store.similarity_search_with_score(query, k=most, **options)
            return [(document, self.score(value)) for document, value in scored_documents]
        try:
            return self.store.similarity_search_with_relevance_scores(query, k=most, **options)
        except NotImplementedError as error:
            reason = f"{type(self.store).__name__} has no relevance scores"
            fix = "Give score=..., a function of the store's own score; larger results are better."
            raise RetrievalError(reason, fix) from error

    def _check_tenants(self, documents: Sequence[Document], tenant: str) -> None:
        """Refuse what a store gave that overlooks filters."""
        if self.tenant_field and any(
            cast("dict[str, object]", document.metadata).get(self.tenant_field) != tenant
            for document in documents
        ):
            reason = f"the store returned passages whose {self.tenant_field} is not the tenant"
            raise RetrievalError(reason, "It ignores filters: write as_filter=... for it.")


@contextmanager
def _charged(names: Sequence[str], text: str, config: RunnableConfig | None) -> Generator[None]:
    """Report what is done inside as the call of a model, whose tokens are not known."""
    if not names:
        yield
        return
    # LangChain reports no embeddings to callbacks, so the call is reported like that of a model.
    call = report_call(config, names, [HumanMessage(text)])
    try:
        yield
    except BaseException as error:
        call.on_llm_error(error)
        raise
    call.on_llm_end(LLMResult(generations=[[ChatGeneration(message=AIMessage(""))]]))


def _check_bases(request: SearchRequest) -> None:
    if request.knowledge_base_ids:
        fix = "Use filters, or a retriever of your own."
        raise RetrievalError("this knowledge has no knowledge bases", fix)


def _chunk(document: Document, score: float) -> Chunk:
    metadata = cast("dict[str, object]", document.metadata)
    scores = {name: metadata[name] for name in _SCORES if _is_number(metadata.get(name))}
    text, page, line = document.page_content, metadata.get("page"), metadata.get("line")
    if isinstance(page, int) and not isinstance(line, int):
        # LangChain counts pages from 0. All lines of a page have its place.
        line, text = page + 1, " ".join(text.split())
    return Chunk.model_validate(
        {
            "id": document.id or "",
            "content": text,
            "source": str(metadata.get("source") or document.id or ""),
            "line": line if isinstance(line, int) and line > 0 else None,
            "metadata": storable(json.loads(json.dumps(metadata, default=str))),
            **(scores or {"score": score}),
        }
    )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
