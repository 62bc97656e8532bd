"""The benchmark of the critical path, at a size that takes no time."""

import asyncio

import pytest


def test_it_gives_a_row_for_each_seed_and_the_medians(rows):
    found = rows("critical_path", "--steps", "6", "--seeds", "1", "2", "--scale", "0.01")
    assert [row["seed"] for row in found] == [1, 2, "median"]
    assert len({tuple(row) for row in found}) == 1
    kinds = ("LangGraph in waves", "Replan", "asyncio alone")
    assert all(isinstance(row[kind], float) for row in found for kind in kinds)


def test_what_can_be_computed_is_exact(rows, script):
    plans = script("plans")
    row = rows("critical_path", "--steps", "20", "--seeds", "3", "--scale", "0.01")[0]
    shape = plans.random_dag(20, 3)
    seconds = plans.latencies(shape, 3)
    assert row["edges"] == sum(map(len, shape.waits.values()))
    assert row["waves"] == len(shape.waves)
    best = shape.wave_time(seconds) / shape.critical_path(seconds)
    assert row["waves at best"] == pytest.approx(best)


@pytest.mark.parametrize("kind", ["wave_run", "replan_run", "asyncio_run"])
def test_every_kind_does_each_step_once_and_after_what_it_waits_for(script, kind):
    shape = script("plans").random_dag(20, 3)
    done = []

    async def work(step):
        assert set(shape.waits[step]) <= set(done)
        await asyncio.sleep(0)
        done.append(step)
        return f"text {step}"

    results = asyncio.run(getattr(script("critical_path"), kind)(shape, work)())
    assert sorted(done) == list(shape.waits)
    assert len(results) == 20


def test_a_run_without_all_results_is_no_measurement(script):
    async def start():
        return {1: "text"}

    with pytest.raises(RuntimeError, match="1 of 2 steps"):
        asyncio.run(script("critical_path").timed(start, 2))
