"""A person edits the plan of a run at work: what has not begun follows, what began is kept."""

import asyncio
from datetime import UTC, datetime

import pytest

from replan import (
    Host,
    InputError,
    Limits,
    PlanConflictError,
    RunSettings,
    Specialist,
    Team,
    build_graph,
    open_runtime,
)
from replan.log.rows import Request
from replan.ports.steering import TOO_LATE
from replan.testing import ScriptedModel, always
from scripts import END

pytestmark = pytest.mark.one_store

PLAN = """\
# Letters

- [ ] 1. Address @a
- [ ] 2. Text @a (after 1)
- [ ] 3. Send @a (after 2)
- [ ] 4. Aside @a (after 2)
"""
NEW = "- [ ] 5. Stamp @a\n"


class Desk:
    """Work that is counted; steps in `held` wait until they are let go."""

    def __init__(self, held=()):
        self.did, self.held = [], set(held)
        self.began = {step: asyncio.Event() for step in range(1, 9)}
        self.leave = {step: asyncio.Event() for step in range(1, 9)}

    async def work(self, context):
        step = context.plan_step.id
        self.did.append(f"{step} {context.task_description}")
        self.began[step].set()
        if step in self.held:
            await self.leave[step].wait()
        return f"done {step}"

    def team(self, feedback=None, **options):
        self.model = ScriptedModel({"feedback": feedback or always(END)})
        worker = Specialist(name="a", intended_use="Works.", run=self.work, effects="pure")
        other = Specialist(name="b", intended_use="Sends.", run=self.work, effects="unsafe")
        return Team(host=Host(model=self.model), specialists=[worker, other], **options)


async def steered(runtime, run_id):
    events = [e async for e in runtime.events(run_id) if e.type == "run_steered"]
    return [(e.kind, e.status, e.by, e.based_on, e.version, e.waiting_for) for e in events]


async def edited(run, desk, text, step=1, **options):
    await desk.began[step].wait()
    report = await run.report()
    given = {"version": report.plan.version, "by": "anna", **options}
    return await run.edit_plan(text(report.plan.content), **given)


async def test_steps_that_have_not_begun_follow_an_edit_and_those_at_work_are_kept(where):
    desk = Desk(held={1})
    async with open_runtime(desk.team(), storage=where) as runtime:
        run = await runtime.start({"plan": PLAN}, run_id="r")

        def text(content):
            lines = content.replace("2. Text", "2. Rhyme").splitlines()
            kept = [line for line in lines if "3. Send" not in line]
            return "\n".join([*kept, "- [ ] 5. Sign @a (after 2)", ""])

        assert await edited(run, desk, text) == (1,)
        desk.leave[1].set()
        result = await run
        assert (result.outcome, result.plan.version) == ("completed", 2)
        assert sorted(desk.did) == ["1 Address", "2 Rhyme", "4 Aside", "5 Sign"]
        assert [each.by for each in result.plan.update_history] == ["person"]
        assert await steered(runtime, "r") == [
            ("edit", "waits", "anna", 1, 0, (1,)),
            ("edit", "taken", "anna", 1, 2, ()),
        ]
        assert (await runtime.get("r")).revisions[-1].by == "anna"


async def test_what_of_an_edit_may_have_been_misread_is_told():
    desk = Desk(held={1})
    async with open_runtime(desk.team(), storage=":memory:") as runtime:
        run = await runtime.start({"plan": PLAN}, run_id="r")
        await edited(run, desk, lambda text: text.replace("3. Send", "3. Send (after 1) it"))
        desk.leave[1].set()
        await run
        found = [e async for e in runtime.events("r") if e.type == "plan_parse_warning"]
    assert [(each.kind, each.step) for e in found for each in e.parse_warnings] == [
        ("dependency", 3)
    ]


async def test_marks_and_remarks_alone_make_a_version_too(where):
    desk = Desk(held={1})
    async with open_runtime(desk.team(), storage=where) as runtime:
        run = await runtime.start({"plan": PLAN}, run_id="r")

        def text(content):
            return "Mind the stamps.\n\n" + content.replace("[ ] 3. Send", "[-] 3. Send")

        await edited(run, desk, text)
        desk.leave[1].set()
        result = await run
        assert (result.outcome, result.plan.version) == ("completed", 2)
        assert result.plan.content.startswith("Mind the stamps.")
        assert [each[0] for each in sorted(desk.did)] == ["1", "2", "4"]
        assert (await runtime.get("r")).plan.update_history[-1].by == "person"


