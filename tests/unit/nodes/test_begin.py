"""What a new input makes of a thread."""

import pytest
from langchain_core.messages import HumanMessage
from langgraph.runtime import Runtime

from replan import InputError, Limits, PlanDocumentError, RunSettings, SpecialistResult
from replan.host.handed_plan import read_handed_plan
from replan.log.rows import Attempt
from replan.nodes.begin import begin


def begun(state, services, settings=None):
    return begin(state, Runtime(context=settings), {}, services=services)


ASKED = {"messages": [HumanMessage("Go.")]}
PLAN = "# Two things\n\n- [ ] 1. One @a\n- [ ] 2. Two @B (after 1)\n"


async def test_a_run_gets_an_id_the_settings_and_the_thread_gets_nothing_twice(services):
    update = await begun(ASKED, services())
    assert update["current_plan"].value is None
    assert update["run_id"] == "new-run"
    assert update["settings"] == services().settings
    # The request is in the thread already.
    assert update["messages"] == []


async def test_the_caller_may_ask_for_fewer_rounds(services):
    asked = RunSettings(limits=Limits(max_rounds=4))
    update = await begun(ASKED, services(), asked)
    assert update["max_rounds"] == update["settings"].limits.max_rounds == 4


@pytest.mark.parametrize(
    ("plan", "request_"),
    [(PLAN, "Two things"), ("- [ ] 1. One @a\n", "Run this plan.")],
    ids=["with a title", "without"],
)
async def test_a_plan_without_a_message_is_a_request_of_its_own(services, plan, request_):
    update = await begun({"plan": plan}, services())
    assert [message.text for message in update["messages"]] == [request_]
    assert update["current_plan"].value.steps[0].id == 1


@pytest.mark.parametrize("text", [None, "", "  \n"])
async def test_a_blank_plan_is_none(services, text):
    assert read_handed_plan(text, services()) == (None, ())
    with pytest.raises(InputError, match="nothing to do"):
        await begun({"plan": text}, services())


def test_a_finished_step_may_name_somebody_who_left_and_an_open_one_may_not(services):
    assert read_handed_plan("- [x] 1. One @gone\n- [ ] 2. Two @A\n", services())[0] is not None
    with pytest.raises(InputError, match=r"Step 2 .*@gone.*Use one of: @a, @b\."):
        read_handed_plan("- [x] 1. One @a\n- [ ] 2. Two @a @gone\n", services())


def test_the_mistakes_of_a_plan_are_told_together(services):
    with pytest.raises(PlanDocumentError, match="3 mistakes") as caught:
        read_handed_plan("- [ ] 1. One @a\n- [ ] 1. Two @a\n- [ ] 3. Three (after 9)\n", services())
    assert [mistake.line for mistake in caught.value.mistakes] == [2, 3, 3]


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
    return services.log.finished(attempt, result, services.clock())


async def test_finished_work_of_an_overtaken_run_goes_into_the_history_once(services):
    live = services()
    await finished(live, "k1", 1)
    await finished(live, "k2", 2)
    state = {**ASKED, "run_id": "old", "current_round": 2}
    (record,) = (await begun(state, live))["execution_history"]
    assert (record.round, set(record.results.results)) == (2, {"1/a", "2/a"})
    state["execution_history"] = [record]
    assert (await begun(state, live))["execution_history"] == []


async def test_a_run_that_was_completed_left_nothing_behind(services):
    live = services()
    await finished(live, "k1", 1)
    state = {**ASKED, "run_id": "old", "is_completed": True}
    assert (await begun(state, live))["execution_history"] == []


async def test_the_plan_that_an_earlier_run_left_open_is_kept_for_who_thinks(services):
    plan = (await begun({"plan": PLAN}, services()))["current_plan"].value
    state = {**ASKED, "run_id": "old", "current_plan": plan}
    assert "1. One @a" in (await begun(state, services()))["previous_plan"]
    update = await begun({**state, "is_completed": True, "previous_plan": "old"}, services())
    assert update["previous_plan"] == ""
