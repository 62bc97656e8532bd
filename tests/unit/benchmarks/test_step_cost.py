"""The benchmark of a step's cost, at a size that takes no time: what is stored is counted."""

import pytest


@pytest.fixture(scope="module")
def found(rows):
    return rows("step_cost", "--steps", "2", "4", "6", "--repeat", "1")


def of(found, shape, column):
    return [row[column] for row in found if row["shape"] == shape and column in row]


def test_it_gives_a_row_for_each_saver_shape_and_size(found):
    places = [(row["table"].rpartition(" ")[2], row["shape"], row["steps"]) for row in found]
    assert places == [
        (saver, shape, steps)
        for saver in ("none", "SQLite")
        for shape in ("flat", "chain")
        for steps in (2, 4, 6)
    ]
    assert all(row["lowest"] <= row["ratio"] <= row["highest"] for row in found)


@pytest.mark.parametrize("shape", ["flat", "chain"])
def test_replan_takes_the_same_super_steps_for_any_plan(found, shape):
    assert of(found, shape, "Replan: checkpoints") == [9, 9, 9]


def test_waves_take_two_super_steps_each(found):
    assert of(found, "flat", "LangGraph: checkpoints") == [4, 4, 4]
    assert of(found, "chain", "LangGraph: checkpoints") == [6, 10, 14]


@pytest.mark.parametrize("kind", ["LangGraph", "Replan"])
@pytest.mark.parametrize("shape", ["flat", "chain"])
def test_each_step_adds_the_same_number_of_writes(found, shape, kind):
    two, four, six = of(found, shape, f"{kind}: writes")
    assert six - four == four - two > 0
