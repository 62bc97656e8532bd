"""Changed steps of a plan: its document follows from them to the byte; wrong ones are refused."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, strategies as st
from langgraph.channels import LastValue
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.errors import InvalidUpdateError
from langgraph.graph import END, START, StateGraph
from langgraph.types import Overwrite

from replan import PlanStep, StepStatus, TaskPlan
from replan.plan import PlanUpdate, PlanUpdateType
from replan.plan.markdown.document import refresh_content
from replan.plan.statuses import with_statuses
from replan.state.changed_steps import (
    ChangedSteps,
    PlanChannel,
    after_writes,
    plan_write,
)
from replan.state.enhanced import EnhancedState

ENDS = ["\n", "\r\n", "\r", "\u2028", "\x0b", "\x1c", ""]
LINES = st.builds(
    str.__add__,
    st.sampled_from(["", "- [ ] 1. One", "- [x] 1. One", "  > text", "é研", "\ud800"])
    | st.text(max_size=3),
    st.sampled_from(ENDS),
)
CONTENTS = st.lists(LINES, max_size=12).map("".join)
TIMES = st.sampled_from(
    [
        None,
        datetime(2026, 1, 1, tzinfo=UTC),
        datetime(2026, 1, 1, 2, tzinfo=timezone(timedelta(hours=2))),
        datetime(2026, 2, 1, tzinfo=UTC),
    ]
)
UPDATES = st.builds(
    PlanUpdate,
    version=st.integers(2, 9),
    update_type=st.sampled_from(PlanUpdateType),
    description=st.text(max_size=3),
    timestamp=st.just(datetime(2026, 1, 1, tzinfo=UTC)),
    changes=st.just({"title": "T"}),
)


def steps_with(step_id):
    return st.builds(
        PlanStep,
        id=st.just(step_id),
        description=st.sampled_from(["One", "Two"]),
        status=st.sampled_from(StepStatus),
        parameters=st.sampled_from([{}, {"a": 1}, {"a": 1.0}, {"a": True}]),
        dependencies=st.sampled_from([(), (1,), (1, 2)]),
        updated_at=TIMES,
    )


def plans(ids):
    made = ids.flatmap(lambda found: st.tuples(*(steps_with(each) for each in found)))
    return st.builds(
        TaskPlan,
        content=CONTENTS,
        title=st.sampled_from(["", "T", "U"]),
        steps=made,
        current_step=st.integers(0, 3),
        version=st.integers(1, 5),
        allow_dynamic_update=st.booleans(),
        created_at=TIMES,
        updated_at=TIMES,
        update_history=st.lists(UPDATES, max_size=2).map(tuple),
    )


PLANS = plans(st.lists(st.integers(1, 8), unique=True, max_size=8))


def channel(value=None):
    made = PlanChannel(after_writes, TaskPlan | None)
    made.key = "current_plan"
    made = made.from_checkpoint(LastValue(object).value)
    if value is not None:
        made.update([value])
    return made


def plan(count=3, **changes):
    steps = [PlanStep(id=at, description=f"Part {at}") for at in range(1, count + 1)]
    content = "".join(f"- [ ] {step.id}. {step.description}\n" for step in steps)
    return TaskPlan(content=content, steps=steps, **changes)


def exactly(value):
    """All of a plan, as text: 1 is not True here, and a time has its zone."""
    return repr(value)


@given(PLANS, PLANS)
def test_the_changed_steps_of_two_plans_make_the_second_of_the_first(old, new):
    made = ChangedSteps.between(old, new).applied_to(old.model_copy())
    assert exactly(made) == exactly(new)


def test_a_plan_that_no_store_can_write_to_the_letter_can_still_be_patched_after_it():
    first = plan(1).replace(content="- [ ] 1. \ud800\n- [ ] 2. x\n")
    second = first.replace(content=first.content + "more\n")
    serde = JsonPlusSerializer(allowed_msgpack_modules=True)
    writes = [serde.loads_typed(serde.dumps_typed(w)) for w in (first, plan_write(first, second))]
    held = channel()
    held.replay_writes([("task", "current_plan", write) for write in writes])
    assert held.get().content == "- [ ] 1. ?\n- [ ] 2. x\nmore\n"


def test_one_step_of_a_long_plan_is_stored_alone():
    old = plan(500)
    done = old.step(250).replace(status=StepStatus.COMPLETED)
    new = with_statuses(old, [done], datetime(2026, 1, 1, tzinfo=UTC))
    change = ChangedSteps.between(old, new)
    assert change.steps == (new.step(250),)
    assert (change.order, [*change.fields]) == (None, ["updated_at"])


def test_a_step_that_is_added_costs_its_own_id_and_not_those_of_all_others():
    old = plan(500)
    extra = PlanStep(id=501, description="Part 501")
    change = ChangedSteps.between(old, refresh_content(old.replace(steps=(*old.steps, extra))))
    assert change.order is None
    assert len(change.model_dump_json()) < 1_000


WRONG = {
    "a step without a place": {
        "steps": [{"id": 9, "description": "Nine"}],
        "order": [1, 2, 3],
        "fields": {},
    },
    "a place without a step": {"order": [1, 2, 3, 9], "fields": {}},
    "a step in two places": {"order": [1, 2, 3, 1], "fields": {}},
    "a value that does not fit": {"fields": {"version": "new"}},
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_changed_steps_that_do_not_fit_are_refused_and_change_nothing(wrong):
    held = channel(plan())
    for write in (wrong, ChangedSteps.model_validate(wrong)):
        with pytest.raises(
            InvalidUpdateError, match="'current_plan' cannot take these changed steps"
        ):
            held.update([write])
    assert held.get() == plan()


def test_what_are_no_changed_steps_at_all_is_refused_by_the_name_of_the_key():
    with pytest.raises(InvalidUpdateError, match="'current_plan' cannot take this value"):
        channel(plan()).update([{"fields": 1}])


def test_a_plan_can_be_written_whole_taken_back_and_written_over():
    held = channel(plan())
    held.update([plan(1).model_dump(mode="json")])
    assert held.get() == plan(1)
    held.update([None])
    assert held.get() is None
    held.update([Overwrite(plan(2))])
    assert held.get() == plan(2)


async def test_a_thread_with_refused_steps_can_be_read_and_mended():
    config = {"configurable": {"thread_id": "t"}}
    wrong = ChangedSteps(order=(1, 2, 3, 4))
    writes = [wrong, plan_write(plan(2), plan(3))]
    graph = StateGraph(EnhancedState)
    graph.add_node("work", lambda _: {"current_plan": writes.pop(0)})
    graph.add_edge(START, "work")
    graph.add_edge("work", END)
    compiled = graph.compile(checkpointer=InMemorySaver())
    with pytest.raises(InvalidUpdateError, match="there is no step 2"):
        await compiled.ainvoke({"current_plan": plan(1)}, config)
    await compiled.aupdate_state(config, {"current_plan": plan(2).model_dump(mode="json")})
    state = await compiled.ainvoke({"messages": []}, config)
    assert state["current_plan"] == plan(3)
    assert (await compiled.aget_state(config)).values["current_plan"] == plan(3)
