"""LangChain's retrievers and vector stores: scores of one kind, tenants never mixed."""

import asyncio
from datetime import date

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_postgres import Column, PGEngine, PGVectorStore

from replan.errors import RetrievalError
from replan.knowledge import (
    FolderRetriever,
    LangChainRetriever,
    SearchRequest,
    VectorStoreRetriever,
)


class Letters(Embeddings):
    """Counts the letters a, b and c."""

    def embed_documents(self, texts):
        return [[float(text.count(letter)) + 0.01 for letter in "abc"] for text in texts]

    def embed_query(self, text):
        return self.embed_documents([text])[0]


class Fixed(BaseRetriever):
    found: list[Document]

    def _get_relevant_documents(self, query, *, run_manager):
        return self.found


class Store(InMemoryVectorStore):
    """With relevance scores, and filters that are mappings, as stores in databases have."""

    def _select_relevance_score_fn(self):
        return lambda cosine: cosine

    def similarity_search_with_score(self, query, k=4, **given):
        wanted = given.pop("filter", {})
        fits = lambda document: wanted.items() <= document.metadata.items()  # noqa: E731
        return super().similarity_search_with_score(query, k, filter=fits, **given)


class Deaf(Store):
    """Takes filters, and does nothing with them."""

    def similarity_search_with_score(self, query, k=4, **given):
        return InMemoryVectorStore.similarity_search_with_score(self, query, k)


def filled(kind):
    store = kind(Letters())
    for tenant in ("north", "south"):
        texts = [Document(text, metadata={"tenant": tenant, "source": text}) for text in "abc"]
        store.add_documents(texts)
    return store


def search(retriever, query="a", **request):
    found = retriever.search(SearchRequest(query=query, **request))
    return [(each.source, round(each.score, 2)) for each in found.chunks]


def test_a_retriever_gives_its_order_with_places_as_scores_or_its_own_scores():
    plain = [Document("x", metadata={"source": "x"}), Document("y", id="y")]
    assert search(LangChainRetriever(Fixed(found=plain))) == [("x", 1.0), ("y", 0.5)]
    scored = [
        Document("x", metadata={"source": "x", "similarity": 0.2}),
        Document("y", metadata={"source": "y", "score": 0.9, "similarity": 0.1}),
    ]
    assert search(LangChainRetriever(Fixed(found=scored))) == [("y", 0.9), ("x", 0.2)]
    assert search(LangChainRetriever(Fixed(found=scored)), min_score=0.5, top_k=1) == [("y", 0.9)]


def test_a_page_is_the_place_of_a_document_and_its_metadata_is_kept_as_json():
    page = Document("one\ntwo", metadata={"source": "a.pdf", "page": 2, "on": date(2026, 1, 2)})
    (chunk,) = LangChainRetriever(Fixed(found=[page])).search(SearchRequest(query="a")).chunks
    assert (chunk.content, chunk.line) == ("one two", 3)
    assert chunk.metadata["on"] == "2026-01-02"


def test_a_store_gives_its_relevance_scores_and_takes_filters():
    retriever = VectorStoreRetriever(filled(Store))
    assert search(retriever, top_k=2) == [("a", 1.0), ("a", 1.0)]
    assert search(retriever, filters={"source": "b"}, top_k=1)[0][0] == "b"


def test_a_tenant_sees_its_own_passages_only():
    retriever = VectorStoreRetriever(filled(Store), tenant_field="tenant")
    found = retriever.search(SearchRequest(query="a", tenant_id="north", top_k=9)).chunks
    assert [each.metadata["tenant"] for each in found] == ["north"] * 3