async def test_an_edit_of_another_version_is_refused_with_both_versions(where):
    desk = Desk(held={1, 2})
    async with open_runtime(desk.team(), storage=where) as runtime:
        run = await runtime.start({"plan": PLAN}, run_id="r")
        await edited(run, desk, lambda text: text.replace("3. Send", "3. Burn"))
        desk.leave[1].set()
        with pytest.raises(PlanConflictError) as error:
            await edited(run, desk, lambda text: text, step=2, version=1)
        assert (error.value.expected, error.value.found) == (1, 2)
        assert "version 1 of the plan, and the plan is at version 2" in str(error.value)
        desk.leave[2].set()
        assert (await run).plan.version == 2
    assert "3 Burn" in desk.did


async def test_of_two_edits_of_one_version_the_second_is_refused(where):
    desk = Desk(held={1})
    async with open_runtime(desk.team(), storage=where) as runtime:
        run = await runtime.start({"plan": PLAN}, run_id="r")
        await edited(run, desk, lambda text: text.replace("3. Send", "3. Burn"))
        why = "An edit of version 1 of the plan, by anna, waits to be merged. Repeat yours in ver"
        with pytest.raises(InputError, match=why):
            await edited(run, desk, lambda text: text.replace("3. Send", "3. Keep"), by="eva")
        desk.leave[1].set()
        assert (await run).plan.version == 2
    assert "3 Burn" in desk.did


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


async def test_a_step_that_ended_since_keeps_its_mark_if_the_edit_leaves_it(where):
    desk = Desk(held={1, 2})
    async with open_runtime(desk.team(), storage=where) as runtime:
        run = await runtime.start({"plan": PLAN}, run_id="r")
        await desk.began[1].wait()
        old = (await run.report()).plan.content
        desk.leave[1].set()
        await desk.began[2].wait()
        assert "- [ ] 1." in old
        await run.edit_plan(old.replace("3. Send", "3. Burn"), version=1)
        desk.leave[2].set()
        result = await run
    assert (result.outcome, result.plan.version, result.warnings) == ("completed", 2, ())
    assert [each[0] for each in sorted(desk.did)] == ["1", "2", "3", "4"]
    assert result.plan.step(1).result == "done 1"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (lambda text: text.replace("1. Address", "1. Guess"), "changes what is at work: step 1"),
        (lambda text: text.replace("- [ ] 1. Address @a\n", ""), "no step 1|step 1"),
        (lambda text: text, "changes nothing of version 1"),
        (lambda text: text.replace("(after 2)", "(after 9)"), "9"),
        (lambda text: text.replace("@a (after 2)", "@nobody (after 2)"), "nobody"),
    ],
)
async def test_an_edit_that_cannot_be_is_refused_before_anything_happens(text, why):
    desk = Desk(held={1})
    async with open_runtime(desk.team(), storage=":memory:") as runtime:
        run = await runtime.start({"plan": PLAN}, run_id="r")
        with pytest.raises(InputError, match=why):
            await edited(run, desk, text)
        desk.leave[1].set()
        assert (await run).plan.version == 1
        assert await steered(runtime, "r") == []
    assert len(desk.did) == 4


async def test_a_step_that_is_done_cannot_be_changed(where):
    desk = Desk(held={2})
    async with open_runtime(desk.team(), storage=where) as runtime:
        run = await runtime.start({"plan": PLAN}, run_id="r")
        with pytest.raises(InputError, match="Step 1 is completed"):
            await edited(run, desk, lambda text: text.replace("Address", "Guess"), step=2)
        desk.leave[2].set()
        await run


async def test_in_the_last_round_an_edit_is_refused_and_nothing_is_held_up(where):
    desk = Desk(held={1})
    settings = RunSettings(limits=Limits(max_rounds=1))
    async with open_runtime(desk.team(), storage=where) as runtime:
        run = await runtime.start({"plan": PLAN}, run_id="r", settings=settings)
        with pytest.raises(InputError, match=r"last round \(max_rounds=1\)"):
            await edited(run, desk, lambda text: text.replace("Send", "Burn"))
        desk.leave[1].set()
        assert (await run).outcome == "completed"


