"""A folder in a vector store whose model answers over HTTP: found by meaning, and charged."""

import asyncio

import openai
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_openai import OpenAIEmbeddings

from replan import Host, Price, Specialist, Team, build_graph, run
from replan.knowledge import FolderRetriever, VectorStoreRetriever
from replan.testing import OpenAIServer

PLAN = "---\ncomplexity: complex\n---\n# Look\n\n- [ ] 1. Who harvests the honey? @clerk\n"
ANSWER = "---\nverdict: complete\n---\nNobody [[bees.md]]."
SCRIPT = {"think": PLAN, "step 1": "Nobody [[bees.md]].", "feedback": ANSWER}


async def test_a_question_is_embedded_by_the_server_and_counts_as_a_call(tmp_path, monkeypatch):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "bees.md").write_text("# Bees\n\nHoney is harvested in July.\n")
    (tmp_path / "docs" / "cars.md").write_text("# Cars\n\nCars need oil.\n")
    folder = FolderRetriever(tmp_path / "docs", cache=tmp_path / "cache")
    with OpenAIServer(SCRIPT) as server, openai.DefaultHttpxClient() as http:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
        # A compatible server takes texts, not the numbers of OpenAI's tokens.
        model = OpenAIEmbeddings(
            model="tiny-embedding", check_embedding_ctx_length=False, http_client=http
        )
        store = InMemoryVectorStore(model)
        await asyncio.to_thread(store.add_documents, folder.documents())
        team = Team(
            Host("openai:m"),
            [Specialist("clerk", "Answers questions.", chat_model="openai:m")],
            knowledge=VectorStoreRetriever(store, score=float),
            prices={"openai:m": Price(input=1, output=1)},
        )
        result = await run(build_graph(team), "Look")
        assert server.embedded[-2:] == ("Look", "Who harvests the honey?")
        prompts = [str(each.messages) for each in server.requests]
    assert result.outcome == "completed"
    assert any("Honey is harvested in July." in each for each in prompts)
    # The plan, the step, the judgement, and two questions whose price is not known.
    assert (result.usage.calls, result.usage.unpriced_calls) == (5, 2)
    assert result.usage.cost is None
