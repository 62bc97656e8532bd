"""The meter of model calls: it counts what is made, and stops what would be too much."""

import asyncio
import inspect
from functools import partial
from itertools import count
from typing import ClassVar
from uuid import uuid4

import pytest
from langchain_core.language_models.fake import FakeListLLM
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.outputs import (
    ChatGeneration,
    ChatGenerationChunk,
    ChatResult,
    Generation,
    LLMResult,
)

from replan.errors import LimitReachedError
from replan.log.amounts import Spending
from replan.models.chat import Chat
from replan.models.spending.account import Account
from replan.models.spending.meter import Meter
from replan.models.spending.scopes import Scope, tokens_of_request
from replan.models.streams import Toolset
from replan.state.limits import Budget, ClosingReserve, Price
from replan.state.usage import TokenCount
from replan.storage.memory_log import memory_log
from replan.testing import Hang, Raised, Reply, ScriptedModel, always

IDS = map(str, count())

HI = tokens_of_request([HumanMessage("Hi")])


def account(log=None):
    return Account(log or memory_log(), "r")


def meter(spends=None, limit=9, kept=0, **options):
    scope = Scope("run", Budget(max_model_calls=limit), ClosingReserve(calls=kept))
    return Meter(spends or account(), [scope], new_id=partial(next, IDS), **options)


@pytest.mark.parametrize(
    ("reports", "counted"),
    [
        ([(90, 1), (90, 2), (90, 5)], (90, 5)),  # with each piece what the reply took so far
        ([(90, 0), (0, 5)], (90, 5)),  # the request first, then the reply
        ([(90, 2), (0, 3), (0, 4)], (90, 9)),  # with each piece what it added
        ([(90, 5)], (90, 5)),
    ],
)
async def test_what_the_pieces_of_a_stream_report_is_counted_once(reports, counted):
    class Reporting(ScriptedModel):
        async def _astream(self, messages, stop=None, run_manager=None, **kwargs):
            for read, written in reports:
                usage = {"input_tokens": read, "output_tokens": written, "total_tokens": 0}
                chunk = AIMessageChunk("word ", usage_metadata=usage)
                yield ChatGenerationChunk(message=chunk)

    counting = meter()
    async with counting:
        async for _ in Reporting({}).astream("Hi", {"callbacks": [counting]}):
            pass
    assert (counting.count.input_tokens, counting.count.output_tokens) == counted


async def test_a_model_of_plain_text_is_counted_and_stopped_too():
    counted, model = meter(limit=1), FakeListLLM(responses=["Yes."])
    assert await model.ainvoke("Hi", {"callbacks": [counted]}) == "Yes."
    with pytest.raises(LimitReachedError):
        await model.ainvoke("Hi", {"callbacks": [counted]})
    assert counted.count == TokenCount(calls=1, unpriced_calls=1)


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
    meter(on_token=pieces.append).on_llm_new_token(token, chunk=generation, run_id=None)
    assert pieces == told


async def test_of_several_generations_for_one_prompt_the_usage_is_counted_once():
    counted = meter()
    usage = {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7}
    twice = [ChatGeneration(message=AIMessage("Hi", usage_metadata=usage)) for _ in range(2)]
    result = LLMResult(generations=[twice, [Generation(text="plain")], []])
    call = uuid4()
    begin, end = counted.on_chat_model_start, counted.on_llm_end
    # As LangChain does before it awaits them.
    assert inspect.iscoroutinefunction(begin)
    assert inspect.iscoroutinefunction(end)
    await begin({}, [[]], run_id=call)
    await end(result, run_id=call)
    assert counted.count == TokenCount(calls=1, input_tokens=5, output_tokens=2, unpriced_calls=1)


PRICE = Price(input=1, output=10)


def bounded(spends=None, *, prices=None, on_token=None, kept=0, **limits):
    scope = Scope("run", Budget(**limits), ClosingReserve(calls=kept))
    return Meter(
        spends or account(),
        [scope],
        new_id=partial(next, IDS),
        prices=prices,
        on_token=on_token,
    )


async def until(is_so):
    """Let others run until something can be seen."""
    while not is_so():  # noqa: ASYNC110 - what is seen here has no event
        await asyncio.sleep(0)


class Capped(ScriptedModel):
    """A model whose replies can be cut, and that tells how short it was asked to be."""

    max_tokens: int | None = None
    model_name: str = "capped"
    asked: ClassVar[list] = []

    async def _agenerate(self, messages, **options):
        self.asked.append(self.max_tokens)
        return await super()._agenerate(messages, **options)


