"""Work that hangs is given up, and keeps no process from ending."""

import asyncio
import textwrap
import threading

import pytest

import warm
from replan import Host, Specialist, Team, build_graph, run, stream
from replan.base.own_loop import Threads, run_in_own_loop
from replan.base.user_code import in_thread
from replan.testing import ScriptedModel, always

PROGRAM = """
import asyncio, threading
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import BaseTool
from replan import Host, Limits, Team, Specialist, build_graph, run, run_sync
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
    graph = build_graph(Team(
        host=Host(model=model),
        specialists=[Specialist(name="worker", intended_use="Works.", **work)],
        limits=Limits(step_timeout=0.2, step_retries=0),
    ))
    state = START.state
    print(kind, state["current_specialist_results"]["1/worker"].error, sep=": ")
"""
# What is synchronous inside of a runnable runs in the executor of the caller's loop, which waits.
IN_THE_LOOPS_EXECUTOR = ("runnable", "chain")
KINDS = ("run", "invokable", "runnable", "chain", "pieces", "processor", "tool", "class of tool")


@pytest.mark.parametrize(
    ("start", "without"),
    [
        ('run_sync(graph, "Go.")', ()),
        ('asyncio.run(run(graph, "Go."))', IN_THE_LOOPS_EXECUTOR),
    ],
)
def test_a_process_ends_although_what_is_synchronous_in_it_hangs(start, without):
    kinds = [kind for kind in KINDS if kind not in without]
    program = PROGRAM.replace("START", start).replace(
        "HANGS.items()", f"{{kind: HANGS[kind] for kind in {kinds}}}.items()"
    )
    ended = warm.run("-c", program)
    assert ended.returncode == 0, ended.stderr
    found = ended.stdout.splitlines()
    assert [line.partition(": ")[0] for line in found] == kinds
    assert all("no answer within 0.2 s" in line for line in found), found


def test_a_loop_ends_although_its_default_executor_has_work_that_was_given_up():
    program = textwrap.dedent("""
        import asyncio, threading
        from replan.base.own_loop import run_in_own_loop

        async def main():
            work = asyncio.ensure_future(asyncio.to_thread(threading.Event().wait))
            await asyncio.sleep(0)
            work.cancel()
            await asyncio.wait({work})

        run_in_own_loop(main)
        print("ended")
    """)
    ended = warm.run("-c", program)
    assert ended.stdout == "ended\n", ended.stderr


def test_what_was_given_up_has_a_moment_to_end_before_the_process_does():
    program = textwrap.dedent("""
        import asyncio, atexit, threading
        from replan.base.user_code import in_thread

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


async def test_the_loop_of_the_caller_is_left_as_it_was():
    loop = asyncio.get_running_loop()
    # What a loop has no public name for is asked of what it does.
    whose = await asyncio.to_thread(lambda: threading.current_thread().name)

    def found():
        return (loop.get_exception_handler(), loop.get_task_factory(), loop.get_debug())

    before = found()
    model = ScriptedModel({"think": always("---\ncomplexity: simple\n---\nHi.")})
    team = [Specialist(name="a", intended_use="Works.", run=lambda context: "done")]
    graph = build_graph(Team(host=Host(model=model), specialists=team))
    await run(graph, "Hi")
    assert [each async for each in stream(graph, "Hi")]
    assert found() == before
    after = await asyncio.to_thread(lambda: threading.current_thread().name)
    assert whose.partition("_")[0] == after.partition("_")[0]


async def test_a_loop_that_has_no_executor_yet_makes_its_own_after_a_run():
    local, opened = threading.local(), []

    def query():
        if not hasattr(local, "connection"):
            local.connection = object()
            opened.append(threading.current_thread().name)

    model = ScriptedModel({"think": always("---\ncomplexity: simple\n---\nHi.")})
    team = [Specialist(name="a", intended_use="Works.", run=lambda context: "done")]
    graph = build_graph(Team(host=Host(model=model), specialists=team))
    await run(graph, "Hi")
    for _ in range(20):
        await asyncio.to_thread(query)
    assert opened
    assert all(name.startswith("asyncio_") for name in opened)


def test_a_loop_of_our_own_gets_threads_that_can_be_given_up():
    async def whose() -> str:
        return await asyncio.to_thread(lambda: threading.current_thread().name)

    assert run_in_own_loop(whose) == "replan-work"


def test_a_pool_that_is_shut_ends_its_threads_and_takes_nothing_more():
    pool = Threads()
    thread = pool.submit(threading.current_thread).result()
    pool.shutdown()
    thread.join(10)
    assert not thread.is_alive()
    with pytest.raises(RuntimeError, match="shutdown"):
        pool.submit(threading.get_ident)
