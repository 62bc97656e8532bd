"""Turns of a job: what is asked, what is corrected, what is done, and where it ends."""

import json

import pytest

from replan.errors import JobError
from replan.jobs.actions import Outcome
from replan.jobs.extraction.port import Extracted
from replan.jobs.job import Job, JobPhase, JobPlan
from replan.jobs.phases.planning import PlanDraft
from replan.jobs.spec.action_spec import ActionSpec
from replan.jobs.spec.job_spec import JobCommand, JobSpec
from replan.jobs.spec.slot import Slot

pytestmark = pytest.mark.anyio


async def test_a_job_asks_for_the_command_then_for_what_is_missing_then_acts(spec, executor, talk):
    opening = await talk(spec, None)
    assert "publish" in opening.response_message
    assert opening.need_user_input
    assert opening.job.asked.names == ("command",)
    asked = await talk(spec, "please publish something")
    assert asked.response_message == "Which product?"
    assert asked.job.required_info == ("product_center_id",)
    done = await talk(spec, None, "edit", "PL-7", "A new title", executor=executor)
    assert done.is_completed
    assert done.job.status == "completed"
    [call] = executor.calls
    assert call.parameters == {"product_listing_id": "PL-7", "title": "A new title"}
    [result] = done.job.intermediate_results
    assert (result.step, result.success, result.result) == ("do/1", True, "done")
    everything = await talk(spec, "edit, product_listing_id: PL-7, title: A new title")
    assert everything.is_completed
    assert everything.job.turns == 1


async def test_what_is_said_before_the_command_is_not_asked_for_again(spec, talk):
    first = await talk(spec, "it is about PL-7")
    assert first.job.asked.names == ("command",)
    assert (await talk(spec, "it is about PL-7", "edit")).response_message == "Which title?"
    beside = await talk(spec, "edit PL-7", "hello", "I don't know", "what is a title")
    assert (beside.job.error_code, beside.job.collected_info) == (
        "no_progress",
        {"product_listing_id": "PL-7"},
    )
    moved = await talk(spec, "edit PL-7", "activate")
    assert moved.is_completed
    assert moved.job.corrections == 1


async def test_scenario_3_a_job_that_jumps_ahead_is_taken_back(spec, executor, talk):
    job = Job(id="1", type="product_listing", phase="EXECUTION", command="edit")
    forged = job.replace(
        required_info=(),
        plan=JobPlan(id="p", command="edit", items=({"title": "x"},)),
    )
    for held in (job, forged):
        result = await talk(spec, None, job=held, executor=executor)
        assert result.next_phase is JobPhase.INFORMATION_COLLECTION
        assert result.job.command == "edit"
        assert result.job.missing_info == ("product_listing_id", "title")
    assert not executor.calls


def trip(**changes):
    def fits(value, others):
        return f"there is no {others['a']}-{value}." if value == others["a"] else None

    slots = [
        Slot("a", question="A?"),
        Slot("b", question="B?", depends_on=["a"], check=fits),
        Slot("c", question="C?", depends_on=["b"]),
        Slot("d", question="D?"),
        Slot("e", question="E?"),
    ]
    fields = {
        "slots": slots,
        "commands": [JobCommand("go", needs=["a", "b", "c", "d"], takes=["e"], action="do")],
        "actions": [ActionSpec("do", run=print)],
    }
    return JobSpec("trip", **{**fields, **changes})


async def test_a_correction_takes_back_what_depends_on_it_and_nothing_else(talk, make):
    whole = await talk(trip(), "a: 1, b: 2, c: 3, d: 4")
    assert whole.job.asked.names == ("confirmation",)
    changed = await make(trip()).process(whole.job, ["a: 5"])
    assert changed.job.collected_info == {"a": "5", "d": "4"}
    assert changed.job.missing_info == ("b", "c")
    assert "B?" in changed.response_message
    same = await make(trip()).process(whole.job, ["a: 1"])
    assert same.job.collected_info == whole.job.collected_info
    both = await make(trip()).process(whole.job, ["b: 6, a: 5"])
    assert both.job.collected_info == {"a": "5", "b": "6", "d": "4"}
    wrong = await make(trip()).process(whole.job, ["b: 1"])
    assert wrong.job.collected_info == {"a": "1", "d": "4"}
    assert "there is no 1-1." in wrong.response_message


