"""A person edits the plan of a run at work: what has not begun follows, what began is kept."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest

from replan import (
    Host,
    InputError,
    Limits,
    RunSettings,
    Specialist,
    build_graph,
    open_runtime,
)
from replan.log.rows import Request
from replan.ports.steering import TOO_LATE
from replan.testing import ScriptedModel
from run_pages import Desk, check_run, edited, names_on
from scripts import END

pytestmark = pytest.mark.one_store
PAGE = Path(__file__).with_name("steering.md")

PLAN = """\
# Letters

- [ ] 1. Address @a
- [ ] 2. Text @a (after 1)
- [ ] 3. Send @a (after 2)
- [ ] 4. Aside @a (after 2)
"""
NEW = "- [ ] 5. Stamp @a\n"


async def steered(runtime, run_id):
    events = [e async for e in runtime.events(run_id) if e.type == "run_steered"]
    return [(e.kind, e.status, e.by, e.based_on, e.version, e.waiting_for) for e in events]


@pytest.mark.parametrize("name", names_on(PAGE))
@pytest.mark.parametrize("where", ["sqlite", "postgres"], indirect=True)
async def test_an_edit_comes_to_what_the_page_has(where, name):
    await check_run(PAGE, name, where)


async def test_of_two_edits_at_the_same_moment_the_second_is_refused_and_told(where):
    desk = Desk(held={1})
    async with open_runtime(desk.team(), storage=where, grace=0) as runtime:
        run = await runtime.start({"plan": PLAN}, run_id="r")
        await desk.began[1].wait()
        await run.stop()
        await run
        # Two processes have checked theirs, and put them on record.
        for name, by, word in (("e1", "anna", "Burn"), ("e2", "eva", "Keep")):
            fields = {"run_id": "r", "name": name, "kind": "edit", "by": by, "version": 1}
            text = PLAN.replace("Send", word)
            at = runtime.resources.clock()
            await runtime.storage.log.add_request(Request(**fields, text=text, at=at))
        desk.leave[1].set()
        result = await runtime.resume("r")
        assert [e[1:5] for e in await steered(runtime, "r")] == [
            ("taken", "anna", 1, 2),
            ("refused", "eva", 1, 2),
        ]
    assert "3 Burn" in desk.did
    (warning,) = result.warnings
    assert warning.startswith(
        "The edit of the plan by eva, made from version 1, was refused at version 2: "
    )


async def test_that_a_new_step_of_an_edit_cannot_begin_is_told_once():
    class Failing(Desk):
        async def work(self, context):
            await super().work(context)
            if context.task_description == "Stamp":
                raise ValueError("no stamps")
            return "done"

    desk = Failing(held={1})
    async with open_runtime(desk.team(), storage=":memory:") as runtime:
        run = await runtime.start({"plan": PLAN}, run_id="r")
        await edited(run, desk, lambda text: f"{text}{NEW}- [ ] 6. Post @a (after 5)\n")
        waits = list[tuple[int, int]]()
        async for event in run.events():
            if event.type == "step_deferred":
                waits.append((event.round, event.step_id))
            if event.type == "specialist_completed" and event.step_id == 5:
                desk.leave[1].set()
    assert waits.count((1, 6)) == 1


async def test_an_edit_is_merged_into_the_plan_of_the_run_and_not_of_a_team_inside(where):
    desk = Desk(held={1})
    letter = "- [ ] 1. Inside @a\n- [ ] 2. After it @a (after 1)\n"

    async def around(context):
        script = {"think": f"---\ncomplexity: complex\n---\n{letter}", "feedback": END}
        inside = desk.team().replace(host=Host(model=ScriptedModel(script)))
        state = await build_graph(inside).ainvoke({"messages": [("user", "Write.")]})
        return state["final_answer"].text

    team = desk.team()
    worker = Specialist(name="a", intended_use="Works.", run=around, effects="pure")
    async with open_runtime(team.replace(specialists=[worker]), storage=where) as runtime:
        run = await runtime.start({"plan": "- [ ] 1. Write @a\n"}, run_id="r")
        await edited(run, desk, lambda text: text + "- [ ] 2. Send @a (after 1)\n")
        desk.leave[1].set()
        result = await run
        assert [each[1] for each in await steered(runtime, "r")] == ["waits", "taken"]
    assert (result.plan.version, result.results[1].text) == (2, "The end.")
    assert desk.did == ["1 Inside", "2 After it"] * 2


async def test_the_host_judges_when_what_began_with_an_edit_has_ended(where):
    desk, inputs = Desk(held={1, 5}), {}
    new = "- [ ] 6. Seal @a (after 1)\n"
    judged = (
        f"---\nverdict: continue\nupdate: More.\n---\n- [x] 1. Write @a\n- [x] 5. Stamp @a\n{new}"
    )

    async def work(context):
        inputs[context.plan_step.id] = dict(context.inputs)
        return await desk.work(context) + " of a long letter" * 200

    team = desk.team(feedback=[judged, END])
    worker = Specialist(name="a", intended_use="Works.", run=work, effects="pure")
    async with open_runtime(team.replace(specialists=[worker]), storage=where) as runtime:
        run = await runtime.start({"plan": "- [ ] 1. Write @a\n"}, run_id="r")
        await edited(run, desk, lambda text: text + NEW)
        await asyncio.wait_for(desk.began[5].wait(), 20)
        await run.send_message("Seal it, too.")
        desk.leave[1].set()
        desk.leave[5].set()
        result = await run
    assert result.outcome == "completed"
    assert "5. Stamp" in str(desk.model.calls[0].messages)
    assert inputs[6] == {1: result.results[1].text}
    assert len(desk.did) == 3


async def test_a_step_of_an_edit_is_done_when_all_whom_it_names_have_done_it(where):
    desk = Desk(held={1})

    async def both(context):
        if context.plan_step.id == 3:
            await asyncio.wait_for(desk.began[2].wait(), 20)
            desk.leave[1].set()
        return await desk.work(context)

    members = [
        Specialist(name="a", intended_use="Works.", run=desk.work, effects="pure"),
        Specialist(name="b", intended_use="Sends.", run=both, effects="keyed"),
    ]
    settings = RunSettings(limits=Limits(max_parallel_steps=2))
    async with open_runtime(desk.team().replace(specialists=members), storage=where) as runtime:
        run = await runtime.start({"plan": "- [ ] 1. Write @a\n"}, run_id="r", settings=settings)
        more = "- [ ] 2. Fold @a\n- [ ] 3. Stamp @a @b\n"
        await edited(run, desk, lambda text: text + more)
        desk.leave[1].set()
        result = await run
    assert (result.outcome, result.plan.step(3).status) == ("completed", "completed")
    assert sorted(desk.did) == ["1 Write", "2 Fold", "3 Stamp", "3 Stamp"]


async def test_what_a_killed_process_left_of_a_run_that_is_over_is_told_when_it_is_resumed(where):
    """The process was killed between the last checkpoint and the word about the request."""
    desk = Desk()
    async with open_runtime(desk.team(), storage=where) as runtime:
        await runtime.run({"plan": PLAN}, run_id="r")
        log = runtime.storage.log
        left = {"run_id": "r", "kind": "message", "at": datetime.now(UTC), "by": "anna"}
        await log.add_request(Request(**left, name="m1", text="Also compare 2023."))
        for _ in range(2):
            assert (await runtime.resume("r")).outcome == "completed"
        assert await log.requests(["r"]) == []
        (told,) = [e async for e in runtime.events("r") if e.type == "run_steered"]
    assert (told.kind, told.status, told.by) == ("message", "refused", "anna")
    assert (told.text, told.reason) == ("Also compare 2023.", TOO_LATE)


async def test_an_edit_that_comes_when_the_run_has_just_ended_is_told(where, monkeypatch):
    desk = Desk(held={1})
    async with open_runtime(desk.team(), storage=where) as runtime:
        run = await runtime.start({"plan": PLAN}, run_id="r")
        add = runtime.storage.log.add_request

        async def added(request, **options):
            desk.leave[1].set()
            await run
            return await add(request, **options)

        monkeypatch.setattr(runtime.storage.log, "add_request", added)
        with pytest.raises(InputError, match=TOO_LATE):
            await edited(run, desk, lambda text: text.replace("Send", "Burn"))
        assert await steered(runtime, "r") == [("edit", "refused", "anna", 1, 0, ())]
        assert await runtime.storage.log.requests(["r"]) == []


async def test_an_edit_that_was_merged_before_its_author_hears_of_it_is_not_refused(
    where, monkeypatch
):
    desk = Desk(held={1})
    async with open_runtime(desk.team(), storage=where) as runtime:
        run = await runtime.start({"plan": PLAN}, run_id="r")
        add = runtime.storage.log.add_request

        async def added(request, **options):
            stored = await add(request, **options)
            await anext(each async for each in run.events() if each.type == "run_steered")
            desk.leave[1].set()
            await run
            return stored

        monkeypatch.setattr(runtime.storage.log, "add_request", added)
        await edited(run, desk, lambda text: text.replace("Send", "Burn"))
        assert [each[1] for each in await steered(runtime, "r")] == ["waits", "taken"]
    assert "3 Burn" in desk.did


async def test_what_was_refused_just_before_a_kill_is_told_once(where, monkeypatch):
    """The process was killed between the word about the request and the mark on its row."""
    desk = Desk(held={1})
    async with open_runtime(desk.team(), storage=where, grace=0) as runtime:
        run = await runtime.start({"plan": PLAN}, run_id="r")
        await edited(run, desk, lambda text: text.replace("Send", "Burn"))
        log, refused = runtime.storage.log, asyncio.Event()
        take = log.take_requests

        async def killed(requests, at):
            refused.set()

        monkeypatch.setattr(log, "take_requests", killed)
        fields = {"run_id": "r", "name": "e2", "kind": "edit", "by": "eva", "version": 1}
        text = PLAN.replace("Send", "Keep")
        await log.add_request(Request(**fields, text=text, at=runtime.resources.clock()))
        await asyncio.wait_for(refused.wait(), 20)
        await run.stop()
        await run
        monkeypatch.setattr(log, "take_requests", take)
        desk.leave[1].set()
        assert (await runtime.resume("r")).outcome == "completed"
        told = [e[1:3] for e in await steered(runtime, "r") if e[1] != "waits"]
        assert await log.requests(["r"]) == []
    assert sorted(told) == [("refused", "eva"), ("taken", "anna")]


@pytest.mark.parametrize("is_seen", [False, True])
async def test_what_comes_while_a_run_is_entered_as_over_is_told_once(where, monkeypatch, is_seen):
    async with open_runtime(Desk().team(), storage=where) as runtime:
        log, enter, looks = runtime.storage.log, runtime.storage.runs.update, asyncio.Queue()
        read = log.requests

        async def entered(run_id, outcome, at):
            about = {"run_id": run_id, "name": "m1", "kind": "message", "at": datetime.now(UTC)}
            request = Request(**about, by="anna", text="Also compare 2023.")
            if not is_seen:
                await log.add_request(request)
            await enter(run_id, outcome, at)
            if is_seen:
                await log.add_request(request)
                # Its owner has looked, and looks again once it is done with what it found.
                for _ in range(looks.qsize() + 2):
                    await looks.get()

        async def seen(*given, **named):
            looks.put_nowait(found := await read(*given, **named))
            return found

        monkeypatch.setattr(runtime.storage.runs, "update", entered)
        monkeypatch.setattr(log, "requests", seen)
        await runtime.run({"plan": PLAN}, run_id="r")
        assert await log.requests(["r"]) == []
        (told,) = [e async for e in runtime.events("r") if e.type == "run_steered"]
    assert (told.status, told.reason) == ("refused", TOO_LATE)
