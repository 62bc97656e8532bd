"""Passages found by their meaning, too: kept by content, asked for once, told if they fail."""

import sqlite3
import sys
import threading
from contextlib import closing

import pytest

from replan import LimitReachedError
from replan.adapters.knowledge import folder as folder_module, vectors
from replan.adapters.knowledge.fusing import fused
from replan.errors import RetrievalError, UnpricedModelError
from replan.knowledge import FolderRetriever, SearchRequest
from unit.knowledge.meanings import Meanings


class Broken(Meanings):
    def __init__(self, give):
        super().__init__()
        self.give = give

    def embed_query(self, text):
        return self.give()

    embed_documents = Meanings.embed_documents


def fail():
    raise ConnectionError("no route to the server")


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "cars.md").write_text("# Cars\n\nAn automobile needs oil.\n")
    (folder / "bees.md").write_text("# Bees\n\nHoney is harvested in July.\n")
    return folder


def retriever_of(folder, tmp_path, model):
    return FolderRetriever(folder, cache=tmp_path / "cache", embeddings=model)


def search(retriever, query, **request):
    found = retriever.search(SearchRequest(query=query, **request))
    return [each.source for each in found.chunks], list(found.skipped)


def test_a_passage_is_found_that_shares_no_word_with_the_question(folder, tmp_path):
    words = FolderRetriever(folder, cache=tmp_path / "cache")
    assert search(words, "Which motor?") == ([], [])
    meaning = retriever_of(folder, tmp_path, Meanings())
    assert search(meaning, "Which motor?") == (["cars.md"], [])


def test_a_filter_bounds_what_is_found_by_meaning(folder, tmp_path):
    meaning = retriever_of(folder, tmp_path, Meanings())
    assert search(meaning, "motor car", filters={"file": "bees*"}) == ([], [])


def test_only_passages_that_are_new_are_asked_for_also_by_another_process(folder, tmp_path):
    model = Meanings()
    search(retriever_of(folder, tmp_path, model), "car")
    assert sorted(model.documents) == [
        "Bees\nHoney is harvested in July.",
        "Cars\nAn automobile needs oil.",
    ]
    (folder / "sea.md").write_text("A wave of the sea.\n")
    (folder / "cars.md").rename(folder / "vehicles.md")
    vectors.MATRICES.clear()
    other = Meanings()
    assert search(retriever_of(folder, tmp_path, other), "ocean") == (["sea.md"], [])
    assert other.documents == ["A wave of the sea."]
    assert search(retriever_of(folder, tmp_path, other), "car") == (["vehicles.md"], [])


def test_what_changed_is_found_by_its_new_meaning_alone(folder, tmp_path):
    retriever = retriever_of(folder, tmp_path, Meanings())
    assert search(retriever, "motor")[0] == ["cars.md"]
    (folder / "cars.md").write_text("# Cars\n\nAn ocean of noise.\n")
    assert search(retriever, "motor")[0] == []
    assert search(retriever, "sea")[0] == ["cars.md"]


def test_two_models_do_not_share_vectors(folder, tmp_path):
    search(retriever_of(folder, tmp_path, Meanings()), "car")
    other = Meanings()
    other.model = "other"
    search(retriever_of(folder, tmp_path, other), "car")
    assert len(other.documents) == 2


@pytest.mark.parametrize(
    ("give", "told"),
    [
        (fail, "ConnectionError: no route to the server."),
        (lambda: ["a"], "vectors of numbers"),
        (lambda: [float("nan")] * 3, "vectors of numbers"),
        (lambda: [1.0], "differ in length"),
    ],
)
def test_where_a_model_fails_words_are_searched_and_it_is_said(folder, tmp_path, give, told):
    found, (left_out,) = search(retriever_of(folder, tmp_path, Broken(give)), "honey")
    assert found == ["bees.md"]
    assert left_out.startswith("meanings failed, so passages are found by their words alone: ")
    assert told in left_out


