"""The torture of runs in its short form: nothing that is on record is lost or done again."""

import pytest


@pytest.fixture(params=["SQLite", "PostgreSQL"])
def tortured(request, rows):
    """The row of a store after a few runs."""
    words = ["--runs", "3", "--steps", "12", "--kills", "4", "--longest", "0.3"]
    if request.param == "PostgreSQL":
        words += ["--postgres", request.getfixturevalue("postgres_database")]
    return rows("torture", *words)[-1]


def test_of_runs_that_were_killed_nothing_is_lost_swapped_too_early_or_done_again(tortured, script):
    assert tortured["kills"] > 0
    assert tortured["completed"] == tortured["runs"] == 3
    assert {key: tortured[key] for key in script("torture").WRONG} == dict.fromkeys(
        script("torture").WRONG, 0
    )
