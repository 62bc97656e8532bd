"""Runs that one process works on and another one asks something of: by rows, without a server."""

import subprocess

import warm
from replan import Host, Specialist, Team, ask_user, open_runtime

OWNER = """\
import asyncio, sys, threading
from replan import Host, Team, Specialist, ask_user, open_runtime

async def work(context):
    await asyncio.Event().wait()

def paint(context):
    return ask_user("Which colour?")

team = Team(
    host=Host(model="offline"),
    specialists=[
        Specialist(name="worker", intended_use="Works.", run=work, effects="pure"),
        Specialist(name="painter", intended_use="Paints.", run=paint, effects="pure"),
    ],
)

async def main(where, plan):
    async with open_runtime(team, storage=where, grace=0.01) as runtime:
        run = await runtime.start({"plan": plan}, run_id="r")
        async for event in run.events():
            if event.type == sys.argv[3]:
                print("there", flush=True)
        result = await run
        print(result.outcome, flush=True)

asyncio.run(main(sys.argv[1], sys.argv[2]))
"""
LONG = "- [ ] 1. Dig @worker\n- [ ] 2. Paint @painter\n"


def paint(_):
    return ask_user("Which colour?")


def team():
    specialists = [
        Specialist(name="worker", intended_use="Works.", run=lambda _: "dug", effects="pure"),
        Specialist(name="painter", intended_use="Paints.", run=paint, effects="pure"),
    ]
    return Team(host=Host(model="offline"), specialists=specialists)


def owner(where, until):
    return warm.Process(["-c", OWNER, where, LONG, until], stdout=subprocess.PIPE)


async def test_a_run_is_stopped_from_another_process_and_gone_on_with_there(where):
    with owner(where, "input_requested") as process:
        assert process.stdout.readline() == "there\n"
        async with open_runtime(team(), storage=where) as runtime:
            assert (await runtime.get("r")).outcome == "running"
            told = [event async for event in _until(runtime, "input_requested")]
            await runtime.stop("r", by="anna")
            assert process.stdout.readline() == "interrupted\n"
            assert process.wait() == 0
            assert (await runtime.get("r")).outcome == "interrupted"
            answered = await runtime.answer("r", "blue", by="anna")
            result = await answered
            assert (result.outcome, result.results[2].text) == ("completed", "blue")
            events = [event async for event in runtime.events("r")]
    assert [event.seq for event in events] == [*range(1, len(events) + 1)]
    assert events[: len(told)] == told
    assert sum(event.type == "run_started" for event in events) == 1


async def test_a_plan_is_edited_from_another_process_within_a_second(where):
    with owner(where, "specialist_invoked") as process:
        assert process.stdout.readline() == "there\n"
        async with open_runtime(team(), storage=where) as runtime:
            plan = (await runtime.get("r")).plan
            text = plan.content.replace("2. Paint @painter", "2. Fence @worker (after 1)")
            assert await runtime.edit_plan("r", text, version=1, by="anna") == (1,)
            (noticed,) = [e async for e in _until(runtime, "run_steered")][-1:]
            (request,) = await runtime.storage.log.requests(["r"])
            assert (noticed.status, noticed.by, noticed.waiting_for) == ("waits", "anna", (1,))
            assert (noticed.at - request.at).total_seconds() < 1
            await runtime.stop("r")
            assert process.wait() == 0
            result = await runtime.resume("r")
            assert (result.outcome, result.plan.version) == ("completed", 2)
            assert result.plan.step(2).description == "Fence"


async def test_who_answers_a_run_whose_process_was_killed_takes_it_up(where):
    with owner(where, "input_requested") as process:
        assert process.stdout.readline() == "there\n"
        process.kill()
        process.wait()
        async with open_runtime(team(), storage=where) as runtime:
            view = await runtime.get("r")
            assert (view.outcome, [ask.key for ask in view.pending_questions]) == (
                "waiting",
                ["2/painter/1"],
            )
            await runtime.stop("r")
            result = await (await runtime.answer("r", "blue"))
            assert (result.outcome, result.results[1].text) == ("completed", "dug")


async def _until(runtime, kind):
    async for event in runtime.events("r"):
        yield event
        if event.type == kind:
            return
