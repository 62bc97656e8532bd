"""Which level says what of the memory, and what all of them come to."""

import logging
from itertools import product

import pytest

from replan import (
    Host,
    MemoryOptions,
    RunSettings,
    Specialist,
    Team,
    TeamError,
    build_graph,
)
from replan.state.conversation.conversation import resolved
from replan.state.options import BUILT_IN, joined
from replan.state.step_options import step_options, without_options
from replan.state.tightening import tightened
from replan.testing import ScriptedModel

NOBODY = Specialist("a", "Works.", run=lambda context: "done")


def test_what_nobody_says_is_a_window_of_ten():
    memory = resolved()
    assert (memory.mode, memory.limit, memory.writes) == ("window", 10, False)
    assert (memory.trigger, memory.max_tokens, memory.model) == (30, 512, "")
    assert joined(BUILT_IN, MemoryOptions()) == BUILT_IN


def test_modes_limits_and_the_switch_of_summaries_come_to_one_thing():
    modes, limits, switches = (
        [None, "full", "window", "summary"],
        [None, -1, 0, 1, 7],
        [None, False, True],
    )
    for mode, limit, enabled in product(modes, limits, switches):
        given = MemoryOptions(mode=mode, history_limit=limit, summary_enabled=enabled)
        memory = resolved(given)
        assert memory.mode == (mode or "window"), given
        asked = 10 if limit is None else max(0, limit)
        expected = {"full": 0, "summary": asked or 10}.get(memory.mode, asked)
        assert memory.limit == expected, given
        assert memory.writes == (mode == "summary" and enabled is not False), given


def test_the_innermost_level_that_says_something_counts():
    team = MemoryOptions(mode="summary", history_limit=4)
    specialist = MemoryOptions(history_limit=2)
    step = step_options(MemoryOptions, {"memory_mode": "window", "other": 1}, by_model=False)
    memory = resolved(team, specialist, step, MemoryOptions(summary_model_id="m"))
    assert (memory.mode, memory.limit, memory.model) == ("window", 2, "m")
    assert resolved(team, specialist, step, MemoryOptions(mode="full")).mode == "full"


def test_in_a_plan_that_a_model_wrote_only_the_mode_counts():
    written = {"memory_mode": "full", "memory_history_limit": 0}
    assert step_options(MemoryOptions, written, by_model=True) == MemoryOptions(mode="full")
    assert step_options(MemoryOptions, written, by_model=False) == MemoryOptions(
        mode="full", history_limit=0
    )
    assert (
        step_options(MemoryOptions, {"memory_mode": "everything"}, by_model=True) == MemoryOptions()
    )


def test_a_specialist_is_not_shown_the_options_of_its_step():
    given = {"memory_mode": "full", "memory_history_limit": 2, "memory_gb": 3, "item": "lamp"}
    assert without_options(given) == {"memory_gb": 3, "item": "lamp"}


def test_the_names_that_a_step_has_are_taken_everywhere():
    assert MemoryOptions(memory_history_limit=3, mode="full").history_limit == 3


def test_a_specialist_cannot_see_a_summary_that_nobody_writes():
    sees = Specialist("b", "Works.", run=lambda c: "done", memory=MemoryOptions(mode="summary"))
    with pytest.raises(TeamError, match=r"specialists\[0\]\.memory\.mode"):
        Team(ScriptedModel({}), [sees])
    Team(ScriptedModel({}), [sees], memory=MemoryOptions(mode="summary"))
    Team(Host(ScriptedModel({}), memory=MemoryOptions(mode="summary")), [sees])


def test_summaries_that_are_switched_on_where_there_are_none_are_logged(caplog):
    memory = MemoryOptions(summary_enabled=True)
    with caplog.at_level(logging.WARNING, "replan.state.options"):
        build_graph(Team(ScriptedModel({}), [NOBODY], memory=memory))
    assert [each.message for each in caplog.records] == ["summary_enabled has no effect"]


def test_clients_of_a_server_may_only_make_a_memory_smaller():
    team = RunSettings(memory=MemoryOptions(mode="summary", history_limit=8))
    asked = MemoryOptions(
        mode="full",
        history_limit=0,
        summary_trigger_messages=2,
        summary_max_tokens=9_000,
        summary_model_id="dear",
    )
    assert tightened(team, RunSettings(memory=asked)).memory == MemoryOptions(
        mode="summary", history_limit=8, summary_trigger_messages=30, summary_max_tokens=512
    )
    less = MemoryOptions(
        mode="window", history_limit=2, summary_enabled=False, summary_trigger_messages=50
    )
    assert tightened(team, RunSettings(memory=less)).memory == less
    assert tightened(team, RunSettings(memory=asked), {"memory"}).memory == asked
