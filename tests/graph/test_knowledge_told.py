"""What is told of knowledge beside what its page shows: of folders, huge texts, wrong values."""

import asyncio

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import InvalidUpdateError
from pydantic import BaseModel

from replan import RAGOptions, Specialist, SpecialistResult, Team, build_graph, open_runtime, stream
from replan.knowledge import FolderRetriever
from replan.testing import ScriptedModel, always
from scripts import DONE, THREAD

PLAN = "---\ncomplexity: complex\n---\n# Look\n\n- [ ] 1. When are refunds paid? @clerk\n"
FOUND = [
    {"content": f"Text {n}.", "source": f"{n}.md", "line": 1, "score": 1 - n / 10} for n in range(4)
]


class Given:
    def __init__(self, *chunks, **more):
        self.response = {"chunks": chunks, **more}

    def search(self, request):
        return self.response


async def ran(retriever, rag):
    """Give the result of a step, what was told of its search, what it was shown, the warnings."""
    seen = []

    def look(context):
        seen.append(context.knowledge_context)
        return "Done."

    with ScriptedModel({"think": PLAN, "feedback": DONE}) as model:
        clerk = Specialist("clerk", "Looks up.", run=look)
        graph = build_graph(Team(model, [clerk], knowledge=retriever, rag=rag))
        events = [event async for event in stream(graph, "Refunds?")]
    told = [each for each in events if each.type == "knowledge_retrieved" and each.step_id]
    step = next(each.result for each in events if each.type == "specialist_completed")
    return step, told, seen, events[-1].warnings


async def test_texts_that_no_storage_keeps_and_huge_ones_are_bounded():
    huge = "x" * 50_000_000
    odd = {"content": f"a\x00b\ud800{huge}", "source": f"s\x00{huge}", "heading": f"\ud800{huge}"}
    step, (event,), (shown,), _ = await ran(
        Given(odd, skipped=[f"file {n} {huge[:9_000]}" for n in range(1_000)]), RAGOptions()
    )
    assert "\x00" not in shown
    assert shown.encode()
    assert len(shown) < 6_000
    assert len(step.sources[0].source) + len(step.sources[0].heading) < 1_000
    assert len(event.skipped) == 21
    assert event.skipped[-1] == "980 more are left out."
    assert len(str(event.skipped)) < 10_000


async def test_a_warning_of_an_attempt_that_was_cut_off_is_not_lost():
    at_work, searches = asyncio.Event(), []

    class Fails:
        def search(self, request):
            searches.append(request)
            if len(searches) < 3:
                raise ConnectionError("the index does not answer")
            return Given(*FOUND).response

    async def look(context):
        if context.plan_step.id == 2 and context.attempt == 1:
            at_work.set()
            await asyncio.Event().wait()
        return "Done."

    clerk = Specialist("clerk", "Looks up.", run=look, effects="pure")
    plan = "- [ ] 1. When? @clerk\n- [ ] 2. How much? @clerk (after 1)\n"
    with ScriptedModel({"feedback": DONE}) as model:
        team = Team(model, [clerk], knowledge=Fails(), rag=RAGOptions())
        async with open_runtime(team, storage=":memory:") as runtime:
            going = await runtime.start({"plan": plan}, run_id="r")
            await at_work.wait()
            await runtime.stop("r", force=True)
            assert (await going).outcome == "interrupted"
            result = await runtime.resume("r")
    said = "continues without knowledge: ConnectionError: the index does not answer"
    assert result.outcome == "completed"
    assert sorted(result.state["warnings"]) == [
        f"Step 1 (attempt 1) {said}",
        f"Step 2 (attempt 1) {said}",
    ]


async def test_a_minimum_score_that_leaves_nothing_of_a_folder_is_a_warning(tmp_path):
    (tmp_path / "a.md").write_text("Refunds of parcels take 30 days.\n")
    retriever = FolderRetriever(tmp_path, cache=tmp_path / ".cache")
    step, (event,), (shown,), warnings = await ran(retriever, RAGOptions(min_score=0.9))
    assert (step.sources, event.sources, shown) == ((), (), "")
    assert event.unused == ("a.md:1 is not used: its score 0.5 is below min_score=0.9.",)
    assert "the best passage has the score 0.5, and min_score is 0.9." in str(warnings)


class Town(BaseModel):
    name: str
    people: int


def wrong_result(context):
    return SpecialistResult(confidence=7)


def wrong_value(context):
    return Town.model_validate({"people": "many"}).name


def told_of_state(graph):
    return graph.aupdate_state(THREAD, {"usage": {"calls": "many"}}, as_node="think")


def told_of_messages(graph):
    return graph.ainvoke({"messages": [{"role": 7}]}, THREAD)


@pytest.mark.parametrize("work", [wrong_result, wrong_value])
async def test_a_step_whose_code_makes_a_wrong_value_says_which_field_is_wrong(work):
    clerk = Specialist("clerk", "Looks up.", run=work)
    with ScriptedModel({"feedback": always(DONE)}) as model:
        graph = build_graph(Team(model, [clerk]))
        state = await graph.ainvoke({"plan": "- [ ] 1. Look @clerk (retries 0)\n"})
    error = state["current_specialist_results"]["1/clerk"].error
    field = "confidence" if work is wrong_result else "people"
    assert f"{field}: Input should be" in error
    assert "pydantic.dev" not in error
    assert "validation error" not in error


@pytest.mark.parametrize("call", [told_of_state, told_of_messages])
async def test_a_wrong_input_of_the_graph_is_refused_in_plain_words(call):
    clerk = Specialist("clerk", "Looks up.", run=lambda context: "Done.")
    graph = build_graph(Team(ScriptedModel({}), [clerk]), checkpointer=InMemorySaver())
    with pytest.raises(InvalidUpdateError, match="State key") as caught:
        await call(graph)
    assert "pydantic" not in str(caught.value)
