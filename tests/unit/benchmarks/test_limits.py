"""The benchmark of limits, at a size that takes no time: wide limits keep nobody waiting."""

import pytest


@pytest.fixture(scope="module")
def found(rows):
    return rows("limits", "--steps", "8", "--latency", "0.01", "--repeat", "1")


def test_wide_limits_let_all_steps_go_at_once_and_short_ones_some(found):
    at_once = {row["limits"]: row["calls at once"] for row in found}
    assert list(at_once.values())[:3] == [8, 8, 8]
    assert 1 <= at_once["tokens, with room for a fourth"] < 8


def test_each_kind_is_measured_against_none(found):
    assert found[0]["limits"] == "none"
    assert found[0]["ratio"] == 1
    assert all(row["ratio"] > 0 for row in found)
