"""What a new input makes of a thread."""

import pytest
from langchain_core.messages import HumanMessage

from replan import InputError, Limits, PlanDocumentError, RunSettings, SpecialistResult
from replan.nodes.run_start import (
    read_handed_plan,
    start_run,
)
from replan.ports.journal import Attempt

ASKED = {"messages": [HumanMessage("Go.")]}
PLAN = "# Two things\n\n- [ ] 1. One @a\n- [ ] 2. Two @B (after 1)\n"


async def test_a_run_gets_an_id_the_settings_and_the_thread_gets_nothing_twice(services):
    start = await start_run(ASKED, None, {}, services(), began="c")
    assert start.plan is None
    assert start.update["run_id"] == start.view["run_id"] == "new-run"
    assert start.view["settings"] == services().settings
    # The request is in the thread already.
    assert start.update["messages"] == []
    assert [message.text for message in start.view["messages"]] == ["Go."]


async def test_the_caller_may_ask_for_fewer_rounds(services):
    asked = RunSettings(limits=Limits(max_rounds=4))
    start = await start_run(ASKED, asked, {}, services(), began="c")
    assert start.update["max_rounds"] == start.update["settings"].limits.max_rounds == 4


@pytest.mark.parametrize(
    ("plan", "request_"),
    [(PLAN, "Two things"), ("- [ ] 1. One @a\n", "Run this plan.")],
    ids=["with a title", "without"],
)
async def test_a_plan_without_a_message_is_a_request_of_its_own(services, plan, request_):
    start = await start_run({"plan": plan}, None, {}, services(), began="c")
    assert [message.text for message in start.update["messages"]] == [request_]
    assert start.plan.steps[0].id == 1


@pytest.mark.parametrize("text", [None, "", "  \n"])
async def test_a_blank_plan_is_none(services, text):
    assert read_handed_plan(text, services()) == (None, ())
    with pytest.raises(InputError, match="nothing to do"):
        await start_run({"plan": text}, None, {}, services(), began="c")


def test_a_finished_step_may_name_somebody_who_left_and_an_open_one_may_not(services):
    assert read_handed_plan("- [x] 1. One @gone\n- [ ] 2. Two @A\n", services())[0] is not None
    with pytest.raises(InputError, match=r"Step 2 .*@gone.*Use one of: @a, @b\."):
        read_handed_plan("- [x] 1. One @a\n- [ ] 2. Two @a @gone\n", services())


def test_the_mistakes_of_a_plan_are_told_together(services):
    with pytest.raises(PlanDocumentError, match="2 mistakes") as caught:
        read_handed_plan("- [ ] 1. One @a\n- [ ] 1. Two @a\n- [ ] 3. Three (after 9)\n", services())
    assert [mistake.line for mistake in caught.value.mistakes] == [2, 3]


def finished(services, key, step_id):
    attempt = Attempt(
        run_id="old",
        step_id=step_id,
        specialist="a",
        number=1,
        key=key,
        started_at=services.clock(),
    )
    result = SpecialistResult(specialist_name="a", step_id=step_id, round=2)
    return services.journal.finished(attempt, result, services.clock())


async def test_finished_work_of_an_overtaken_run_goes_into_the_history_once(services):
    live = services()
    await finished(live, "k1", 1)
    await finished(live, "k2", 2)
    state = {**ASKED, "run_id": "old", "current_round": 2}
    (record,) = (await start_run(state, None, {}, live, began="c")).update["execution_history"]
    assert (record.round, set(record.results.results)) == (2, {"1/a", "2/a"})
    state["execution_history"] = [record]
    assert (await start_run(state, None, {}, live, began="c")).update["execution_history"] == []


async def test_a_run_that_was_completed_left_nothing_behind(services):
    live = services()
    await finished(live, "k1", 1)
    state = {**ASKED, "run_id": "old", "is_completed": True}
    assert (await start_run(state, None, {}, live, began="c")).update["execution_history"] == []
