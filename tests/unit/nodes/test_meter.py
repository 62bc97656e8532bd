"""The meter of model calls: it counts what is made, and stops what would be too much."""

import asyncio
from uuid import uuid4

import pytest
from langchain_core.language_models.fake import FakeListLLM
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, Generation, LLMResult

from replan import Usage
from replan.adapters.journal import MemoryJournal
from replan.errors import LimitReachedError
from replan.nodes.meter import Meter
from replan.state.usage import TokenCount
from replan.testing import Reply, ScriptedModel, always


def meter(journal=None, limit=9, **options):
    return Meter(journal or MemoryJournal(), "r", limit, **options)


async def test_calls_and_the_tokens_that_the_server_reported_are_counted():
    counted = meter()
    with ScriptedModel({"*": [Reply("One.", usage=(7, 3)), Reply("Two.", usage=(1, 1))]}) as model:
        await model.ainvoke("Hi", {"callbacks": [counted]})
        async for _ in model.astream("Hi", {"callbacks": [counted]}):
            pass
    assert counted.count == TokenCount(calls=2, input_tokens=8, output_tokens=4)
    assert Usage().plus(("think", counted.count)).calls == 2


async def test_a_call_that_fails_is_counted_all_the_same():
    counted = meter()
    model = ScriptedModel({"*": [ConnectionError("reset")]})
    with model, pytest.raises(ConnectionError):
        await model.ainvoke("Hi", {"callbacks": [counted]})
    assert counted.count == TokenCount(calls=1)


async def test_no_more_calls_are_made_at_once_than_the_run_has_left():
    journal, meters = MemoryJournal(), []

    async def one(model):
        meters.append(meter(journal, limit=5))
        return await model.ainvoke("Hi", {"callbacks": [meters[-1]]})

    with ScriptedModel({"*": always("Yes.")}) as model:
        answers = await asyncio.gather(*(one(model) for _ in range(30)), return_exceptions=True)
    refused = [answer for answer in answers if isinstance(answer, LimitReachedError)]
    assert len(model.calls) == sum(each.count.calls for each in meters) == 5
    assert len(refused) == 25
    assert str(refused[0]) == "The limit max_model_calls=5 is reached."


async def test_a_model_of_plain_text_is_counted_and_stopped_too():
    counted, model = meter(limit=1), FakeListLLM(responses=["Yes."])
    assert await model.ainvoke("Hi", {"callbacks": [counted]}) == "Yes."
    with pytest.raises(LimitReachedError):
        await model.ainvoke("Hi", {"callbacks": [counted]})
    assert counted.count == TokenCount(calls=1)


async def test_a_call_that_is_kept_for_others_is_left_and_the_limit_is_told_as_the_run_has_it():
    journal, worker, closing = MemoryJournal(), {"kept": 1}, {"kept": 0}
    with ScriptedModel({"*": ["One.", "Two."]}) as model:
        await model.ainvoke("Hi", {"callbacks": [meter(journal, limit=2, **worker)]})
        with pytest.raises(LimitReachedError, match="max_model_calls=2 is reached"):
            await model.ainvoke("Hi", {"callbacks": [meter(journal, limit=2, **worker)]})
        await model.ainvoke("Hi", {"callbacks": [meter(journal, limit=2, **closing)]})
    assert len(model.calls) == 2


async def test_the_pieces_of_a_reply_are_passed_on_as_text():
    pieces = []
    with ScriptedModel({"*": [Reply("Hello you.", chunks=["Hello", " you."])]}) as model:
        async for _ in model.astream("Hi", {"callbacks": [meter(on_token=pieces.append)]}):
            pass
    assert pieces == ["Hello", " you."]


@pytest.mark.parametrize(
    ("token", "chunk", "told"),
    [
        ("Hi", None, ["Hi"]),
        ("", None, []),
        (
            [{"type": "text", "text": "Hi"}],
            AIMessageChunk([{"type": "text", "text": "Hi"}]),
            ["Hi"],
        ),
        ([{"type": "image", "url": "x"}], AIMessageChunk([{"type": "image", "url": "x"}]), []),
        ([{"type": "image", "url": "x"}], None, []),
    ],
    ids=["text", "nothing", "a block of text", "an image", "an image of an old server"],
)
async def test_of_a_piece_that_is_more_than_text_its_text_is_passed_on(token, chunk, told):
    pieces = []
    generation = None if chunk is None else ChatGenerationChunk(message=chunk)
    await meter(on_token=pieces.append).on_llm_new_token(token, chunk=generation, run_id=None)
    assert pieces == told


async def test_of_several_generations_for_one_prompt_the_usage_is_counted_once():
    counted = meter()
    usage = {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7}
    twice = [ChatGeneration(message=AIMessage("Hi", usage_metadata=usage)) for _ in range(2)]
    result = LLMResult(generations=[twice, [Generation(text="plain")], []])
    await counted.on_llm_end(result, run_id=uuid4())
    assert counted.count == TokenCount(input_tokens=5, output_tokens=2)
