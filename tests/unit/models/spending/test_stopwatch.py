"""The clock of a run: it runs while somebody is at work, and goes on from what is on record."""

import pytest

from replan.models.spending import deadline
from replan.models.spending.deadline import Stopwatch


@pytest.fixture
def now(monkeypatch):
    """A time that the test moves on."""

    class Now:
        seconds = 100.0

    monkeypatch.setattr(deadline.time, "monotonic", lambda: Now.seconds)
    return Now


def test_work_at_the_same_time_counts_once_and_a_pause_not_at_all(now):
    clock = Stopwatch()
    with clock.running():
        now.seconds += 2
        with clock.running():
            now.seconds += 3
            assert clock.seconds == 5
        now.seconds += 1
    now.seconds += 50
    assert clock.seconds == 6
    with clock.running():
        now.seconds += 4
    assert clock.seconds == 10


def test_it_goes_on_from_the_largest_time_that_is_on_record(now):
    clock = Stopwatch()
    for seconds in (3, 7, 5):
        clock.continue_from(seconds)
    with clock.running():
        now.seconds += 1
    assert clock.seconds == 8


def test_a_mark_is_due_after_a_second_and_later_after_a_hundredth(now):
    clock = Stopwatch()
    assert not clock.is_due
    with clock.running():
        now.seconds += 1
        assert clock.is_due
        assert clock.to_record() == 1
        assert not clock.is_due
        now.seconds += 999
        assert clock.to_record() == 1_000
        now.seconds += 9.5
        assert not clock.is_due
        now.seconds += 0.5
        assert clock.is_due
