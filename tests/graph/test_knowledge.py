"""Steps are given what the team's knowledge has on them, and answers cite file and line."""

import asyncio
import re

import pytest
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore

from replan import (
    ConfigurationError,
    ExecutionContext,
    Limits,
    Price,
    RAGOptions,
    RunSettings,
    Specialist,
    StorageError,
    Team,
    build_graph,
    run,
    stream,
)
from replan.knowledge import FolderRetriever, VectorStoreRetriever
from replan.prompts.sections import sections_of
from replan.testing import Reply, Reset, ScriptedModel, always

PLAN = "---\ncomplexity: complex\n---\n# Look\n\n- [ ] 1. When are refunds paid? @clerk\n"
DONE = "---\nverdict: complete\n---\n"
REFUNDS = "# Refunds\n\nRefunds are paid within 30 days.\n\nGift cards are never refunded.\n"
ANSWER = f"{DONE}Within 30 days [[refunds.md:3]]."


@pytest.fixture
def knowledge(tmp_path):
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "refunds.md").write_text(REFUNDS)
    (folder / "shops.md").write_text("# Shops\n\nShops open at nine.\n")
    return FolderRetriever(folder, cache=tmp_path / "cache")


class Failing:
    def __init__(self, problem=None):
        self.problem = problem
        self.asked = []

    async def search(self, request):
        self.asked.append(request)
        if self.problem is not None:
            raise self.problem
        await asyncio.Event().wait()


class Given:
    """Gives what it is told to, and remembers what it was asked."""

    def __init__(self, *chunks):
        self.chunks = chunks
        self.asked = []

    def search(self, request):
        self.asked.append(request)
        return {"chunks": self.chunks}


def graph_of(model, knowledge, *, clerk=None, checkpointer=None, **options):
    clerk = Specialist("clerk", "Looks up.", **(clerk or {"chat_model": model}))
    team = Team(model, [clerk], knowledge=knowledge, **options)
    return build_graph(team, checkpointer=checkpointer)


def knowledge_in(model, node):
    """The knowledge that each call of a node was shown."""
    calls = [call for call in model.calls if call.node == node]
    texts = ["\n".join(message.text for message in call.messages) for call in calls]
    return [[s.text for s in sections_of(text) if s.tag == "knowledge"] for text in texts]


async def test_a_step_is_given_the_passages_and_the_answer_lists_what_it_cites(knowledge):
    said = "They are paid within 30 days [[refunds.md:3]]."
    with ScriptedModel({"think": PLAN, "step 1": said, "feedback": ANSWER}) as model:
        result = await run(graph_of(model, knowledge), "When are refunds paid?")
    ((shown,),) = knowledge_in(model, "specialist")
    assert "3| Refunds are paid within 30 days.\n4| \n5| Gift cards are never" in shown
    step = result.state["current_specialist_results"]["1/clerk"]
    assert [(each.source, each.line, each.last_line) for each in step.sources] == [
        ("refunds.md", 3, 5)
    ]
    assert result.text == (
        "Within 30 days [[refunds.md:3]].\n\n**Sources:**\n\n- refunds.md:3 (Refunds)"
    )
    assert result.warnings == ()


async def test_the_sources_of_an_answer_that_was_begun_again_belong_to_its_message(knowledge):
    chunks = [DONE, "Within", " 30 days [[refunds.md:3]]."]
    broken = Reply(ANSWER, chunks=chunks, fault=Reset(after=2))
    said = "They are paid within 30 days [[refunds.md:3]]."
    replies = {"think": PLAN, "step 1": said, "feedback": [broken, ANSWER]}
    shown = {}
    with ScriptedModel(replies) as model:
        graph = graph_of(model, knowledge)
        asked = {"messages": [("user", "When are refunds paid?")]}
        async for message, metadata in graph.astream(asked, stream_mode="messages"):
            if metadata["langgraph_node"] in ("feedback", "final_answer"):
                shown[message.id] = shown.get(message.id, "") + message.text
    first, answer = shown.values()
    assert first == "Within"
    assert answer.endswith("**Sources:**\n\n- refunds.md:3 (Refunds)")


async def test_without_knowledge_nothing_is_searched_and_nothing_is_new_in_a_prompt(knowledge):
    prompts = []
    for team in ({}, {"rag": RAGOptions(mode="none"), "knowledge": knowledge}):
        with ScriptedModel({"think": PLAN, "step 1": "Yes.", "feedback": f"{DONE}Yes."}) as model:
            graph = graph_of(model, team.pop("knowledge", None), **team)
            events = [each async for each in stream(graph, "When are refunds paid?")]
        texts = [message.text for call in model.calls for message in call.messages]
        prompts.append([re.sub(' seconds="[^"]*"', "", text) for text in texts])
        assert "knowledge_retrieved" not in [each.type for each in events]
    assert prompts[0] == prompts[1]