async def test_an_unsafe_action_is_confirmed_with_the_values_that_are_done(talk, executor):
    spec = trip(commands=[JobCommand("go", needs=["a", "d"], takes=["e"], action="do")])
    said = ["a: 1, d: 4", "no", "e: 9", "d: 5"]
    result = await talk(spec, *said, executor=executor)
    assert not executor.calls
    assert "- d: 5" in result.response_message
    assert "- e: 9" in result.response_message
    done = await talk(spec, *said, "yes", executor=executor)
    assert done.is_completed
    assert executor.calls[0].parameters == {"a": "1", "d": "5", "e": "9"}
    cancelled = await talk(spec, *said, "cancel")
    assert (cancelled.job.status, cancelled.job.error_code) == ("failed", "cancelled")


@pytest.mark.parametrize("word", ["ok", "sure", "yes", "好的"])
async def test_after_a_no_the_values_are_shown_again_before_a_yes_counts(talk, executor, word):
    spec = trip(commands=[JobCommand("go", needs=["a", "d"], takes=["e"], action="do")])
    said = ["a: 1, d: 4", "no", word]
    shown = await talk(spec, *said, executor=executor)
    assert not executor.calls
    assert "- d: 4" in shown.response_message
    done = await talk(spec, *said, "yes", executor=executor)
    assert done.is_completed
    assert len(executor.calls) == 1


async def test_a_command_says_whether_its_user_confirms_it(talk, executor):
    def pay(**fields):
        usual = {"endpoint": "/pay", "method": "POST", "params": {"to": "{to}"}}
        command = JobCommand("pay", needs=["to"], action="call_api", parameters=usual)
        return JobSpec(
            "pay",
            slots=[Slot("to", question="To whom?")],
            commands=[command.replace(**fields)],
            base_urls=["http://127.0.0.1:9"],
        )

    read = {"endpoint": "/payments/{to}", "method": "get"}
    for fields, is_confirmed in (
        ({}, True),
        ({"effects": "keyed"}, True),
        ({"effects": "pure"}, True),
        ({"confirm": False}, False),
        ({"parameters": read}, False),
        ({"parameters": read, "confirm": True}, True),
        ({"parameters": read, "effects": "unsafe"}, True),
    ):
        spec = pay(**fields)
        assert spec.is_confirmed(spec.commands[0]) is is_confirmed, fields
        executor.calls.clear()
        asked = await talk(spec, "to: Bob", executor=executor)
        assert (asked.job.asked.names == ("confirmation",)) is is_confirmed, fields
        assert bool(executor.calls) is not is_confirmed
        if is_confirmed:
            assert (await talk(spec, "to: Bob", "yes", executor=executor)).is_completed
            assert executor.calls[0].effects == spec.effects_of(spec.commands[0])
    alone = pay().replace(confirm=False)
    assert not alone.is_confirmed(alone.commands[0])
    assert alone.is_confirmed(alone.commands[0].replace(confirm=True))


async def test_a_yes_or_thanks_after_the_end_begins_no_new_job(talk, make, executor):
    spec = trip(commands=[JobCommand("go", needs=["a"], action="do")])
    done = await talk(spec, "a: 1", "yes", executor=executor)
    for said in ("yes", "OK!", "no", "thanks", "好的", "谢谢", "cancel"):
        again = await make(spec, executor).process(done.job, [said])
        assert (again.job, again.is_completed, again.need_user_input) == (done.job, True, False), (
            said
        )
        assert again.response_message
    assert len(executor.calls) == 1
    assert (await make(spec).process(done.job, ["a: 2"])).job.id != done.job.id


async def test_each_turn_says_what_it_understood(talk):
    slots = [
        Slot(
            "to", label={"en": "to", "zh": "目的地"}, question={"en": "Where to?", "zh": "去哪里"}
        ),
        Slot("day", type="date", label={"zh": "日期"}, question={"en": "When?", "zh": "哪天"}),
        Slot("pin", pattern=r"\d{4}", secret=True, question={"en": "PIN?", "zh": "密码"}),
        Slot(
            "people",
            type="integer",
            label={"zh": "人数"},
            question={"en": "Many?", "zh": "几个人"},
        ),
    ]
    needs = [each.name for each in slots]
    spec = trip(
        slots=slots, languages=["en", "zh"], commands=[JobCommand("go", needs=needs, action="do")]
    )
    english = await talk(spec, None, "Oslo, tomorrow, 4821")
    assert english.response_message == "Understood: to: Oslo, day: 2026-03-03, pin: ***.\nMany?"
    chinese = await talk(spec, None, "上海，明天，4821")
    assert chinese.response_message == "已了解：目的地: 上海、日期: 2026-03-03、pin: ***。\n几个人"
    nothing = await talk(spec, None, "not sure yet")
    assert "Understood" not in nothing.response_message


