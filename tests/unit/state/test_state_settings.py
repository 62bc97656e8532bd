"""What a run may do and has used: settings that a request overrides, and usage that adds up."""

import pytest
from hypothesis import given, strategies as st

from replan import Budget, Limits, Price, RunSettings, SettingsError, Usage
from replan.state.enhanced import rounds_of, settings_of
from replan.state.usage import TokenCount

CONFIGURED = RunSettings(
    approval="always",
    limits=Limits(max_rounds=3, max_cost=7, per_step=Budget(max_tokens=5, max_cost=2)),
    on_failure="halt",
)


def limited(**limits):
    return CONFIGURED.replace(limits=CONFIGURED.limits.replace(**limits))


ASKED = [
    (None, CONFIGURED),
    (RunSettings(), CONFIGURED),
    (RunSettings(round_scope="step"), CONFIGURED.replace(round_scope="step")),
    # The built-in value may be asked for, and a limit may be taken away.
    (RunSettings(on_failure="finish"), CONFIGURED.replace(on_failure="finish")),
    (RunSettings(limits=Limits(max_rounds=10)), limited(max_rounds=10)),
    (RunSettings(limits=Limits(max_cost=None)), limited(max_cost=None)),
    (
        RunSettings(limits=Limits(per_step=Budget(max_cost=None, max_seconds=9))),
        limited(per_step=Budget(max_tokens=5, max_seconds=9)),
    ),
    (RunSettings.model_validate({"limits": {"max_steps": 2}}), limited(max_steps=2)),
    # What is changed in a copy is asked for, and nothing else of it.
    (RunSettings(limits=Limits(max_rounds=1).replace(max_rounds=2)), limited(max_rounds=2)),
    (
        RunSettings().replace(limits=Limits(max_model_calls=200)),
        limited(max_model_calls=200),
    ),
]


@pytest.mark.parametrize(("asked", "settings"), ASKED)
def test_a_request_changes_what_it_names_also_after_a_copy_and_as_json(asked, settings):
    assert CONFIGURED.overridden_by(asked) == settings
    if asked is not None:
        again = RunSettings.model_validate_json(asked.model_dump_json())
        assert again == asked
        assert CONFIGURED.overridden_by(again) == settings
        copy = asked.replace(round_scope="step")
        assert CONFIGURED.overridden_by(copy) == settings.replace(round_scope="step")


def test_in_python_settings_are_written_whole():
    assert RunSettings().model_dump()["limits"]["max_model_calls"] == 200


def test_a_price_is_for_a_million_tokens():
    assert Price(input=2, output=10).of(500_000, 100_000) == pytest.approx(2.0)


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
