"""What a new input makes of a thread."""

import pytest
from langgraph.runtime import Runtime

from replan import InputError
from replan.nodes.begin import begin
from replan.nodes.host.handed_plan import read_handed_plan


def begun(state, services, settings=None):
    return begin(state, Runtime(context=settings), {}, services=services)


PLAN = "# Two things\n\n- [ ] 1. One @a\n- [ ] 2. Two @B (after 1)\n"


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