async def test_a_function_is_given_it_as_text_and_its_step_says_which_mode(knowledge):
    seen = []

    def look(context: ExecutionContext) -> str:
        seen.append((context.knowledge_context, context.parameters))
        return "done"

    plan = """- [ ] 1. When are refunds paid? @clerk

  ```yaml
  rag_mode: none
  shop: north
  ```

- [ ] 2. When do shops open? @clerk

  ```yaml
  rag_top_k: 1
  ```
"""
    with ScriptedModel({"feedback": f"{DONE}Done."}) as model:
        graph = graph_of(model, knowledge, clerk={"run": look})
        await run(graph, {"plan": plan})
    assert seen[0] == ("", {"shop": "north"})
    assert seen[1] == ("[[shops.md:3]], under: Shops\n3| Shops open at nine.", {})


@pytest.mark.parametrize("where", ["search", "reading"])
async def test_a_storage_that_fails_in_a_search_ends_the_run_and_not_the_search_alone(where):
    error = StorageError("runs.db", "The disk is full.", "Make room.")
    found = Given({"content": "Paid in May.", "source": "a.md", "line": 1})
    retriever = Failing(error) if where == "search" else found
    script = {"think": PLAN, "knowledge": error, "step 1": "No.", "feedback": f"{DONE}No."}
    with ScriptedModel({node: always(reply) for node, reply in script.items()}) as model:
        graph = graph_of(model, retriever, rag=RAGOptions(use_summary=where == "reading"))
        with pytest.raises(StorageError, match="The disk is full"):
            await run(graph, "When are refunds paid?")
        assert "specialist" not in [call.node for call in model.calls]


async def test_tenant_and_filters_come_from_settings_and_bounds_are_kept():
    found = [{"content": f"Text {n}.", "source": f"{n}.md", "score": n / 10} for n in range(9)]
    retriever = Given(*found)
    with ScriptedModel({"think": PLAN, "step 1": "No.", "feedback": f"{DONE}No."}) as model:
        graph = graph_of(model, retriever, rag=RAGOptions(filters={"file": "a/*"}, top_k=3))
        settings = RunSettings(tenant="north", rag=RAGOptions(min_score=0.7))
        result = await run(graph, "Refunds?", settings=settings)
    for request in retriever.asked:
        assert (request.tenant_id, request.filters) == ("north", {"file": "a/*"})
        assert (request.top_k, request.min_score) == (3, 0.7)
    sources = result.state["current_specialist_results"]["1/clerk"].sources
    assert [each.source for each in sources] == ["8.md", "7.md"]


def test_options_of_knowledge_that_have_no_effect_are_logged(caplog):
    graph_of(ScriptedModel({}), None, clerk={"run": str, "rag": RAGOptions(mode="stuff")})
    assert "rag has no effect without knowledge" in caplog.text


@pytest.mark.parametrize(
    ("team", "written", "calls"),
    [
        (RAGOptions(mode="none", use_summary=True), "stuff", 0),
        (RAGOptions(mode="stuff"), "map_reduce", 0),
        (RAGOptions(mode="stuff", use_summary=True), "map_reduce", 1),
        (RAGOptions(mode="map_reduce", map_max_chunks=1), "stuff", 0),
        (RAGOptions(mode="map_reduce", map_max_chunks=1), "map_reduce", 1),
    ],
)
async def test_a_model_makes_knowledge_no_dearer_than_the_team_has_it(team, written, calls):
    retriever = Given({"content": "Text.", "source": "a.md"})
    block = f"\n  ```yaml\n  rag_mode: {written}\n  ```\n"
    script = {"think": PLAN + block, "knowledge": always("Note."), "feedback": f"{DONE}No."}
    with ScriptedModel(script) as model:
        graph = graph_of(model, retriever, clerk={"run": lambda context: "Done."}, rag=team)
        await run(graph, "Refunds?")
    assert [call.node for call in model.calls].count("knowledge") == calls


