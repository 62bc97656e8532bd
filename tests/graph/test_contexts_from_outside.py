"""Contexts that others made or changed: bounded before they are read, and read strictly."""

import asyncio
import copy
import json
import random
from functools import reduce

import pytest

from carried import opened_run, run_in
from replan import Host, Specialist, Team, ask_user
from replan.errors import ContextError
from replan.server.problems import RefusedError
from replan.server.request_body import MOST_VALUES, read_json
from replan.sessions import AgentContext, build_agent
from replan.testing import ScriptedModel, always

MESSAGE = {"role": "user", "content": "a", "timestamp": "2026-01-01T00:00:00+00:00"}


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        (
            {"dialogue_history": [MESSAGE] * 100_001},
            "dialogue_history: it has 100,001 entries; at most 100,000 are read",
        ),
        (
            {"tool_execution_history": [{}] * 100_001},
            "tool_execution_history: it has 100,001 entries; at most 100,000 are read",
        ),
        (
            {"project_state": {str(n): n for n in range(10_001)}},
            "project_state: it has 10,001 keys; at most 10,000 are read",
        ),
        (
            {"session_metadata": {str(n): n for n in range(10_001)}},
            "session_metadata: it has 10,001 keys; at most 10,000 are read",
        ),
        (
            {"project_state": {"a": [[0]] * 300_000}},
            "project_state.a[249998]: up to here, there are more than 500,000 values",
        ),
    ],
)
def test_a_context_with_too_much_in_it_is_refused_with_its_field_its_count_and_the_bound(
    fields, problem
):
    with pytest.raises(ContextError) as error:
        AgentContext.from_dict({"session_id": "s", **fields})
    assert problem in str(error.value)
    assert len(str(error.value)) < 2_000


def test_a_context_within_the_bounds_is_read():
    fields = {"dialogue_history": [MESSAGE] * 10_000, "project_state": {"a": [0] * 100_000}}
    context = AgentContext.from_dict({"session_id": "s", **fields})
    assert len(context.dialogue_history) == 10_000


def test_of_many_mistakes_some_are_named():
    with pytest.raises(ContextError) as error:
        AgentContext.from_dict({"session_id": "s", "dialogue_history": [5] * 10_000})
    assert 0 < str(error.value).count("this must have fields") <= 100


@pytest.mark.parametrize(
    "value",
    [
        [[0] * 9_000] * 30,
        [{str(n): n for n in range(9_000)}] * 30,
        [[{"role": "user"}] * 9_000] * 30,
    ],
)
def test_a_request_with_too_many_values_is_refused_at_every_door(value):
    with pytest.raises(RefusedError) as error:
        read_json(json.dumps({"messages": value}).encode())
    assert f"more than {MOST_VALUES:,} values" in error.value.problem.detail
    assert "messages" in error.value.problem.detail


def waiting_agent():
    def paint(context):
        return f"painted {ask_user('Which colour?')}"

    model = ScriptedModel(
        {
            "think": always("---\ncomplexity: complex\n---\n- [ ] 1. The hall @painter\n"),
            "feedback": always("---\nverdict: complete\n---\nDone."),
        }
    )
    painter = Specialist("painter", "Paints.", run=paint, effects="pure")
    return build_agent(Team(host=Host(model=model), specialists=[painter]))


async def waiting_context(agent):
    context = AgentContext(session_id="s")
    result = await agent.process("paint it", context)
    return context.apply(result.context_updates).to_dict()


async def test_a_large_context_is_read_while_the_loop_is_free():
    agent, turns, ended = waiting_agent(), 0, asyncio.Event()

    async def others():
        nonlocal turns
        while not ended.is_set():
            await asyncio.sleep(0)
            turns += 1

    beside = asyncio.create_task(others())
    many = {"session_id": "s", "project_state": {"a": [[0]] * 300_000}}
    result = await agent.process("paint it", many)
    ended.set()
    await beside
    assert "more than 500,000 values" in result.error
    assert turns > 20


@pytest.mark.parametrize("value", ["1" * 50, "1", 10**30, 1.5, True, False, None, [1]])
async def test_what_is_no_number_in_a_carried_run_is_not_read_as_one(value):
    agent = waiting_agent()
    changed = await waiting_context(agent)
    with opened_run(changed) as run:
        run["rows"]["attempts"][0]["step_id"] = value
    result = await agent.process({"1": "blue"}, changed)
    assert not result.success
    assert "project_state.run.rows.attempts[0].step_id" in result.error or value == 10**30
    assert "project_state.run" in result.error


def leaves(value, path=()):
    if isinstance(value, dict | list) and value:
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for key, each in pairs:
            yield from leaves(each, (*path, key))
    else:
        yield path


ODD = ["1" * 50, "7", "", 10**30, 2**62, -1, 0, 1.5, True, None, [], {}, "x" * 1_000, [1], {"a": 1}]


async def test_what_an_agent_reads_of_a_changed_context_gives_updates_that_can_be_applied():
    agent, chance = waiting_agent(), random.Random(20261128)  # noqa: S311
    whole = await waiting_context(agent)
    places = [*leaves(run_in(whole))]
    read = 0
    for _ in range(60):
        changed = copy.deepcopy(whole)
        *above, last = chance.choice(places)
        with opened_run(changed) as run:
            reduce(lambda inner, part: inner[part], above, run)[last] = chance.choice(ODD)
        result = await agent.process({"1": "blue"}, copy.deepcopy(changed))
        if result.context_updates:
            AgentContext.from_dict(changed).apply(result.context_updates)
            read += 1
    assert read > 2
