"""Telling of events: numbered once, the stream first, then the hooks in their order."""

import asyncio
import logging

import pytest

from replan import MultiAgentCallback, TaskPlan
from replan.events.callbacks import HOOKS
from replan.events.emitter import Counter, Emitter
from replan.events.types import AnswerToken, PlanCreated, RunStarted, ThinkingStarted


def telling(*callbacks, newest=0):
    stream = []
    emitter = Emitter(
        write=stream.append, callbacks=callbacks, run_id="r", round=2, counter=Counter(newest)
    )
    return emitter, stream


async def test_events_are_numbered_from_where_the_run_stands():
    emitter, stream = telling(newest=4)
    await emitter.emit(RunStarted, request="Go.")
    emitter.stream(AnswerToken, text="Hm.")
    await emitter.emit(ThinkingStarted)
    assert [event.seq for event in stream] == [5, 6, 7]
    assert {(event.run_id, event.round) for event in stream} == {("r", 2)}


async def test_the_nodes_of_a_round_share_one_row_of_numbers():
    counter, stream = Counter(), []

    async def node(name):
        emitter = Emitter(write=stream.append, callbacks=(), run_id=name, round=1, counter=counter)
        for _ in range(3):
            await emitter.emit(ThinkingStarted)
            await asyncio.sleep(0)

    await asyncio.gather(node("a"), node("b"))
    assert [event.seq for event in stream] == [1, 2, 3, 4, 5, 6]


async def test_the_stream_knows_of_an_event_before_its_hook_and_hooks_keep_their_order():
    order = []

    class Slow(MultiAgentCallback):
        async def on_thinking_start(self, info):
            await asyncio.sleep(0)
            order.append(("slow", len(stream)))

    class Plain:
        def on_thinking_start(self, info):
            order.append(("plain", info.seq))

    emitter, stream = telling(Slow(), object(), Plain())
    await emitter.emit(ThinkingStarted)
    assert order == [("slow", 1), ("plain", 1)]


@pytest.mark.parametrize("kind", ["plain", "async"])
async def test_a_failing_hook_is_logged_and_the_next_one_is_called(kind, caplog):
    class Plain:
        def on_thinking_start(self, info):
            raise ZeroDivisionError("my hook")

    class Async:
        async def on_thinking_start(self, info):
            raise ZeroDivisionError("my hook")

    called = []

    class Next:
        on_thinking_start = staticmethod(called.append)

    emitter, stream = telling({"plain": Plain, "async": Async}[kind](), Next())
    with caplog.at_level(logging.ERROR, "replan.events.emitter"):
        await emitter.emit(ThinkingStarted)
    assert called == stream
    assert caplog.records[0].hook == "on_thinking_start"
    assert "my hook" in caplog.text


async def test_a_cancelled_hook_ends_the_run_and_is_no_failure_of_the_hook(caplog):
    class Hangs:
        async def on_thinking_start(self, info):
            await asyncio.Event().wait()

    emitter, _ = telling(Hangs())
    running = asyncio.ensure_future(emitter.emit(ThinkingStarted))
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not caplog.records


async def test_an_event_without_a_hook_calls_nobody():
    class Curious:
        def __getattr__(self, name):
            pytest.fail(f"{name} was looked up")

    emitter, stream = telling(Curious())
    await emitter.emit(RunStarted, request="Go.")
    assert len(stream) == 1


async def test_a_callback_hears_of_eight_moments_and_may_override_any_of_them():
    callback = MultiAgentCallback()
    hooks = [name for name in vars(MultiAgentCallback) if name.startswith("on_")]
    assert sorted(HOOKS.values()) == sorted(hooks)
    assert len(hooks) == 8
    emitter, _ = telling(callback)
    await emitter.emit(PlanCreated, plan=TaskPlan(), markdown="")
