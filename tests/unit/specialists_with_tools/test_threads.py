"""Work that hangs is given up, and keeps no process from ending."""

import asyncio
import contextvars
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import warm
from replan.specialists.threads import Threads, in_thread, use_threads

PROGRAM = """
import asyncio, threading
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import BaseTool
from replan import Host, Limits, MultiAgentConfig, Specialist, build_graph, run, run_sync
from replan.testing import ScriptedModel, always

def hang() -> str:
    "Hang."
    threading.Event().wait()

def pieces(messages):
    yield "One "
    hang()

class Hang(BaseTool):
    name: str = "hang"
    description: str = "Hang."
    def _run(self):
        hang()

call = {"name": "hang", "args": {}, "id": "1", "type": "tool_call"}
model = ScriptedModel({
    "think": always("---\\ncomplexity: complex\\n---\\n- [ ] 1. Do it @worker"),
    "step 1": always(AIMessage("", tool_calls=[call])),
    "feedback": always("---\\nverdict: complete\\n---\\nThe end."),
})
HANGS = {
    "run": dict(run=lambda context: hang()),
    "invokable": dict(invokable=lambda messages: hang()),
    "runnable": dict(invokable=RunnableLambda(lambda messages: hang())),
    "chain": dict(invokable=RunnableLambda(lambda m: m) | RunnableLambda(lambda m: hang())),
    "pieces": dict(streamable=pieces),
    "processor": dict(input_processor=lambda context: hang(), chat_model=model),
    "tool": dict(chat_model=model, tools=[hang]),
    "class of tool": dict(chat_model=model, tools=[Hang()]),
}
for kind, work in HANGS.items():
    graph = build_graph(MultiAgentConfig(
        host=Host(tool_calling_model=model),
        specialists=[Specialist(name="worker", intended_use="Works.", **work)],
        limits=Limits(step_timeout=0.2, step_retries=0),
    ))
    state = START
    print(kind, state["current_specialist_results"]["1/worker"].error, sep=": ")
"""
KINDS = ("run", "invokable", "runnable", "chain", "pieces", "processor", "tool", "class of tool")


@pytest.mark.parametrize("start", ['run_sync(graph, "Go.")', 'asyncio.run(run(graph, "Go."))'])
def test_a_process_ends_although_all_that_is_synchronous_in_it_hangs(start):
    program = PROGRAM.replace("START", start)
    ended = warm.run("-c", program)
    assert ended.returncode == 0, ended.stderr
    found = ended.stdout.splitlines()
    assert [line.partition(": ")[0] for line in found] == list(KINDS)
    assert all("no answer within 0.2 s" in line for line in found), found


def test_a_loop_ends_although_its_default_executor_has_work_that_was_given_up():
    program = textwrap.dedent("""
        import asyncio, threading
        from replan.specialists.threads import use_threads

        async def main():
            use_threads()
            work = asyncio.ensure_future(asyncio.to_thread(threading.Event().wait))
            await asyncio.sleep(0)
            work.cancel()
            await asyncio.wait({work})

        asyncio.run(main())
        print("ended")
    """)
    ended = warm.run("-c", program)
    assert ended.stdout == "ended\n", ended.stderr


def test_what_was_given_up_has_a_moment_to_end_before_the_process_does():
    program = textwrap.dedent("""
        import asyncio, atexit, threading
        from replan.specialists.threads import in_thread

        ending = threading.Event()
        begun = threading.Event()

        def work():
            begun.set()
            ending.wait()
            print("the work has ended", flush=True)

        async def main():
            asked = asyncio.ensure_future(in_thread(work))
            while not begun.is_set():
                await asyncio.sleep(0)
            asked.cancel()
            await asyncio.wait({asked})

        asyncio.run(main())
        atexit.register(ending.set)
    """)
    ended = warm.run("-c", program)
    assert (ended.returncode, ended.stdout) == (0, "the work has ended\n"), ended.stderr


async def test_work_sees_the_context_of_who_asked():
    name: contextvars.ContextVar[str] = contextvars.ContextVar("name")
    name.set("asker")
    assert await in_thread(name.get) == "asker"


@pytest.mark.parametrize("error", [ValueError("x"), SystemExit(3)])
async def test_an_error_reaches_who_waits(error):
    def fail():
        raise error

    with pytest.raises(type(error)):
        await in_thread(fail)


async def test_a_ctrl_c_that_foreign_code_makes_up_is_an_error_of_that_code():
    def interrupt():
        raise KeyboardInterrupt

    with pytest.raises(RuntimeError, match="KeyboardInterrupt"):
        await in_thread(interrupt)


async def test_an_end_of_an_iteration_is_an_error_and_no_endless_wait():
    with pytest.raises(RuntimeError, match="StopIteration"):
        await in_thread(lambda: next(iter(())))


def test_no_more_work_than_allowed_is_done_at_once():
    pool, gate, most, now = Threads(2), threading.Event(), 0, 0
    guard = threading.Lock()
    both = threading.Barrier(2)

    def work():
        nonlocal most, now
        with guard:
            now += 1
            most = max(most, now)
        both.wait(10)
        gate.wait(10)
        with guard:
            now -= 1

    futures = [pool.submit(work) for _ in range(6)]
    gate.set()
    pool.shutdown()
    assert all(future.done() for future in futures)
    assert most == 2


def test_work_that_was_given_up_leaves_its_place_and_is_not_waited_for():
    pool, gate, begun = Threads(1), threading.Event(), threading.Event()

    def hang():
        begun.set()
        gate.wait(10)

    hanging = pool.submit(hang)
    begun.wait(10)
    assert not hanging.cancel()
    assert pool.submit(lambda: "next").result(10) == "next"
    pool.shutdown()
    assert not hanging.done()
    gate.set()


def test_work_that_has_not_begun_can_be_cancelled():
    pool, gate = Threads(1), threading.Event()
    pool.submit(gate.wait, 10)
    second, third = pool.submit(int), pool.submit(int)
    assert second.cancel()
    pool.shutdown(wait=False, cancel_futures=True)
    gate.set()
    pool.shutdown()
    assert third.cancelled()


def test_an_executor_that_was_chosen_is_left_alone():
    async def whose() -> str:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1, "mine"))
        use_threads()
        return await asyncio.to_thread(lambda: threading.current_thread().name)

    assert asyncio.run(whose()).startswith("mine")


def test_the_running_loop_gets_threads_that_can_be_given_up():
    async def whose() -> bool:
        use_threads()
        return await asyncio.to_thread(lambda: threading.current_thread().daemon)

    assert asyncio.run(whose())


def test_a_thread_that_is_done_takes_the_next_work():
    pool = Threads()
    used = {pool.submit(threading.get_ident).result() for _ in range(20)}
    pool.shutdown()
    # The next work may come a moment before the thread is back.
    assert len(used) <= 2


def test_a_pool_that_is_shut_ends_its_threads_and_takes_nothing_more():
    pool = Threads()
    thread = pool.submit(threading.current_thread).result()
    pool.shutdown()
    thread.join(10)
    assert not thread.is_alive()
    with pytest.raises(RuntimeError, match="shutdown"):
        pool.submit(threading.get_ident)
