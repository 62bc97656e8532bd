"""Telling of events: numbered once, the stream first, then the hooks in their order."""

import asyncio
import contextvars
import logging
import threading

import pytest
from langchain_core.messages import AIMessage

from replan import (
    Host,
    MultiAgentCallback,
    Specialist,
    Team,
    Usage,
    build_graph,
    run,
)
from replan.assembly.team_services import _call_hook
from replan.events import (
    AnswerToken,
    LimitReached,
    ReplyParseFailed,
    RunStarted,
    TaskCompleted,
    ThinkingStarted,
)
from replan.log.events.emitter import Emitter, Hooks
from replan.testing import ScriptedModel


async def test_the_log_tells_of_a_run_in_constant_lines_without_texts(caplog):
    emitter, _ = telling()
    with caplog.at_level(logging.INFO, "replan"):
        await emitter.emit(RunStarted, request="my secret")
        await emitter.emit(LimitReached, limit="max_calls", value=3)
        await emitter.emit(
            ReplyParseFailed, node="think", problem="my secret", fallback="a simple request"
        )
        await emitter.emit(TaskCompleted, **OVER)
    lines = ["run started", "limit reached: max_calls", "reply parse failed: think", "run over"]
    assert [record.message for record in caplog.records] == lines
    assert [record.levelname for record in caplog.records] == ["INFO", "WARNING", "WARNING", "INFO"]
    assert {record.run_id for record in caplog.records} == {"r"}
    assert (caplog.records[1].limit, caplog.records[3].outcome) == ("max_calls", "answered")
    assert not any("secret" in str(vars(record)) for record in caplog.records)


async def test_the_log_tells_of_a_reply_that_contradicts_itself(caplog):
    script = {
        "think": "---\ncomplexity: complex\nnext_action: direct_answer\n---\n- [ ] 1. One @a\n",
        "feedback": "---\nverdict: complete\nsuggested_action: update_plan\n---\nDone.",
    }
    team = [Specialist(name="a", intended_use="Works.", run=lambda context: "done")]
    host = Host(model=ScriptedModel(script))
    with caplog.at_level(logging.WARNING, "replan"):
        state = (await run(build_graph(Team(host=host, specialists=team)), "Go.")).state
    told = [
        "complexity is complex, next_action is direct_answer",
        "verdict is complete, suggested_action is update_plan",
    ]
    assert [record.contradiction for record in caplog.records] == told
    assert {record.message for record in caplog.records} == {"reply contradicts itself"}
    assert state["current_thinking_result"].contradiction == told[0]
    assert state["current_feedback_result"].contradiction == told[1]


OVER = {"outcome": "answered", "answer": AIMessage("Done."), "usage": Usage()}


def telling(*callbacks, seconds=10.0):
    stream = []
    hooks = Hooks(callbacks, seconds, _call_hook).of("r")
    return Emitter(stream.append, hooks, "r", 2), stream


async def test_the_stream_knows_of_an_event_before_its_hook_and_hooks_keep_their_order():
    class Slow(MultiAgentCallback):
        def __init__(self):
            self.heard = []

        async def on_thinking_start(self, info):
            await asyncio.sleep(0)
            self.heard.append((info.request, int(info.request) <= len(stream)))

    class Plain(Slow):
        def on_thinking_start(self, info):
            self.heard.append((info.request, int(info.request) <= len(stream)))

    slow, plain = Slow(), Plain()
    emitter, stream = telling(slow, plain)
    for number in "123":
        emitter.stream(ThinkingStarted, request=number)
    await emitter.emit(ThinkingStarted, request="4")
    assert slow.heard == plain.heard == [(number, True) for number in "1234"]


async def test_a_run_that_is_cancelled_while_a_hook_is_at_work_is_no_failure_of_the_hook(caplog):
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


@pytest.mark.parametrize(
    "error", [asyncio.CancelledError(), SystemExit(1), StopAsyncIteration()], ids=repr
)
async def test_whatever_a_hook_raises_changes_nothing(error, caplog):
    class Raises:
        async def on_thinking_start(self, info):
            raise error

    heard = []

    class Next:
        on_thinking_start = staticmethod(heard.append)

    emitter, stream = telling(Raises(), Next())
    await emitter.emit(ThinkingStarted)
    assert heard == stream
    assert [record.message for record in caplog.records] == ["callback failed"]


@pytest.mark.parametrize("kind", ["async", "plain"])
async def test_a_hook_that_hangs_is_left_alone_and_the_next_event_is_heard(kind, caplog):
    heard, gate, never = [], threading.Event(), asyncio.Event()

    class Hangs:
        async def on_thinking_start(self, info):
            await never.wait()

        def on_task_complete(self, info):
            heard.append(info.type)

    class Blocks(Hangs):
        def on_thinking_start(self, info):
            gate.wait()

    emitter, _ = telling({"async": Hangs, "plain": Blocks}[kind](), seconds=0.2)
    try:
        await emitter.emit(ThinkingStarted)
        assert [record.message for record in caplog.records] == ["callback left alone"]
        assert caplog.records[0].hook == "on_thinking_start"
        await emitter.emit(TaskCompleted, **OVER)
        assert heard == ["task_completed"]
    finally:
        gate.set()


async def test_a_callback_that_is_late_is_not_waited_for_before_the_end():
    never = asyncio.Event()

    class Hangs:
        async def on_thinking_start(self, info):
            await never.wait()

    emitter, _ = telling(Hangs(), seconds=1)
    await emitter.emit(ThinkingStarted)
    started = asyncio.get_running_loop().time()
    for _ in range(20):
        await emitter.emit(ThinkingStarted)
    # Waited for each time, it would be 20 seconds.
    assert asyncio.get_running_loop().time() - started < 10


async def test_events_that_come_from_threads_are_heard_in_their_order():
    heard = []

    class All:
        async def on_event(self, event):
            heard.append(getattr(event, "text", ""))

    emitter, _ = telling(All())

    def speak():
        for number in range(50):
            emitter.stream(AnswerToken, text=str(number))

    await asyncio.to_thread(speak)
    await emitter.emit(ThinkingStarted)
    assert heard == [*map(str, range(50)), ""]


async def test_a_hook_runs_in_the_context_in_which_its_event_was_told():
    who = contextvars.ContextVar("who", default="nobody")
    heard = []

    class Asks:
        def on_thinking_start(self, info):
            heard.append(who.get())

    emitter, _ = telling(Asks())
    for name in ("a", "b"):
        who.set(name)
        emitter.stream(ThinkingStarted)
    await emitter.emit(ThinkingStarted)
    assert heard == ["a", "b", "b"]