async def test_unsafe_work_that_an_edit_adds_waits_for_approval_as_plans_do():
    for approval, asks in (("never", False), ("plan", True), ("revisions", True)):
        desk = Desk(held={1})
        settings = RunSettings(approval=approval)
        async with open_runtime(desk.team(), storage=":memory:") as runtime:
            run = await runtime.start({"plan": PLAN}, run_id="r", settings=settings)
            await edited(run, desk, lambda text: text.replace("Send @a", "Send @b"))
            desk.leave[1].set()
            result = await run
            assert result.outcome == ("waiting" if asks else "completed"), approval
            if asks:
                (asked,) = (await runtime.get("r")).pending_questions
                assert "Send @b" in asked.text
                assert "+- [ ] 3. Send @b" in asked.details["changes"]
                assert "3 Send" not in desk.did
                result = await (await runtime.answer("r", {asked.key: "approve"}))
            assert (result.outcome, result.plan.version) == ("completed", 2)
            assert "3 Send" in desk.did


async def test_work_that_is_safe_needs_no_approval_of_an_edit():
    desk = Desk(held={1})
    settings = RunSettings(approval="plan")
    async with open_runtime(desk.team(), storage=":memory:") as runtime:
        run = await runtime.start({"plan": PLAN}, run_id="r", settings=settings)
        await edited(run, desk, lambda text: text.replace("Send", "Burn"))
        desk.leave[1].set()
        assert (await run).outcome == "completed"


async def test_an_edit_of_a_run_that_rests_is_merged_when_it_continues(where):
    desk = Desk(held={1})
    async with open_runtime(desk.team(), storage=where, grace=0) as runtime:
        run = await runtime.start({"plan": PLAN}, run_id="r")
        await desk.began[1].wait()
        await run.stop()
        assert (await run).outcome == "interrupted"
        text = (await run.report()).plan.content.replace("Send", "Burn")
        assert await run.edit_plan(text, version=1) == ()
        desk.leave[1].set()
        result = await runtime.resume("r")
        assert (result.outcome, result.plan.version) == ("completed", 2)
        assert "3 Burn" in desk.did


async def test_a_new_step_begins_while_a_slow_one_is_still_at_work(where):
    desk, heard = Desk(held={1}), []
    async with open_runtime(desk.team(), storage=where, on_event=heard.append) as runtime:
        run = await runtime.start({"plan": PLAN}, run_id="r")
        more = "- [ ] 5. Stamp @a\n- [ ] 6. Glue @a (after 5)\n- [ ] 7. Wax @b\n"
        assert await edited(run, desk, lambda text: text + more) == (1,)
        await asyncio.wait_for(desk.began[6].wait(), 20)
        await asyncio.wait_for(desk.began[7].wait(), 20)
        desk.leave[1].set()
        result = await run
        assert (result.outcome, result.plan.version, result.warnings) == ("completed", 2, ())
        (told,) = [e.markdown for e in heard if e.type == "plan_updated" and e.by == "person"]
        assert told.count("[x]") == 4
        report = await runtime.get("r")
        assert [each.status_text for each in report.steps] == ["completed"] * 7
    assert sorted(each[0] for each in desk.did) == ["1", "2", "3", "4", "5", "6", "7"]


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


async def test_a_step_that_began_ahead_gets_the_results_of_the_round(where):
    desk = Desk(held={2})
    inputs = {}

    async def work(context):
        inputs[context.plan_step.id] = dict(context.inputs)
        return await desk.work(context)

    team = desk.team()
    worker = Specialist(name="a", intended_use="Works.", run=work, effects="pure")
    async with open_runtime(team.replace(specialists=[worker]), storage=where) as runtime:
        plan = PLAN.replace("(after 2)", "(after 2; retries 0)")
        run = await runtime.start({"plan": plan}, run_id="r")
        text = await edited(run, desk, lambda text: text + "- [ ] 5. Stamp @a (after 1)\n", step=2)
        assert text == (2,)
        await asyncio.wait_for(desk.began[5].wait(), 20)
        desk.leave[2].set()
        assert (await run).outcome == "completed"
    assert inputs[5] == {1: "done 1"}
    assert len(desk.did) == 5


async def test_an_edit_of_a_step_that_is_then_left_out_is_merged_all_the_same(where):
    desk = Desk(held={1})
    async with open_runtime(desk.team(), storage=where) as runtime:
        plan = PLAN.replace("3. Send @a (after 2)", "3. Send @a (if 1 failed)")
        run = await runtime.start({"plan": plan}, run_id="r")
        await edited(run, desk, lambda text: text.replace("Send", "Burn") + NEW)
        await asyncio.wait_for(desk.began[5].wait(), 20)
        desk.leave[1].set()
        result = await run
        assert (result.outcome, result.plan.version, result.warnings) == ("completed", 2, ())
        assert [each[1] for each in await steered(runtime, "r")] == ["waits", "taken"]
    assert result.plan.step(3).description == "Burn"
    assert result.plan.step(3).status == "skipped"
    assert result.plan.step(5).result == "done 5"


