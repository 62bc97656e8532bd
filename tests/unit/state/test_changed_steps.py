"""Changed steps of a plan: its document follows from them to the byte; wrong ones are refused."""

from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise

import pytest
from hypothesis import given, strategies as st
from langgraph.channels import LastValue
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.errors import InvalidUpdateError
from langgraph.graph import END, START, StateGraph
from langgraph.types import Overwrite

from replan import PlanStep, StepStatus, TaskPlan
from replan.plan import PlanUpdate, PlanUpdateType
from replan.plan.applying import apply_valid
from replan.plan.changes import AddStep
from replan.plan.markdown.document import PlanDocument, refresh_content
from replan.plan.markdown.seal import sealed
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


DOCUMENTS = st.sampled_from(
    [
        "# Trip\n\n- [ ] 1. Look @a\n  Where it is warm.\n- [ ] 2. Book @b (after 1)\n",
        "Some words.\r\n\r\n* [ ] 1. Look @a\r\n* [ ] 2. Book @b (after 1)\r\n\r\nThe end.",
        "1. [x] Look @a\n   > Lima.\n2. [ ] Book @b\n3. [ ] Pay @a (after 2)",
    ]
)
TEXTS = st.sampled_from(["", "Lima.", "- [ ] 9. A trap", "Two\n\nparts", "**Failed:** no", "é研"])


@st.composite
def histories(draw):
    """What nodes make of a plan in turn: outcomes of steps, revisions, fingerprints."""
    at = datetime(2026, 1, 1, tzinfo=UTC)
    versions = [PlanDocument.parse(draw(DOCUMENTS)).plan]
    for _ in range(draw(st.integers(1, 4))):
        plan, steps = versions[-1], versions[-1].steps
        match draw(st.sampled_from(["outcomes", "revision"])):
            case "outcomes":
                ended = draw(st.lists(st.sampled_from(steps), unique_by=lambda step: step.id))
                changes = {"status": draw(st.sampled_from(StepStatus)), "result": draw(TEXTS)}
                plan = with_statuses(plan, [step.replace(**changes) for step in ended], at)
                done = [plan.steps[0].replace(status=StepStatus.SKIPPED)]
                plan = with_statuses(plan, done if draw(st.booleans()) else [], at)
            case _:
                more = PlanStep(id=max(plan.by_id) + 1, description="More", assigned_to="a")
                changes = [AddStep(step=more, index=draw(st.integers(0, len(steps))))]
                plan = apply_valid(plan, changes, at=at)[0].replace(update_history=())
        versions.append(plan)
    return [*versions, sealed(versions[-1], draw(st.sampled_from(["", "run-1"])))]


@given(histories())
def test_what_nodes_make_of_a_plan_is_stored_without_its_document(versions):
    for old, new in pairwise(versions):
        change = ChangedSteps.between(old, new)
        assert "content" not in change.fields
        stored = ChangedSteps.model_validate(change.model_dump())
        assert exactly(stored.applied_to(old)) == exactly(new)


@given(PLANS, PLANS)
def test_changed_steps_hold_after_a_store_and_after_a_server(old, new):
    patch = ChangedSteps.between(old, new)
    serde = JsonPlusSerializer(allowed_msgpack_modules=True)
    served = channel(old)
    served.replay_writes([("task", "current_plan", patch.model_dump())])
    stored = serde.loads_typed(serde.dumps_typed(patch))
    for made in (stored.applied_to(old), served.get()):
        # A time zone may come back as another object for the same zone.
        assert made.replace(content="") == new.replace(content="")
        # A store may write "?" for half a character, and then only in the lines that are new.
        texts = [each.content.replace("\ud800", "?") for each in (made, new)]
        assert texts[0] == texts[1]
        parameters = [[step.parameters for step in each.steps] for each in (made, new)]
        assert exactly(parameters[0]) == exactly(parameters[1])


@given(st.lists(PLANS, min_size=1, max_size=5), st.data())
def test_a_replay_of_what_nodes_wrote_gives_what_the_live_channel_had(versions, data):
    live, writes = channel(), []
    for version in versions:
        is_edit = data.draw(st.booleans())
        writes.append(version if is_edit else plan_write(live.get(), version))
        live.update([writes[-1]])
        assert exactly(live.get()) == exactly(version)
    cut = data.draw(st.integers(0, len(writes)))
    whole, parts = channel(), channel()
    whole.replay_writes([("task", "current_plan", write) for write in writes])
    for batch in (writes[:cut], writes[cut:]):
        parts.replay_writes([("task", "current_plan", write) for write in batch])
    assert exactly(whole.get()) == exactly(parts.get()) == exactly(versions[-1])


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


def test_the_first_plan_is_written_whole_and_so_is_one_whose_ids_are_not_its_own():
    one = plan(1)
    twice = TaskPlan(steps=(one.steps[0], one.steps[0].replace(description="Another")))
    assert plan_write(None, one) is one
    assert plan_write(one, twice) is twice
    assert plan_write(twice, one) is one


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


def test_a_snapshot_is_the_whole_plan_and_never_changed_steps():
    snapshot = _DeltaSnapshot(plan(2).model_dump(mode="json"))
    assert channel().from_checkpoint(snapshot).get() == plan(2)
    patch = ChangedSteps.between(plan(), plan())
    with pytest.raises(InvalidUpdateError, match="'current_plan'"):
        channel().from_checkpoint(_DeltaSnapshot(patch.model_dump()))


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
