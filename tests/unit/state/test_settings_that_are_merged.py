"""Settings ask for what was set; no copy and no round trip makes them ask for more."""

import pytest

from replan import Budget, Limits, RunSettings

TEAM = RunSettings(
    approval="always",
    limits=Limits(max_model_calls=5, max_rounds=3, per_step=Budget(max_tokens=9)),
)
REQUESTS = [
    RunSettings(),
    RunSettings(on_doubt="fail"),
    RunSettings(limits=Limits(max_rounds=2)),
    RunSettings(limits=Limits(per_step=Budget(max_cost=1.0))),
]


@pytest.mark.parametrize("request_", REQUESTS)
def test_a_round_trip_as_json_asks_for_the_same(request_):
    again = RunSettings.model_validate_json(request_.model_dump_json())
    assert again == request_
    assert TEAM.overridden_by(again) == TEAM.overridden_by(request_)
    assert TEAM.overridden_by(again).approval == "always"
    assert TEAM.overridden_by(again).limits.max_model_calls == 5


@pytest.mark.parametrize("request_", REQUESTS)
def test_a_copy_asks_for_what_was_set_and_what_is_changed(request_):
    changed = TEAM.overridden_by(request_.replace(on_failure="halt"))
    assert changed == TEAM.overridden_by(request_).replace(on_failure="halt")


def test_a_copy_of_limits_lifts_no_other_limit():
    asked = RunSettings(limits=Limits(max_rounds=1).replace(max_rounds=2))
    assert TEAM.overridden_by(asked).limits == TEAM.limits.replace(max_rounds=2)


def test_a_value_that_is_asked_for_counts_where_it_is_the_default():
    asked = RunSettings().replace(limits=Limits(max_model_calls=200))
    assert TEAM.overridden_by(asked).limits.max_model_calls == 200


def test_in_python_settings_are_written_whole():
    assert RunSettings().model_dump()["limits"]["max_model_calls"] == 200