async def test_a_revision_on_top_of_an_edit_that_waits_for_approval_is_approved_with_it(where):
    desk = Desk(held={1})

    async def work(context):
        await desk.work(context)
        if context.plan_step.id == 1:
            raise ValueError("no address")
        return "done"

    revised = (
        "---\nverdict: continue\nupdate: Ask first.\n---\n# Letters\n\n"
        "- [ ] 1. Ask for the address @a (retries 0)\n- [ ] 2. Text @a (after 1)\n"
        "- [ ] 3. Send @b (after 2)\n- [ ] 4. Aside @a (after 2)\n"
    )
    team = desk.team(feedback=[revised, always(END)])
    members = [
        Specialist(name="a", intended_use="Works.", run=work, effects="pure"),
        Specialist(name="b", intended_use="Sends.", run=work, effects="unsafe"),
    ]
    plan = PLAN.replace("1. Address @a", "1. Address @a (retries 0)")
    settings = RunSettings(approval="plan")
    async with open_runtime(team.replace(specialists=members), storage=where) as runtime:
        run = await runtime.start({"plan": plan}, run_id="r", settings=settings)
        await edited(run, desk, lambda text: text.replace("Send @a", "Send @b"))
        desk.leave[1].set()
        result = await run
        assert (result.outcome, result.plan.version) == ("waiting", 3)
        (asked,) = (await runtime.get("r")).pending_questions
        assert "Send @b" in asked.text
        assert "Ask for the address" in asked.text
        rejected = await (await runtime.answer("r", {asked.key: "reject"}))
        assert rejected.outcome == "rejected"
    assert [each[0] for each in desk.did] == ["1"]


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


async def test_a_step_that_began_with_an_edit_asks_in_its_round(where):
    desk = Desk(held={1})
    async with open_runtime(desk.team(), storage=where) as runtime:
        run = await runtime.start({"plan": "- [ ] 1. Write @a\n"}, run_id="r")
        more = "- [ ] 5. Stamp @b (ask first)\n- [ ] 6. Glue @a (after 5)\n"
        await edited(run, desk, lambda text: text + more)
        asked = await anext(e async for e in run.events() if e.type == "input_requested")
        assert (asked.step_id, desk.did) == (5, ["1 Write"])
        desk.leave[1].set()
        result = await run
        assert (result.outcome, result.plan.version) == ("waiting", 2)
        (question,) = (await runtime.get("r")).pending_questions
        result = await (await runtime.answer("r", {question.key: "approve"}))
    assert result.outcome == "completed"
    assert desk.did == ["1 Write", "5 Stamp", "6 Glue"]


async def test_a_step_that_an_edit_gives_to_somebody_else_is_done_by_them_at_once(where):
    desk = Desk(held={1})
    plan = "- [ ] 1. Write @a\n- [ ] 2. Send @a (after 1)\n- [ ] 3. Seal @a @b\n"
    settings = RunSettings(limits=Limits(max_parallel_steps=1))
    async with open_runtime(desk.team(), storage=where) as runtime:
        run = await runtime.start({"plan": plan}, run_id="r", settings=settings)

        def text(content):
            return content.replace("3. Seal @a @b", "3. Sign @b @a").replace(
                "2. Send @a", "2. Send @b"
            )

        await edited(run, desk, text)
        desk.leave[1].set()
        result = await run
    assert (result.outcome, result.plan.version) == ("completed", 2)
    assert sorted(desk.did) == ["1 Write", "2 Send", "3 Sign", "3 Sign"]
    assert result.plan.step(3).status == "completed"


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


async def test_a_run_that_is_stopped_goes_on_with_what_began_with_an_edit(where):
    desk = Desk(held={1, 5})
    async with open_runtime(desk.team(), storage=where) as runtime:
        run = await runtime.start({"plan": PLAN}, run_id="r")
        await edited(run, desk, lambda text: text + NEW + "- [ ] 6. Glue @b (after 5)\n")
        await asyncio.wait_for(desk.began[5].wait(), 20)
        await run.stop()
        for step in (5, 1):
            desk.leave[step].set()
        assert (await run).outcome == "interrupted"
        assert sorted(desk.did) == ["1 Address", "5 Stamp"]
        result = await runtime.resume("r")
    assert (result.outcome, result.plan.version) == ("completed", 2)
    assert sorted(each[0] for each in desk.did) == ["1", "2", "3", "4", "5", "6"]


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
