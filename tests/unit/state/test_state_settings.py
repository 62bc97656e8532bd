"""What a run may do and has used: settings that a request overrides, and usage that adds up."""

import pytest
from hypothesis import given, strategies as st

from replan import Budget, Limits, Price, RunSettings, SettingsError, Usage
from replan.state.enhanced import rounds_of, settings_of
from replan.state.usage import TokenCount

CONFIGURED = RunSettings(
    limits=Limits(max_rounds=3, max_steps=7), on_failure="halt", complexity_threshold=0.9
)


def test_a_request_that_says_nothing_changes_nothing():
    assert CONFIGURED.overridden_by(None) == CONFIGURED
    assert CONFIGURED.overridden_by(RunSettings()) == CONFIGURED


def test_a_request_changes_only_the_fields_that_it_names():
    settings = CONFIGURED.overridden_by(RunSettings(round_scope="step"))
    assert settings == CONFIGURED.replace(round_scope="step")


def test_a_request_may_name_the_built_in_value_to_get_it_back():
    asked = RunSettings(on_failure="finish", limits=Limits(max_rounds=10))
    settings = CONFIGURED.overridden_by(asked)
    assert (settings.on_failure, settings.limits.max_rounds) == ("finish", 10)


def test_one_limit_of_a_request_leaves_the_other_limits_as_configured():
    settings = CONFIGURED.overridden_by(RunSettings(limits=Limits(max_rounds=5)))
    assert settings.limits == Limits(max_rounds=5, max_steps=7)


def test_a_budget_of_a_request_changes_only_what_it_names():
    configured = RunSettings(limits=Limits(per_step=Budget(max_tokens=5, max_cost=2)))
    asked = RunSettings(limits=Limits(per_step=Budget(max_cost=None, max_seconds=9)))
    settings = configured.overridden_by(asked)
    assert settings.limits.per_step == Budget(max_tokens=5, max_seconds=9)


def test_a_request_may_take_a_limit_away():
    configured = RunSettings(limits=Limits(max_tokens=5))
    settings = configured.overridden_by(RunSettings(limits=Limits(max_tokens=None)))
    assert settings.limits.max_tokens is None


def test_a_price_is_for_a_million_tokens():
    assert Price(input=2, output=10).of(500_000, 100_000) == pytest.approx(2.0)


def test_a_form_gives_the_same_as_values():
    asked = RunSettings.model_validate({"limits": {"max_steps": 2}})
    assert CONFIGURED.overridden_by(asked).limits == Limits(max_rounds=3, max_steps=2)


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_rounds": 0},
        {"max_steps": 0},
        {"max_model_calls": 0},
        {"max_parallel_steps": 0},
        {"max_stalls": 0},
        {"step_timeout": 0},
        {"step_timeout": float("nan")},
        {"step_retries": -1},
        {"max_price": 5},
        {"max_cost": 0},
        {"max_tokens": 0},
        {"max_seconds": 0},
        {"per_step": {"max_tokens": 0}},
    ],
)
def test_a_limit_that_makes_no_sense_is_refused(wrong):
    with pytest.raises(SettingsError, match=next(iter(wrong))):
        Limits(**wrong)


def test_all_that_is_wrong_with_settings_is_told_at_once_with_the_nearest_names():
    with pytest.raises(SettingsError) as error:
        RunSettings(memory={"mod": "full"}, limits={"max_round": 3, "max_steps": "many"})
    assert {each.field: each.fix for each in error.value.mistakes} == {
        "memory.mod": "Did you mean mode?",
        "limits.max_round": "Did you mean max_rounds?",
        "limits.max_steps": "Write a number, without quotes.",
    }
    assert "memory.mod: there is no such field (got 'full'). Did you mean mode?" in str(error.value)


def test_the_rounds_of_a_run_may_be_fewer_than_its_settings_say():
    assert settings_of({}) == RunSettings()
    assert rounds_of({"settings": CONFIGURED}) == 3
    assert rounds_of({"settings": CONFIGURED, "max_rounds": 1}) == 1


COUNTS = st.builds(
    TokenCount,
    calls=st.integers(0, 9),
    input_tokens=st.integers(0, 999),
    output_tokens=st.integers(0, 999),
    # Sums of these are exact.
    known_cost=st.integers(0, 999).map(lambda eighths: eighths / 8),
)
PARTS = st.lists(st.tuples(st.sampled_from(["think", "analyst", "feedback"]), COUNTS), max_size=8)


@given(PARTS, st.integers(0, 8))
def test_usage_is_the_sum_of_its_parts_in_whatever_portions_they_come(parts, cut):
    whole = Usage().plus(*parts)
    assert Usage().plus(*parts[:cut]).plus(*parts[cut:]) == whole
    assert sum(whole.by.values(), TokenCount()) == TokenCount(**whole.model_dump(exclude={"by"}))
    assert whole.total_tokens == sum(count.total_tokens for _, count in parts)


def test_who_used_nothing_does_not_stand_in_the_usage():
    assert Usage().plus(("think", TokenCount(calls=1)), ("feedback", TokenCount())).by == {
        "think": TokenCount(calls=1)
    }
