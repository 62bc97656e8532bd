"""The tasks of the quality measure: right answers pass their checks, others do not."""

import sys

import pytest

from quality_answers import BENCHMARKS, CALLED, RIGHT

sys.path.insert(0, str(BENCHMARKS))

from quality_tasks import TASKS
from quality_world import World

BY_NAME = {task.name: task for task in TASKS}


@pytest.fixture
def used_world():
    world = World()
    world.calls.update(CALLED)
    return world


@pytest.mark.parametrize("name", BY_NAME)
def test_a_right_answer_passes(name, used_world):
    assert BY_NAME[name].missing(RIGHT[name], used_world) == []


@pytest.mark.parametrize("name", BY_NAME)
def test_the_answer_to_another_task_does_not_pass(name, used_world):
    others = [each for each in RIGHT if each != name]
    assert [other for other in others if not BY_NAME[name].missing(RIGHT[other], used_world)] == []
