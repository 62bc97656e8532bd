"""The state's channels: what they refuse, what they make of dicts, and how they are replayed."""

from typing import Annotated, TypedDict

import pytest
from hypothesis import given, strategies as st
from langgraph.channels import LastValue
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.errors import InvalidUpdateError
from langgraph.graph import END, START, StateGraph
from langgraph.types import Overwrite

from replan import TaskPlan, Usage
from replan.state.channels import Checked, CheckedDelta, appended, latest, merged
from replan.state.enhanced import EnhancedState, fresh_run
from replan.state.limits import RunSettings
from replan.state.results import Assignment

NEVER_WRITTEN = LastValue(object).value


def a_list():
    return fresh(CheckedDelta(appended, list[Assignment]))


def a_mapping():
    return fresh(CheckedDelta(merged, dict[str, Assignment]))


def a_value():
    return fresh(CheckedDelta(latest, Usage | None))


def fresh(channel, key="work"):
    channel.key = key
    return channel.from_checkpoint(NEVER_WRITTEN)


def step(number, specialist="a"):
    return Assignment(step_id=number, specialist=specialist)


@pytest.mark.parametrize("write", ["one", {"calls": "many"}, {"unknown": 1}, [1], None])
def test_a_checked_key_refuses_what_does_not_fit_and_says_its_name(write):
    channel = fresh(Checked(Usage))
    with pytest.raises(InvalidUpdateError, match="'work' cannot take this value"):
        channel.update([write])
    assert not channel.is_available()


def test_a_checked_key_makes_a_value_of_a_plain_dict():
    channel = fresh(Checked(Usage))
    channel.update([{"calls": 2}])
    assert channel.get() == Usage(calls=2)


def test_a_checked_key_makes_a_value_of_what_a_server_gives_back():
    restored = fresh(Checked(Usage)).from_checkpoint({"calls": 2, "by": {"think": {"calls": 2}}})
    assert restored.get().by["think"].calls == 2


@pytest.mark.parametrize(
    ("make", "write"),
    [
        (a_list, [{"step_id": 1}]),
        (a_list, "text"),
        (a_list, Overwrite([1])),
        (a_list, {"__overwrite__": "text"}),
        (a_mapping, {"1/a": 5}),
        (a_mapping, Overwrite([])),
        (a_value, {"calls": "many"}),
        (a_value, {"__overwrite__": {"calls": "many"}}),
    ],
)
def test_a_growing_key_refuses_what_does_not_fit_and_keeps_what_it_has(make, write):
    channel = make()
    before = channel.get()
    with pytest.raises(InvalidUpdateError, match="'work' cannot take this value"):
        channel.update([write])
    with pytest.raises(InvalidUpdateError, match="'work'"):
        channel.replay_writes([("task", "work", write)])
    assert channel.get() == before


def test_a_growing_key_begins_empty_in_the_shape_of_its_type():
    assert (a_list().get(), a_mapping().get(), a_value().get()) == ([], {}, None)


def test_a_growing_key_can_be_written_before_it_was_ever_restored():
    channel = CheckedDelta(appended, list[Assignment])
    channel.key = "work"
    assert channel.update([[step(1)]])
    assert channel.get() == [step(1)]


@pytest.mark.parametrize("whole", [Overwrite(None), {"__overwrite__": None}])
def test_a_value_can_be_taken_back_by_overwriting_with_none(whole):
    channel = a_value()
    channel.update([Usage(calls=1)])
    channel.update([whole])
    assert channel.get() is None
    channel.replay_writes([("task", "work", Usage(calls=1)), ("task", "work", whole)])
    assert channel.get() is None


@pytest.mark.parametrize(
    ("make", "first", "second"),
    [
        (a_list, [step(1)], [step(2)]),
        (a_mapping, {"1/a": step(1)}, {"2/a": step(2)}),
        (a_value, Usage(calls=1), Usage(calls=2)),
    ],
)
def test_a_write_to_a_copy_leaves_the_channel_as_it_was(make, first, second):
    channel = make()
    channel.update([first])
    twin = channel.copy()
    twin.update([second])
    assert channel.get() == first
    assert twin.get() != first
    assert (twin.key, twin.snapshot_frequency) == (channel.key, channel.snapshot_frequency)


