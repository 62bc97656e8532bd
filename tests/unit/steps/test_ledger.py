"""What the ledger says of a step's tries."""

from datetime import UTC, datetime

import pytest

from replan.log.rows import LedgerEntry
from replan.steps.on_record import attempts_of, done_before, failures, left_in_doubt, newest_number

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def entry(number, outcome="done", *, step=1, specialist="a", key="k"):
    return LedgerEntry(
        run_id="r",
        step_id=step,
        specialist=specialist,
        number=number,
        key=key,
        started_at=NOON,
        outcome=outcome,
    )


def test_the_attempts_of_a_step_are_its_own_in_their_order():
    ledger = [entry(2), entry(1), entry(1, step=2), entry(5, specialist="b"), entry(3, key="new")]
    tried = attempts_of(ledger, 1, "a")
    assert [one.number for one in tried] == [1, 2, 3]
    assert newest_number(tried) == 3
    assert newest_number(()) == 0


def test_only_failures_of_the_very_same_work_count():
    tried = [entry(1, "failed"), entry(2, "failed", key="old"), entry(3, "waiting")]
    assert failures(tried, "k") == 1


@pytest.mark.parametrize(
    ("last", "doubt"),
    [
        ("done", False),
        ("failed", False),
        ("waiting", False),
        ("unknown_outcome", True),
        ("cancelled", True),
    ],
)
def test_a_doubt_is_about_the_newest_try_alone(last, doubt):
    tried = (entry(1, "unknown_outcome"), entry(2, last))
    assert left_in_doubt(tried) == (tried[1] if doubt else None)


def test_before_the_first_try_there_is_no_doubt():
    assert left_in_doubt(()) is None


def test_the_newest_try_that_had_its_effect_is_found_behind_others():
    tried = (entry(1, "done"), entry(2, "done"), entry(3, "failed"))
    assert done_before(tried) == tried[1]
    assert done_before(tried[2:]) is None
