"""The shapes of the benchmarks' plans: drawn the same on every run, and what they say they are."""

import pytest

from replan import PlanDocument


@pytest.fixture
def plans(script):
    return script("plans")


def test_a_seed_draws_the_same_plan_again_and_another_seed_another(plans):
    assert plans.random_dag(50, 1) == plans.random_dag(50, 1)
    assert plans.random_dag(50, 1) != plans.random_dag(50, 2)


def test_the_document_holds_the_shape(plans):
    shape = plans.random_dag(50, 1)
    plan = PlanDocument.parse(shape.document).plan
    assert {step.id: step.dependencies for step in plan.steps} == shape.waits
    assert {step.assigned_to for step in plan.steps} == {"worker"}


def test_the_critical_path_is_the_longest_way_through(plans):
    shape = plans.Shape({1: (), 2: (1,), 3: (), 4: (2, 3)})
    seconds = {1: 1.0, 2: 2.0, 3: 10.0, 4: 1.0}
    assert shape.critical_path(seconds) == 11.0
    assert shape.waves == [[1, 3], [2], [4]]
    assert shape.wave_time(seconds) == 13.0


def test_a_flat_plan_is_one_wave_and_a_chain_one_a_step(plans):
    assert [len(wave) for wave in plans.flat(7).waves] == [7]
    assert [len(wave) for wave in plans.chain(7).waves] == [1] * 7


def test_most_steps_are_fast_and_a_few_are_slow(plans):
    drawn = list(plans.latencies(plans.flat(10_000), 1, scale=2.0).values())
    shares = [drawn.count(2.0 * seconds) / len(drawn) for seconds in (0.05, 0.2, 1.0)]
    assert shares == pytest.approx([0.8, 0.15, 0.05], abs=0.01)
