"""What of the found knowledge a step is not given, and what fails on the way, is told."""

import asyncio
import math

import pytest
from langchain_core.messages import AIMessage
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


async def ran(retriever, rag, *knowledge):
    """Give the result of a step, what was told of its search, what it was shown, the warnings."""
    seen = []

    def look(context):
        seen.append(context.knowledge_context)
        return "Done."

    script = {"think": PLAN, "feedback": DONE} | ({"knowledge": knowledge[0]} if knowledge else {})
    with ScriptedModel(script) as model:
        clerk = Specialist("clerk", "Looks up.", run=look)
        graph = build_graph(Team(model, [clerk], knowledge=retriever, rag=rag))
        events = [event async for event in stream(graph, "Refunds?")]
    told = [each for each in events if each.type == "knowledge_retrieved" and each.step_id]
    step = next(each.result for each in events if each.type == "specialist_completed")
    return step, told, seen, events[-1].warnings


def places(sources):
    return [f"{each.source}:{each.line}" for each in sources]


def reads(**replies):
    """Answer about each text that has a word: raise what is an error, else say it."""

    async def mapped(messages):
        text = messages[-1].text
        for word, reply in replies.items():
            if word in text.replace(" ", ""):
                if isinstance(reply, Exception):
                    raise reply
                return reply
        return "none"

    return always(mapped)


async def test_chunks_that_fail_or_do_not_help_are_no_sources_and_each_is_told():
    model = reads(Text0="It is so [[0.md:1]] [[9.md:1]].", Text1=ValueError("no such chunk"))
    rag = RAGOptions(mode="map_reduce", map_max_chunks=3)
    step, (event,), (shown,), warnings = await ran(Given(*FOUND), rag, model)
    assert shown == "It is so [[0.md:1]]."
    assert places(step.sources) == places(event.sources) == ["0.md:1"]
    assert event.unused == (
        "3.md:1 is not read: map_max_chunks is 3.",
        "2.md:1 is not used: nothing in it helps.",
    )
    assert event.failed == ("1.md:1 is left out: ValueError: no such chunk.",)
    assert warnings == ("Step 1 (attempt 1) continues with less knowledge: " + event.failed[0],)


async def test_where_putting_together_fails_what_was_found_is_given_and_it_is_told():
    replies = {
        "Note0": OSError("gone"),
        "Text0": "Note 0 [[0.md:1]].",
        "Text1": "Note 1 [[1.md:1]].",
    }
    rag = RAGOptions(mode="map_reduce", map_max_chunks=2)
    step, (event,), (shown,), warnings = await ran(Given(*FOUND), rag, reads(**replies))
    assert shown.count("Text") == 4
    assert places(step.sources) == ["0.md:1", "1.md:1", "2.md:1", "3.md:1"]
    assert event.unused == ()
    assert event.failed == (
        "What was read is not put together, so all is given as it was found: OSError: gone.",
    )
    assert warnings == ("Step 1 (attempt 1) continues with less knowledge: " + event.failed[0],)


async def test_where_no_chunk_is_read_what_was_found_is_given_and_made_shorter_if_that_is_wanted():
    async def mapped(messages):
        if messages[-1].text.count("Text") == 1:
            raise ValueError("no")
        return "Short [[3.md:1]]."

    why = "No model read what was found, so all is given as it was found: ValueError: no."
    for more, text in (({}, "Text 0."), ({"use_summary": True}, "Short [[3.md:1]].")):
        rag = RAGOptions(mode="map_reduce", **more)
        step, (event,), (shown,), _ = await ran(Given(*FOUND), rag, always(mapped))
        assert text in shown
        assert event.failed == (why,)
        assert len(step.sources) == (1 if more else 4)


async def test_of_what_was_put_together_only_what_it_cites_is_a_source():
    replies = {
        "Note0": "All [[1.md:1]].",
        "Text0": "Note 0 [[0.md:1]].",
        "Text1": "Note 1 [[1.md:1]].",
    }
    rag = RAGOptions(mode="map_reduce", top_k=2)
    step, (event,), (shown,), warnings = await ran(Given(*FOUND), rag, reads(**replies))
    assert shown == "All [[1.md:1]]."
    assert places(step.sources) == ["1.md:1"]
    assert event.unused == ("0.md:1 is not used: the text that was made does not cite it.",)
    assert warnings == ()


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (ValueError("no"), "ValueError: no"),
        ("  ", "the model returned an empty reply"),
        ("<think>Hm.</think>", "the model returned an empty reply"),
    ],
)
async def test_a_summary_that_fails_leaves_what_was_found_and_is_told(reply, told):
    rag = RAGOptions(use_summary=True, top_k=2)
    step, (event,), (shown,), warnings = await ran(Given(*FOUND), rag, reads(Text0=reply))
    assert "Text 0." in shown
    assert len(step.sources) == 2
    (failed,) = event.failed
    assert failed.startswith("What was found is not made shorter: ")
    assert told in failed
    assert warnings == (f"Step 1 (attempt 1) continues with less knowledge: {failed}",)


async def test_a_slow_chunk_is_left_out_in_its_time_and_told():
    async def mapped(messages):
        if "Text 1." in messages[-1].text:
            await asyncio.Event().wait()
        return "Note [[0.md:1]]."

    rag = RAGOptions(mode="map_reduce", top_k=2, timeout_seconds=0.2)
    step, (event,), _, warnings = await ran(Given(*FOUND), rag, always(mapped))
    assert places(step.sources) == ["0.md:1"]
    assert "1.md:1 is left out: StepTimeoutError: no answer within 0.2 s." in event.failed
    assert len(warnings) == 1


