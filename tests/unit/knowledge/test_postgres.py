"""Knowledge in a real PostgreSQL with pgvector: by words and meaning, tenants never mixed."""

import psycopg
import pytest

from replan.errors import RetrievalError
from replan.knowledge import PostgresRetriever, SearchRequest
from unit.knowledge.meanings import Meanings


class Failing(Meanings):
    def vector(self, text):
        raise ConnectionError("no route")


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "docs"
    (folder / "farm").mkdir(parents=True)
    (folder / "cars.md").write_text("# Cars\n\nAn automobile needs oil.\n")
    (folder / "farm" / "bees.md").write_text("# Bees\n\n\nHoney is harvested in July.\n")
    (folder / "zh.txt").write_text("# 退货\n\n礼品卡不能退款。\n")
    return folder


@pytest.fixture
def retriever(empty_database):
    return PostgresRetriever(empty_database, Meanings())


def search(retriever, query, **request):
    found = retriever.search(SearchRequest(query=query, **request))
    return [(each.source, each.line, each.heading) for each in found.chunks]


def test_passages_are_found_by_words_and_by_meaning_in_two_languages(retriever, folder):
    assert retriever.sync(folder) == []
    assert search(retriever, "When is it harvested?") == [("farm/bees.md", 4, "Bees")]
    assert search(retriever, "Which motor?") == [("cars.md", 3, "Cars")]
    assert search(retriever, "礼品卡可以退款吗") == [("zh.txt", 3, "退货")]
    (best, *_) = retriever.search(SearchRequest(query="honey bee")).chunks
    assert (best.content, best.score) == ("Honey is harvested in July.", 1.0)


def test_a_second_sync_asks_for_what_changed_alone(retriever, folder):
    retriever.sync(folder)
    retriever.embeddings.documents.clear()
    assert retriever.sync(folder) == []
    assert retriever.embeddings.documents == []
    (folder / "cars.md").write_text("# Cars\n\nA wave of cars.\n")
    (folder / "farm" / "bees.md").unlink()
    (folder / "bad.md").write_bytes(b"\x00")
    assert retriever.sync(folder) == ["bad.md is left out: it is not text."]
    assert retriever.embeddings.documents == ["Cars\nA wave of cars."]
    assert search(retriever, "honey bee") == []
    assert search(retriever, "ocean") == [("cars.md", 3, "Cars")]


def test_another_model_makes_all_vectors_anew(retriever, folder, empty_database):
    retriever.sync(folder)
    other = Meanings()
    other.model = "other"
    with_other = PostgresRetriever(empty_database, other)
    assert search(with_other, "Which motor?") == []
    with_other.sync(folder)
    assert search(with_other, "Which motor?") == [("cars.md", 3, "Cars")]


def test_tenants_never_see_each_other(retriever, folder, tmp_path):
    (tmp_path / "north").mkdir()
    (tmp_path / "north" / "n.md").write_text("Honey of the north.\n")
    retriever.sync(folder)
    retriever.sync(tmp_path / "north", tenant="north")
    assert search(retriever, "honey", tenant_id="north") == [("n.md", 1, "")]
    assert search(retriever, "honey") == [("farm/bees.md", 4, "Bees")]
    found = retriever.search(SearchRequest(query="honey", tenant_id="' OR TRUE --"))
    assert [*found.chunks] == []
    assert [*found.skipped] == ["There is nothing of tenant ' OR TRUE -- in replan_knowledge."]


def test_text_is_never_a_part_of_a_query(retriever, folder):
    evil = "x'); DROP TABLE replan_knowledge; --"
    (folder / "evil.md").write_text(f"# {evil}\n\nhoney {evil} {{table}} %s :* & | ! <->\n")
    retriever.sync(folder)
    assert search(retriever, f"{evil} & | ! ( <-> ':*")
    assert len(search(retriever, "honey")) == 2


def test_a_filter_bounds_the_files_and_its_signs_are_taken_as_they_are(retriever, folder):
    (folder / "a_b.md").write_text("Honey.\n")
    (folder / "axb.md").write_text("Honey.\n")
    retriever.sync(folder)
    assert search(retriever, "honey", filters={"file": "farm/*"}) == [("farm/bees.md", 4, "Bees")]
    assert search(retriever, "honey", filters={"file": "a_b*"}) == [("a_b.md", 1, "")]
    for wrong in ({"filters": {"owner": "me"}}, {"knowledge_base_ids": ["x"]}):
        with pytest.raises(RetrievalError, match="no filter or base"):
            search(retriever, "honey", **wrong)


def test_where_the_model_fails_words_are_searched_and_a_sync_says_so(
    retriever, folder, empty_database
):
    retriever.sync(folder)
    failing = PostgresRetriever(empty_database, Failing())
    found = failing.search(SearchRequest(query="honey"))
    assert [each.source for each in found.chunks] == ["farm/bees.md"]
    assert "found by their words alone: ConnectionError: no route" in found.skipped[0]
    (folder / "cars.md").write_text("New.\n")
    with pytest.raises(RetrievalError, match="meanings returned no vectors: ConnectionError"):
        failing.sync(folder)


def test_what_keeps_it_from_working_is_said_with_the_fix(folder, empty_database):
    empty = PostgresRetriever(empty_database, Meanings())
    with pytest.raises(RetrievalError, match=r"no collection replan_knowledge\. Fill it with sync"):
        search(empty, "honey")
    with pytest.raises(RetrievalError, match="be the name of a collection"):
        PostgresRetriever(empty_database, Meanings(), "a; DROP").sync(folder)
    with pytest.raises(RetrievalError, match="there is no folder"):
        empty.sync(folder / "none")
    with pytest.raises(RetrievalError, match=r"cannot be used: .*Check the address"):
        search(PostgresRetriever("postgresql://x@127.0.0.1:9/y", Meanings()), "honey")
    with pytest.raises(RetrievalError, match='"klingon" does not exist'):
        PostgresRetriever(empty_database, Meanings(), "c", "klingon").sync(folder)
    with pytest.raises(RetrievalError, match="no graph of a team has built it"):
        search(PostgresRetriever(empty_database, "openai:m"), "honey")


def test_who_may_not_create_the_extension_is_told_what_to_run(folder, empty_database):
    with psycopg.connect(empty_database, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS replan_plain")
        connection.execute("CREATE ROLE replan_plain LOGIN")
    try:
        parts = psycopg.conninfo.conninfo_to_dict(empty_database)
        address = psycopg.conninfo.make_conninfo(**{**parts, "user": "replan_plain"})
        with pytest.raises(RetrievalError, match="administrator of it run: CREATE EXTENSION"):
            PostgresRetriever(address, Meanings()).sync(folder)
    finally:
        with psycopg.connect(empty_database, autocommit=True) as connection:
            connection.execute("DROP ROLE replan_plain")


def test_an_address_shows_no_password():
    assert "swordfish" not in repr(PostgresRetriever("postgresql://u:swordfish@h/d", Meanings()))
