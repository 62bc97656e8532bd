"""What a run stores and says grows with its work, not with what was before it."""

import sqlite3
from contextlib import closing

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from replan import Limits, Specialist, open_storage, run
from replan.prompts.sections import call_of
from replan.testing import ScriptedModel, always
from scripts import THREAD

GO_ON = "---\nverdict: continue\nsuggested_action: update_plan\nupdate: One more part.\n---\n"
COMPLETE = "---\nverdict: complete\n---\nAll parts were looked into."
LIMITS = Limits(max_rounds=99, max_steps=99, max_model_calls=999)
FLAT = dict.fromkeys(range(1, 4), ())
CHAIN = {1: (), 2: (1,), 3: (2,), 4: (3,), 5: (4,)}
CROSSED = {1: (), 2: (), 3: (1,), 4: (1, 2), 5: (3, 4), 6: (2,)}


def lines_of(shape):
    for step, waits in shape.items():
        after = f" (after {', '.join(map(str, waits))})" if waits else ""
        yield f"- [ ] {step}. Part {step} @researcher{after}\n"


def result_text(step):
    return f"fact {step:03} " * 160


def result(messages):
    return result_text(call_of(messages).step)


@pytest.mark.parametrize("shape", [FLAT, CHAIN, CROSSED])
@pytest.mark.parametrize("scope", ["plan", "step"])
async def test_a_round_takes_five_super_steps_whatever_the_plan(team, shape, scope):
    with ScriptedModel({"specialist": always(result), "feedback": COMPLETE}) as model:
        options = {"limits": LIMITS, "round_scope": scope, "checkpointer": InMemorySaver()}
        graph = team(model, **options)
        await run(graph, {"plan": "".join(lines_of(shape))}, config=THREAD)
    rounds = len(shape) if scope == "step" else 1
    kept = [each async for each in graph.aget_state_history(THREAD)]
    assert len(kept) == 5 + 5 * rounds


async def test_a_prompt_has_the_results_that_its_call_needs_once_each_and_no_others(team):
    script = {"specialist": always(result), "feedback": COMPLETE}
    with ScriptedModel(script) as model:
        await run(team(model, limits=LIMITS), {"plan": "".join(lines_of(CROSSED))})
    assert len(model.calls) == len(CROSSED) + 1
    for call in model.calls:
        text = "\n".join(message.text for message in call.messages)
        needed = CROSSED[call.step] if call.step else CROSSED
        shown = {step: text.count(result_text(step).strip()) for step in CROSSED}
        assert shown == {step: int(step in needed) for step in CROSSED}


def found(context):
    return result_text(context.plan_step.id)


async def bytes_after(rounds, team, path):
    """What a run stores that does a step in each round, and adds the next by a revision."""
    lines = list(lines_of({step: (step - 1,) if step > 1 else () for step in range(1, rounds + 1)}))
    revisions = [*(GO_ON + line for line in lines[1:]), COMPLETE]
    async with open_storage(path) as storage:
        with ScriptedModel({"feedback": revisions}) as model:
            works = Specialist(name="researcher", intended_use="Works.", run=found)
            options = {"limits": LIMITS, "checkpointer": storage.checkpointer}
            graph = team(model, specialists=[works], **options)
            state = (await run(graph, {"plan": lines[0]}, config=THREAD)).state
    assert (state["outcome"], state["current_round"]) == ("completed", rounds)
    with closing(sqlite3.connect(path)) as file:
        columns = {
            "replan_checkpoints": "length(checkpoint) + length(metadata) + length(versions)",
            "replan_channels": "length(value)",
            "replan_writes": "length(value)",
        }
        stored = [f"SELECT sum({size}) FROM {table}" for table, size in columns.items()]  # noqa: S608
        return sum(file.execute(each).fetchone()[0] for each in stored)


async def test_a_round_stores_as_many_bytes_late_in_a_run_as_early(team, tmp_path):
    # What grows is written whole each time it has doubled: these runs end alike in that course.
    five, ten, twenty = [
        await bytes_after(rounds, team, tmp_path / f"{rounds}.db") for rounds in (5, 10, 20)
    ]
    early, late = (ten - five) / 5, (twenty - ten) / 10
    # Versions in a checkpoint are random numbers, so its length differs by a few bytes.
    assert 0.9 * early < late < 1.02 * early