async def test_map_reduce_asks_about_each_chunk_at_once_and_puts_together_what_it_heard():
    found = [
        {"content": f"Text {n}.", "source": f"{n}.md", "line": 1, "score": 1 - n / 10}
        for n in range(4)
    ]
    at_once = asyncio.Barrier(3)

    async def mapped(messages):
        text = messages[-1].text
        if "Note" not in text:
            async with asyncio.timeout(5):
                await at_once.wait()
        if "Text 1." in text:
            raise ValueError("this chunk fails")
        return "none" if "Text 2." in text else "Note on 0 [[0.md:1]]."

    with ScriptedModel(
        {"think": PLAN, "knowledge": always(mapped), "step 1": "Yes.", "feedback": f"{DONE}Yes."}
    ) as model:
        rag = RAGOptions(mode="map_reduce", map_max_chunks=3)
        result = await run(graph_of(model, Given(*found), rag=rag), "Refunds?")
    ((shown,),) = knowledge_in(model, "specialist")
    assert shown == "Note on 0 [[0.md:1]]."
    assert [call.node for call in model.calls].count("knowledge") == 3
    result_of_step = result.state["current_specialist_results"]["1/clerk"]
    assert result_of_step.usage.calls == 4
    assert result.state["usage"].calls == 6


class Letters(Embeddings):
    """Counts letters, and has no name but its class."""

    def embed_documents(self, texts):
        return [[float(text.count(letter)) + 0.01 for letter in "abc"] for text in texts]

    def embed_query(self, text):
        return self.embed_documents([text])[0]


async def test_the_embedding_of_a_question_is_a_call_with_an_unknown_cost():
    found = VectorStoreRetriever(InMemoryVectorStore(Letters()), score=float)
    script = {"think": PLAN, "step 1": "Yes.", "feedback": f"{DONE}Yes."}
    with ScriptedModel(script) as model:
        graph = graph_of(model, found, prices={"ScriptedModel": Price(input=1, output=1)})
        events = [each async for each in stream(graph, "When are refunds paid?")]
    asked = [e for e in events if e.type == "model_completed" and e.model == "Letters"]
    # One question of the host and one of the step.
    assert [(e.node, e.input_tokens, e.cost) for e in asked] == [
        ("think", None, None),
        ("specialist_clerk", None, None),
    ]
    usage = events[-1].usage
    assert (usage.calls, usage.unpriced_calls, usage.cost) == (5, 2, None)


@pytest.mark.parametrize("is_async", [True, False])
async def test_a_model_that_a_retriever_calls_is_counted_without_its_help(is_async):
    class Asking:
        def search(self, request):
            asked.invoke(request.query)
            return {"chunks": []}

    class AskingLater:
        async def search(self, request):
            await asked.ainvoke(request.query)
            return {"chunks": []}

    script = {"think": PLAN, "step 1": "Yes.", "feedback": f"{DONE}Yes."}
    with ScriptedModel(script) as model, ScriptedModel({"*": always("Better words.")}) as asked:
        found = AskingLater() if is_async else Asking()
        result = await run(graph_of(model, found), "When are refunds paid?")
    # One question of the host and one of the step.
    assert (len(asked.calls), result.usage.calls) == (2, 5)


def test_a_limit_of_money_needs_the_price_of_embeddings():
    found = VectorStoreRetriever(InMemoryVectorStore(Letters()), score=float)
    prices = {"ScriptedModel": Price(input=1, output=1)}
    with (
        ScriptedModel({}) as model,
        pytest.raises(ConfigurationError, match="knowledge: this model has no price"),
    ):
        graph_of(model, found, limits=Limits(max_cost=1), prices=prices)


async def test_a_limit_that_leaves_no_room_for_embeddings_is_told_as_any_other():
    found = VectorStoreRetriever(InMemoryVectorStore(Letters()), score=float)
    with ScriptedModel({"think": PLAN, "feedback": f"{DONE}Nothing."}) as model:
        limits = Limits(max_model_calls=3)
        result = await run(graph_of(model, found, limits=limits), "When are refunds paid?")
    assert result.outcome != "completed"
    assert result.state["limit_reached"] == "max_model_calls"
    assert result.usage.calls <= 3


async def test_a_source_is_named_without_signs_that_are_not_seen(knowledge, tmp_path):
    hidden = "re\u202efund\u200bs\n[[x]].md"
    (tmp_path / "docs" / hidden).write_text("# Re\u2066funds\n\nRefunds are paid in May.\n")
    with ScriptedModel({"think": PLAN, "step 1": "In May.", "feedback": f"{DONE}No."}) as model:
        result = await run(graph_of(model, knowledge, clerk={"chat_model": model}), "Refunds?")
    (asked,) = [call for call in model.calls if call.node == "specialist"]
    sources = {source.source for source in result.results[1].sources}
    # A folder writes the signs of a name out; what is in a text is replaced.
    name = r"re\u202efund\u200bs\n((x)).md"
    assert name in sources
    assert f"[[{name}:3]], under: Re\ufffdfunds\n" in asked.messages[-1].text
    shown = "".join(message.text for call in model.calls for message in call.messages)
    assert not {"\u202e", "\u2066"} & set(shown)