@pytest.fixture
def asked():
    Capped.asked.clear()
    return Capped.asked


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("where", ["thread", "loop", "another loop"])
async def test_calls_without_await_are_counted_and_stopped_wherever_they_are_made(where, streamed):
    log, calls = memory_log(), []

    def work():
        for _ in range(3):
            config = {"callbacks": [counted]}
            calls.append("".join(model.stream("Hi", config)) if streamed else say(config))

    def say(config):
        return model.invoke("Hi", config).text

    async def elsewhere():
        work()

    async def made():
        async with counted:
            if where == "loop":
                work()
            else:
                way = work if where == "thread" else lambda: asyncio.run(elsewhere())
                await asyncio.to_thread(way)

    with ScriptedModel({"*": always(Reply("Yes.", usage=(7, 3)))}) as scripted:
        model = scripted | StrOutputParser() if streamed else scripted
        counted = bounded(account(log), max_model_calls=2)
        with pytest.raises(LimitReachedError, match="max_model_calls=2"):
            await made()
    assert calls == ["Yes.", "Yes."]
    assert counted.count == TokenCount(calls=2, input_tokens=14, output_tokens=6, unpriced_calls=2)
    assert counted.refused.limit == "max_model_calls"
    assert (await log.spent("r"))["run"] == Spending(calls=2, tokens=20)


async def test_a_thread_waits_for_room_as_everybody_does():
    spends = account()
    going, release = asyncio.Event(), asyncio.Event()

    async def slow(_):
        going.set()
        await release.wait()
        return Reply("Yes.", usage=(1, 1))

    with ScriptedModel({"*": [Reply("Known.", usage=(1, 1)), slow, "Quick."]}) as model:
        counted, other = (bounded(spends, max_tokens=330) for _ in range(2))
        async with counted, other:
            await model.ainvoke("Hi", {"callbacks": [counted]})
            first = asyncio.ensure_future(model.ainvoke("Hi", {"callbacks": [counted]}))
            await going.wait()
            second = asyncio.ensure_future(
                asyncio.to_thread(model.invoke, "Hi", {"callbacks": [other]})
            )
            await until(lambda: other.waiting.seconds)
            assert len(model.calls) == 2
            release.set()
            await asyncio.gather(first, second)
    assert len(model.calls) == 3


async def test_who_gives_up_a_thread_stops_its_waiting_and_its_further_calls():
    spends = account()
    counted, other = (bounded(spends, max_tokens=330) for _ in range(2))
    ends, known = [], Reply("Known.", usage=(1, 1))

    def work():
        for _ in range(2):
            try:
                model.invoke("Hi", {"callbacks": [other]})
            except RuntimeError as error:
                ends.append(str(error))

    with ScriptedModel({"*": [known, Hang()]}) as model:
        async with counted:
            await model.ainvoke("Hi", {"callbacks": [counted]})
            hanging = asyncio.ensure_future(model.ainvoke("Hi", {"callbacks": [counted]}))
            await until(lambda: len(model.calls) == 2)
            async with other:
                given_up = asyncio.ensure_future(asyncio.to_thread(work))
                await until(lambda: other.waiting.seconds)
            await given_up
            hanging.cancel()
            await asyncio.wait({hanging})
    assert ends == ["the attempt that this call belongs to is over"] * 2
    assert len(model.calls) == 2


async def test_a_call_that_still_asks_for_leave_when_its_try_ends_is_not_made(monkeypatch):
    log, is_asked, may_go_on = memory_log(), asyncio.Event(), asyncio.Event()
    reserve = log.reserve

    async def slow(*given):
        is_asked.set()
        await may_go_on.wait()
        return await reserve(*given)

    monkeypatch.setattr(log, "reserve", slow)
    model, counted = ScriptedModel({"*": always("Yes.")}), meter(account(log))
    async with counted:
        # As a sibling does in `asyncio.gather`, of which another one has failed.
        late = asyncio.ensure_future(model.ainvoke("Hi", {"callbacks": [counted]}))
        await is_asked.wait()
    may_go_on.set()
    with pytest.raises(RuntimeError, match="is over"):
        await late
    assert (len(model.calls), counted.count) == (0, TokenCount())
    assert (await log.spent("r"))["run"] == Spending()


async def test_a_reply_is_cut_to_what_is_left(asked):
    counted = bounded(max_tokens=600)
    chat = Chat(Capped({"*": [Reply("One.", usage=(30, 100)), Reply("Two.", usage=(30, 400))]}))
    config = {"callbacks": [counted]}
    async with counted:
        for _ in range(2):
            await chat.reply([HumanMessage("Hi")], config)
        with pytest.raises(LimitReachedError, match="max_tokens=600"):
            await chat.reply([HumanMessage("Hi")], config)
    assert asked == [600 - HI, 600 - 130 - HI]
    assert counted.count == TokenCount(
        calls=2, input_tokens=60, output_tokens=500, unpriced_calls=2
    )