async def test_at_its_bounds_a_job_fails_says_why_and_is_taken_up_again(spec, talk, make):
    lost = await talk(spec, "publish", "?", "?", "?")
    assert (lost.next_phase, lost.job.error_code) == (JobPhase.FAILED, "no_progress")
    kept = "What you have told me is kept; write again to go on."
    assert f"{lost.job.error} {kept}" == lost.response_message
    assert "product center id" in lost.response_message
    still = await make(spec).process(lost.job)
    assert (still.job, still.response_message) == (lost.job, lost.response_message)
    done = await make(spec).process(lost.job, ["PC-1"])
    assert done.is_completed
    assert done.job.id == lost.job.id
    new = await make(spec).process(done.job, ["deactivate PL-1"])
    assert new.job.id != done.job.id or new.job.command == "deactivate"
    moody = await talk(trip(max_corrections=2), "a: 1", "a: 2", "a: 3", "a: 4")
    assert (moody.job.error_code, moody.job.collected_info) == ("corrections", {"a": "4"})


async def test_an_action_that_fails_is_repeated_only_if_it_may_be(spec, talk, make, recorder):
    gone = Outcome(success=False, error="the server is gone", is_transient=True)
    passing = recorder(gone, gone)
    done = await talk(spec, "publish PC-1", executor=passing)
    assert done.is_completed
    assert len({call.key for call in passing.calls}) == 1
    assert [each.success for each in done.job.intermediate_results] == [False, False, True]
    failing = recorder(gone, gone, gone)
    failed = await talk(spec, "publish PC-1", executor=failing)
    assert (failed.job.error_code, failed.job.status) == ("action", "failed")
    assert "the server is gone" in failed.response_message
    again = await make(spec, failing).process(failed.job, ["go on"])
    assert again.is_completed
    assert len({call.key for call in failing.calls}) == 1
    unsafe = recorder(gone.replace(in_doubt=True))
    once = await talk(trip(), "a: 1, b: 2, c: 3, d: 4", "yes", executor=unsafe)
    assert (once.job.error_code, len(unsafe.calls)) == ("action", 1)
    doubt = await make(trip(), unsafe).process(once.job, ["go on"])
    assert "may have taken effect" in doubt.response_message
    assert len(unsafe.calls) == 1


async def test_the_plan_and_the_key_are_the_same_in_each_process(spec, talk, make, recorder):
    keys = set()
    for _ in range(2):
        executor = recorder()
        result = await talk(spec, "publish PC-1", executor=executor)
        keys.add((executor.calls[0].key, result.job.plan.id))
    assert len(keys) == 1
    # So is the job that follows one that is completed.
    again = recorder()
    for _ in range(2):
        await make(spec, again).process(result.job, ["publish PC-1"])
    assert len({call.key for call in again.calls}) == 1
    assert again.calls[0].key not in next(iter(keys))


async def test_each_text_of_a_list_is_done_once(recorder, make):
    spec = JobSpec(
        "tags",
        slots=[Slot("names", question="Which?", type="list")],
        commands=[JobCommand("tag", needs=["names"], each="names", action="do")],
        actions=[ActionSpec("do", run=print, effects="keyed")],
    )
    executor = recorder(
        Outcome(success=True, result=1), Outcome(success=False, error="full", is_transient=False)
    )
    failed = await make(spec, executor).process(make(spec).new_job(), ["names: a, b, c"])
    assert failed.job.error_code == "action"
    done = await make(spec, executor).process(failed.job, ["go on"])
    assert done.is_completed
    assert [call.parameters["names"] for call in executor.calls] == ["a", "b", "b", "c"]


async def test_what_a_planner_lacks_is_collected_first(spec, talk):
    class Fussy:
        async def plan(self, spec, job):
            if "e" not in job.collected_info:
                return PlanDraft(lacks=("e",))
            return PlanDraft(items=(job.collected_info,))

    keyed = {"actions": [ActionSpec("do", run=print, effects="keyed")]}
    asked = await talk(trip(**keyed), "a: 1, b: 2, c: 3, d: 4", planner=Fussy())
    assert asked.response_message == "Understood: a: 1, b: 2, c: 3, d: 4.\nE?"
    said = ["a: 1, b: 2, c: 3, d: 4", "5"]
    assert (await talk(trip(**keyed), *said, planner=Fussy())).is_completed


async def test_a_question_can_be_the_action(talk):
    spec = JobSpec(
        "poll",
        slots=[Slot("topic", question="About what?")],
        commands=[
            JobCommand(
                "ask",
                needs=["topic"],
                action="ask_user",
                parameters={"question": "What of {topic}?"},
            )
        ],
    )
    asked = await talk(spec, None, "tea")
    assert asked.response_message == "Understood: topic: tea.\nWhat of tea?"
    done = await talk(spec, None, "tea", "It is fine.")
    assert (done.is_completed, done.job.intermediate_results[0].result) == (True, "It is fine.")