def test_a_snapshot_of_plain_dicts_is_restored_as_values():
    snapshot = _DeltaSnapshot({"1/a": {"step_id": 1, "specialist": "a"}})
    assert a_mapping().from_checkpoint(snapshot).get() == {"1/a": step(1)}


def test_a_snapshot_that_does_not_fit_is_refused_by_name():
    with pytest.raises(InvalidUpdateError, match="'work'"):
        a_mapping().from_checkpoint(_DeltaSnapshot({"1/a": "nothing"}))


STEPS = st.builds(step, st.integers(1, 9), st.sampled_from("ab"))
LISTS = st.lists(STEPS, max_size=3)
MAPPINGS = st.dictionaries(st.sampled_from(["1/a", "2/a", "2/b"]), STEPS, max_size=3)
VALUES = st.none() | st.builds(Usage, calls=st.integers(0, 9))


def super_steps(values):
    """What each super-step writes; an overwrite stands alone, as LangGraph wants it."""
    alone = values.filter(lambda value: value is not None).map(lambda value: [Overwrite(value)])
    return st.lists(st.lists(values, min_size=1, max_size=3) | alone, max_size=8)


RUNS = st.one_of(
    st.tuples(st.just(a_list), super_steps(LISTS)),
    st.tuples(st.just(a_mapping), super_steps(MAPPINGS)),
    st.tuples(st.just(a_value), super_steps(VALUES)),
)


def plain(write):
    """A write as a server's checkpointer gives it back: dicts for values."""
    match write:
        case Overwrite():
            return {"__overwrite__": plain(write.value)}
        case list():
            return [plain(each) for each in write]
        case dict():
            return {key: plain(each) for key, each in write.items()}
        case None:
            return None
        case _:
            return write.model_dump()


@given(RUNS, st.data())
def test_a_replay_gives_what_the_live_channel_had(run, data):
    make, written = run
    cut = data.draw(st.integers(0, len(written)))
    live, snapshot = make(), make().get()
    for number, writes in enumerate(written):
        if number == cut:
            snapshot = live.copy().get()
        live.update(writes)
    if cut == len(written):
        snapshot = live.copy().get()
    rest = [("task", "work", plain(write)) for writes in written[cut:] for write in writes]
    replayed = make().from_checkpoint(_DeltaSnapshot(plain(snapshot)))
    replayed.replay_writes(rest)
    assert replayed.get() == live.get()


@given(RUNS)
def test_the_cut_between_batches_of_a_replay_does_not_matter(run):
    make, written = run
    writes = [("task", "work", write) for writes in written for write in writes]
    whole, parts = make(), make()
    whole.replay_writes(writes)
    for write in writes:
        parts.replay_writes([write])
    assert parts.get() == whole.get()


class Work(TypedDict, total=False):
    steps: Annotated[list[Assignment], CheckedDelta(appended)]
    usage: Annotated[Usage, Checked]


async def test_a_node_that_writes_nonsense_is_told_the_key_and_an_edit_mends_the_thread():
    config = {"configurable": {"thread_id": "t"}}
    answers = [{"usage": "lots"}, {"usage": Usage()}]
    graph = StateGraph(Work)
    graph.add_node("work", lambda _: answers.pop(0))
    graph.add_edge(START, "work")
    graph.add_edge("work", END)
    compiled = graph.compile(checkpointer=InMemorySaver())
    with pytest.raises(InvalidUpdateError, match="'usage'"):
        await compiled.ainvoke({"steps": [step(9)]}, config)
    await compiled.aupdate_state(config, {"steps": [step(1)]})
    state = await compiled.ainvoke({"steps": []}, config)
    assert state == {"steps": [step(9), step(1)], "usage": Usage()}


def test_a_fresh_run_sets_every_key_but_the_five_that_outlive_it():
    reset = set(fresh_run("r", RunSettings()))
    kept = {"messages", "thinking_history", "execution_history", "unreadable_replies"}
    kept.add("memory_summary")
    assert set(EnhancedState.__annotations__) - reset == kept


def test_a_plan_in_the_state_is_a_plan_again_after_json():
    plan = TaskPlan(title="T", steps=[{"id": 1, "description": "One"}])
    channel = fresh(CheckedDelta(latest, TaskPlan | None))
    channel.replay_writes([("task", "work", plan.model_dump(mode="json"))])
    assert channel.get() == plan