@pytest.mark.parametrize(
    ("retriever", "request_", "told"),
    [
        (LangChainRetriever(Fixed(found=[])), {"tenant_id": "t"}, "cannot separate tenants"),
        (LangChainRetriever(Fixed(found=[])), {"filters": {"a": 1}}, "has no filter a"),
        (VectorStoreRetriever(filled(Store)), {"tenant_id": "t"}, "cannot separate tenants"),
        (VectorStoreRetriever(filled(Store), tenant_field="tenant"), {}, "needs a tenant"),
        (
            VectorStoreRetriever(filled(Store), tenant_field="tenant"),
            {"tenant_id": "north", "filters": {"tenant": "south"}},
            "a filter names another tenant",
        ),
        (
            VectorStoreRetriever(filled(Deaf), tenant_field="tenant"),
            {"tenant_id": "north"},
            "passages whose tenant is not the tenant",
        ),
        (
            VectorStoreRetriever(filled(InMemoryVectorStore)),
            {},
            "InMemoryVectorStore has no relevance scores. Give score=",
        ),
        (VectorStoreRetriever(filled(Store)), {"knowledge_base_ids": ["x"]}, "no knowledge bases"),
    ],
)
def test_what_an_adapter_cannot_do_is_refused_with_the_fix(retriever, request_, told):
    with pytest.raises(RetrievalError, match=told):
        search(retriever, **request_)


def test_shared_knowledge_is_for_every_tenant():
    assert search(VectorStoreRetriever(filled(Store), shared=True), tenant_id="t")
    assert search(LangChainRetriever(Fixed(found=[Document("x")]), shared=True), tenant_id="t")


def test_a_store_with_filters_and_scores_of_its_own_kind():
    def fits(filters):
        return lambda document: document.metadata["source"] == filters["source"]

    retriever = VectorStoreRetriever(
        filled(InMemoryVectorStore), as_filter=fits, score=lambda cosine: cosine / 2
    )
    assert search(retriever, "b", filters={"source": "b"}, top_k=1) == [("b", 0.5)]


@pytest.fixture
def policies(tmp_path):
    for tenant, days in (("north", "14"), ("south", "30")):
        folder = tmp_path / "policies" / tenant
        folder.mkdir(parents=True)
        (folder / "refunds.md").write_text(f"# Refunds\n\nbb: paid within {days} days.\n")
        (folder / "bees.md").write_text("# Bees\n\naaaa: honey in July.\n")
    return FolderRetriever(str(tmp_path / "policies" / "{tenant}"), cache=tmp_path / "cache")


def test_the_passages_of_a_folder_fill_a_store_and_keep_their_places(policies):
    store = InMemoryVectorStore(Letters())
    for _ in range(2):
        store.add_documents(policies.documents(tenant="north"))
    retriever = VectorStoreRetriever(store, shared=True, score=float)
    (best, _) = retriever.search(SearchRequest(query="bbbb", tenant_id="north")).chunks
    assert (best.source, best.line) == ("refunds.md", 3)
    assert best.content == "Refunds\nbb: paid within 14 days."
    assert len(store.store) == 2


async def test_a_store_in_postgresql_is_filled_from_folders_and_searched_for_each_tenant(
    policies, empty_database
):
    address = empty_database.replace("postgresql://", "postgresql+psycopg://", 1)
    engine = PGEngine.from_connection_string(address)
    columns = [Column("tenant", "TEXT"), Column("source", "TEXT"), Column("line", "INTEGER")]
    names = [each.name for each in columns]
    try:
        await engine.ainit_vectorstore_table("passages", 3, metadata_columns=columns)
        store = await PGVectorStore.create(engine, Letters(), "passages", metadata_columns=names)
        for tenant in ("north", "south"):
            await store.aadd_documents(policies.documents(tenant=tenant))
        retriever = VectorStoreRetriever(store, tenant_field="tenant", score=lambda far: 1 - far)
        for tenant, days in (("north", "14"), ("south", "30")):
            request = SearchRequest(query="bbbb", tenant_id=tenant, top_k=1)
            (best,) = (await asyncio.to_thread(retriever.search, request)).chunks
            assert (best.source, best.line) == ("refunds.md", 3)
            assert days in best.content
    finally:
        await engine.close()