async def test_a_model_keeps_its_own_bound_and_is_not_touched_without_a_limit(asked):
    own = Capped({"*": [always(Reply("Yes.", usage=(1, 1)))]}, max_tokens=50)
    for limits in ({"max_tokens": 5_000}, {"max_model_calls": 9}):
        async with bounded(**limits) as counted:
            await Chat(own).reply([HumanMessage("Hi")], {"callbacks": [counted]})
    free = Capped({"*": [Reply("Yes.", usage=(1, 1))]})
    async with bounded(max_model_calls=9) as counted:
        await Chat(free).reply([HumanMessage("Hi")], {"callbacks": [counted]})
    assert asked == [50, 50, None]


async def test_two_meters_both_count_and_the_narrower_one_cuts(asked):
    outer, inner = bounded(max_tokens=2_000), bounded(max_tokens=1_000)
    chat = Chat(Capped({"*": [Reply("Yes.", usage=(5, 6))]}))
    async with outer, inner:
        await chat.reply([HumanMessage("Hi")], {"callbacks": [outer, inner]})
    assert asked == [1_000 - HI]
    assert (
        outer.count
        == inner.count
        == TokenCount(calls=1, input_tokens=5, output_tokens=6, unpriced_calls=1)
    )


class RefusedError(Exception):
    status_code = 429


@pytest.mark.parametrize(
    ("error", "tokens"),
    [
        (RefusedError("busy"), 0),
        (ConnectionRefusedError("nobody there"), 0),
        (ConnectionError("reset"), HI + 4_096),
        (TimeoutError("slow"), HI + 4_096),
    ],
    ids=["refused", "never reached", "broken off", "too late"],
)
async def test_a_call_that_broke_off_is_charged_in_full_unless_nothing_was_done(error, tokens):
    log = memory_log()
    counted = bounded(account(log), prices={"ScriptedModel": PRICE}, max_tokens=9_000)
    with ScriptedModel({"*": [error]}) as model, pytest.raises(type(error)):
        async with counted:
            await model.ainvoke("Hi", {"callbacks": [counted]})
    assert (await log.spent("r"))["run"].tokens == tokens
    assert counted.count.cost == pytest.approx(PRICE.of(HI, 4_096) if tokens else 0)


async def test_a_price_may_stand_under_the_name_that_a_model_was_configured_with():
    counted = bounded(prices={"quick": PRICE}, max_cost=1)
    chat = Chat(Capped({"*": [Reply("Yes.", usage=(100, 10))]}), "quick")
    async with counted:
        await chat.reply([HumanMessage("Hi")], {"callbacks": [counted]})
    assert counted.count.cost == pytest.approx(0.0002)


async def test_a_model_inside_a_model_does_not_wait_for_it():
    class Wrapper(ScriptedModel):
        async def _agenerate(self, messages, stop=None, run_manager=None, **options):
            message = await inner.ainvoke(messages, config)
            return ChatResult(generations=[ChatGeneration(message=message)])

    counted = bounded(max_tokens=4_300)
    config = {"callbacks": [counted]}
    with ScriptedModel({"*": [Reply("Yes.", usage=(1, 1))]}) as inner:
        async with counted:
            wrapped = Chat(Wrapper({}, disable_streaming=True))
            reply = await asyncio.wait_for(wrapped.reply([HumanMessage("Hi")], config), 5)
    assert reply.text == "Yes."
    assert counted.count.calls == 2


async def test_what_a_model_asks_of_another_with_the_callbacks_of_its_call_is_charged():
    class Wrapper(ScriptedModel):
        async def _agenerate(self, messages, stop=None, run_manager=None, **options):
            callbacks = run_manager.inheritable_handlers
            message = await inner.ainvoke(messages, {"callbacks": callbacks})
            return ChatResult(generations=[ChatGeneration(message=message)])

    counted = meter()
    with ScriptedModel({"*": [Reply("Yes.", usage=(1, 1))]}) as inner:
        async with counted:
            wrapped = Chat(Wrapper({}, disable_streaming=True))
            await wrapped.reply([HumanMessage("Hi")], {"callbacks": [counted]})
    assert counted.count.calls == 2


async def test_what_is_bound_to_a_model_may_make_more_calls_than_one_and_each_is_charged_once():
    heard = list[str]()

    class Bound(ScriptedModel):
        def bind_tools(self, tools, **options):
            return busy.bind(first=1).with_fallbacks([other.bind(second=2)])

    counted = meter(on_token=heard.append)
    busy = ScriptedModel({"*": [Raised(RefusedError("busy"))]})
    other = ScriptedModel({"*": [Reply("Yes.", usage=(5, 6))]})
    async with counted:
        reply = await Chat(Bound({})).reply(
            [HumanMessage("Hi")], {"callbacks": [counted]}, toolset=Toolset([])
        )
    assert (reply.text, heard) == ("Yes.", ["Yes."])
    assert (counted.count.calls, counted.count.input_tokens) == (2, 5)