@pytest.mark.parametrize(
    "error", [LimitReachedError("max_model_calls", 3), UnpricedModelError("prices", "meanings")]
)
def test_a_limit_or_a_missing_price_ends_the_search_and_not_the_meanings_alone(
    folder, tmp_path, error
):
    def refuse():
        raise error

    with pytest.raises(type(error)):
        search(retriever_of(folder, tmp_path, Broken(refuse)), "honey")


def test_a_model_that_hangs_is_given_up(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(folder_module, "SECONDS", 0.05)
    forever = threading.Event()
    found, (left_out,) = search(retriever_of(folder, tmp_path, Broken(forever.wait)), "honey")
    forever.set()
    assert found == ["bees.md"]
    assert "it did not answer within 0.05 s" in left_out


def test_a_search_that_runs_out_of_time_says_how_many_are_missing_and_the_next_goes_on(
    folder, tmp_path, monkeypatch
):
    monkeypatch.setattr(vectors, "FIRST", 1)
    monkeypatch.setattr(vectors, "SECONDS", 0.0)
    retriever = retriever_of(folder, tmp_path, Meanings())
    found, (left_out,) = search(retriever, "honey")
    assert found == ["bees.md"]
    assert left_out.startswith("Passages without vectors yet: 2; they are found by their words")
    monkeypatch.setattr(vectors, "SECONDS", 10.0)
    assert search(retriever, "motor") == (["cars.md"], [])


def test_all_vectors_can_be_asked_for_before(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(vectors, "FIRST", 1)
    monkeypatch.setattr(vectors, "MOST_CALLS", 1)
    model = Meanings()
    retriever = retriever_of(folder, tmp_path, model)
    assert "Passages without vectors yet: 1;" in search(retriever, "honey")[1][0]
    (folder / "bad.md").write_bytes(b"\x00")
    assert retriever.prepare() == ["bad.md is left out: it is not text."]
    assert len(model.documents) == 2
    search(retriever, "honey")
    assert len(model.documents) == 2


def test_many_searches_at_once_ask_for_each_vector_once(folder, tmp_path):
    everybody_asked = threading.Event()

    class Slow(Meanings):
        def embed_query(self, text):
            vector = super().embed_query(text)
            if len(self.queries) == 4:
                everybody_asked.set()
            return vector

        def embed_documents(self, texts):
            everybody_asked.wait(10)
            return super().embed_documents(texts)

    model, found = Slow(), []
    retriever = retriever_of(folder, tmp_path, model)
    threads = [
        threading.Thread(target=lambda: found.append(search(retriever, "motor"))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [(["cars.md"], [])] * 4
    assert len(model.documents) == 2


def test_vectors_of_texts_that_are_gone_do_not_pile_up(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(vectors, "FIRST", 2)
    retriever = retriever_of(folder, tmp_path, Meanings())
    for number in range(10):
        (folder / "cars.md").write_text(f"An automobile of the year {number}.\n")
        search(retriever, "motor")
    (index,) = (tmp_path / "cache").glob("*.db")
    with closing(sqlite3.connect(index)) as connection:
        assert connection.execute("SELECT count(*) FROM vectors").fetchone()[0] <= 7


def test_a_name_that_no_team_has_built_is_refused_with_the_fix(folder, tmp_path):
    with pytest.raises(RetrievalError, match=r"openai:m is the name .* an Embeddings of LangChain"):
        search(retriever_of(folder, tmp_path, "openai:m"), "honey")


def test_without_numpy_the_extra_is_named(folder, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "numpy", None)
    with pytest.raises(RetrievalError, match=r"pip install 'replan\[vectors\]'"):
        search(retriever_of(folder, tmp_path, Meanings()), "honey")


def test_places_are_joined_and_the_first_in_all_rankings_has_the_score_one():
    ranked = fused([["a", "b", "c"], ["a", "c"]])
    assert [each for each, _ in ranked] == ["a", "c", "b"]
    assert ranked[0][1] == 1.0
    assert fused([[], []]) == []