async def test_fields_that_are_equal_only_to_python_are_a_correction(talk, executor):
    spec = JobSpec(
        "switch",
        slots=[
            Slot("state", question="Which?", type="object"),
            Slot("after", question="And then?", depends_on=["state"]),
        ],
        commands=[JobCommand("set", needs=["state", "after"], action="do")],
        actions=[ActionSpec("do", run=print)],
    )
    changed = await talk(spec, '{"state": {"on": 1}, "after": "x"}', '{"state": {"on": true}}')
    assert changed.job.collected_info["state"]["on"] is True
    assert changed.job.missing_info == ("after",)
    said = ['{"state": {"on": 1}, "after": "x"}', '{"state": {"on": true}, "after": "x"}', "yes"]
    await talk(spec, *said, executor=executor)
    assert executor.calls[0].parameters["state"]["on"] is True


async def test_a_failure_with_other_values_is_told_again_only_if_it_may_have_taken_effect(
    make, recorder
):
    spec = trip(commands=[JobCommand("go", needs=["a"], action="do", refusals={"409": "a"})])
    for outcome, is_told in (
        (Outcome(success=False, error="it is full", status=409), False),
        (Outcome(success=False, error="it is gone", in_doubt=True), True),
    ):
        processor = make(spec, recorder(outcome))
        result = await processor.process(processor.new_job(), ["a: 1"])
        for said in ("yes", "a: 2"):
            result = await processor.process(result.job, [said])
        assert result.job.asked.names == ("confirmation",)
        assert ("An earlier attempt" in result.response_message) is is_told


async def test_only_who_was_shown_the_values_confirms_them(make, executor, recorder):
    class Eager:
        async def extract(self, wanted):
            return Extracted(command="go", confirmed=True)

    processor = make(trip(), executor, Eager())
    job = processor.new_job(values={"a": "1", "b": "2", "c": "3", "d": "4"})
    asked = await processor.process(job, ["yes please, go"])
    assert asked.job.asked.names == ("confirmation",)
    assert not executor.calls
    assert (await processor.process(asked.job, ["yes"])).is_completed
    # Who takes up what may have taken effect is told so before it is done again.
    lost = recorder(Outcome(success=False, error="the server is gone", in_doubt=True))
    failed = await make(trip(), lost, Eager()).process(asked.job, ["yes"])
    again = await make(trip(), lost, Eager()).process(failed.job, ["yes"])
    assert "may have taken effect" in again.response_message
    assert len(lost.calls) == 1


async def test_a_job_from_outside_is_refused_with_every_field(spec, make):
    processor = make(spec)
    good = processor.new_job("edit").to_dict()
    bad = {**good, "command": "erase", "collected_info": {"colour": 1}, "missing_info": ["title2"]}
    with pytest.raises(JobError) as told:
        await processor.process(bad)
    assert [each.field for each in told.value.mistakes] == [
        "command",
        "missing_info[0]",
        "collected_info.colour",
    ]
    for field, value in {
        "phase": "DREAMING",
        "type": "other",
        "version": 2,
        "turns": "many",
        "unknown": 1,
        "history": [{"turn": 1}],
    }.items():
        with pytest.raises(JobError, match=field):
            await processor.process({**good, field: value})
    with pytest.raises(JobError, match="id"):
        await processor.process({name: each for name, each in good.items() if name != "id"})
    with pytest.raises(JobError, match="job: it is not a mapping"):
        await processor.process(json.dumps(good))


async def test_choices_are_told_in_the_language_of_the_user(make):
    spec = JobSpec(
        "seat",
        languages=["en", "zh"],
        slots=[
            Slot(
                "cabin",
                question={"en": "Which?", "zh": "哪个"},
                choices={"economy": ["cheap", "经济舱"], "business": ["商务舱"]},
                secret=True,
            )
        ],
        commands=[JobCommand("take", needs=["cabin"], action="do")],
        actions=[ActionSpec("do", run=print)],
    )
    processor = make(spec)
    asked = await processor.process(processor.new_job(language="zh"))
    assert asked.response_message.endswith("经济舱、商务舱。")
    wrong = await processor.process(asked.job, ["头等舱"])
    assert "以下之一：经济舱、商务舱。" in wrong.response_message
    taken = await processor.process(wrong.job, ["商务舱"])
    assert taken.job.collected_info == {"cabin": "business"}