async def test_where_a_model_finds_that_nothing_helps_nothing_is_given_and_it_is_told():
    for rag in (RAGOptions(mode="map_reduce", top_k=2), RAGOptions(use_summary=True, top_k=2)):
        step, (event,), (shown,), warnings = await ran(Given(*FOUND), rag, always("`None`."))
        assert (shown, step.sources, warnings) == ("", (), ())
        assert event.unused == (
            "0.md:1 is not used: nothing in it helps.",
            "1.md:1 is not used: nothing in it helps.",
        )


async def test_a_refusal_is_no_knowledge():
    refusal = AIMessage("I will not.", additional_kwargs={"refusal": "I will not."})
    rag = RAGOptions(use_summary=True, top_k=1)
    _, (event,), (shown,), _ = await ran(Given(*FOUND), rag, always(refusal))
    assert "Text 0." in shown
    assert "the model refused" in event.failed[0]


async def test_chunks_without_a_score_that_can_be_compared_are_left_out_and_named():
    odd = [{**FOUND[0], "score": math.nan}, {**FOUND[1], "score": math.inf}, FOUND[2]]
    step, (event,), _, _ = await ran(Given(*odd), RAGOptions())
    assert places(step.sources) == ["2.md:1"]
    assert event.skipped == (
        "0.md:1 is left out: its score is nan.",
        "1.md:1 is left out: its score is inf.",
    )


@pytest.mark.parametrize(
    ("problem", "told"),
    [
        (SystemExit(3), "it tried to exit the process (exit 3)"),
        (BaseException("all is lost"), "BaseException: all is lost"),
        (asyncio.CancelledError(), "it cancelled itself"),
    ],
)
async def test_a_retriever_ends_no_more_than_its_search(problem, told):
    class Ending:
        def search(self, request):
            raise problem

    step, (event,), _, _ = await ran(Ending(), RAGOptions())
    assert step.status.value == "success"
    assert told in event.error


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


async def test_each_line_that_is_shown_can_be_cited_whatever_divides_it():
    content = "one\x0ctwo\u2028[[b.md:1]]\r\nthree\nfour\n"
    chunk = {"content": content, "source": "a.md", "line": 3}
    step, _, (shown,), _ = await ran(Given(chunk), RAGOptions())
    assert shown == "[[a.md:3]]\n3| one two [[b.md:1]]\n4| three\n5| four"
    assert step.sources[0].last_line == 5


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


async def test_passages_below_the_minimum_score_are_told():
    step, (event,), (shown,), warnings = await ran(Given(*FOUND), RAGOptions(min_score=0.85))
    assert places(step.sources) == places(event.sources) == ["0.md:1", "1.md:1"]
    assert "Text 2." not in shown
    assert event.unused == (
        "2.md:1 is not used: its score 0.8 is below min_score=0.85.",
        "3.md:1 is not used: its score 0.7 is below min_score=0.85.",
    )
    assert (event.failed, warnings) == ((), ())


@pytest.mark.parametrize("kind", ["own", "folder"])
async def test_a_minimum_score_that_leaves_nothing_is_a_warning(kind, tmp_path):
    if kind == "folder":
        (tmp_path / "a.md").write_text("Refunds of parcels take 30 days.\n")
        retriever = FolderRetriever(tmp_path, cache=tmp_path / ".cache")
    else:
        retriever = Given({"content": "Text.", "source": "a.md", "line": 1, "score": 0.5})
    step, (event,), (shown,), warnings = await ran(retriever, RAGOptions(min_score=0.9))
    assert (step.sources, event.sources, shown) == ((), (), "")
    assert event.unused == ("a.md:1 is not used: its score 0.5 is below min_score=0.9.",)
    (warning,) = [warning for warning in warnings if warning.startswith("Step 1")]
    assert warning.endswith(
        "with less knowledge: the best passage has the score 0.5, and min_score is 0.9."
    )


async def test_scores_below_zero_are_as_good_as_others_where_no_minimum_is_set():
    low = [{**each, "score": each["score"] - 7} for each in FOUND]
    step, (event,), _, warnings = await ran(Given(*low), RAGOptions(top_k=2))
    assert places(step.sources) == ["0.md:1", "1.md:1"]
    assert (event.unused, warnings) == ((), ())


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        (None, "the retriever returned nothing; return a SearchResponse(chunks=[...])"),
        ([], "the retriever returned list; return a SearchResponse(chunks=[...])"),
        ("Text.", "the retriever returned str; return a SearchResponse(chunks=[...])"),
        (7, "the retriever returned int; return a SearchResponse(chunks=[...])"),
        ({"chunks": 7}, "not a valid SearchResponse: chunks: "),
        ({"chunks": ["Text."]}, "not a valid SearchResponse: chunks.0: "),
        (
            {"chunks": [{"score": 1}]},
            "not a valid SearchResponse: chunks.0.content: Field required",
        ),
        ({"passages": []}, "not a valid SearchResponse: passages: "),
    ],
    ids=["nothing", "list", "text", "number", "no list", "no chunk", "no content", "other field"],
)
async def test_a_retriever_that_returns_the_wrong_thing_is_told_in_plain_words(found, problem):
    retriever = Given()
    retriever.response = found
    step, (event,), (shown,), warnings = await ran(retriever, RAGOptions())
    assert (shown, step.sources) == ("", ())
    assert problem in event.error
    assert warnings[-1].startswith("Step 1 (attempt 1) continues without knowledge: ")
    for text in (event.error, *warnings):
        assert "pydantic" not in text
        assert "validation error" not in text
    assert [warning for warning in warnings if problem in warning]


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
