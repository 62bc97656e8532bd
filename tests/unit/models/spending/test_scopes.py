"""What a call is charged to: the run, and the budgets that its specialist and its step have."""

import pytest

from replan.models.spending.scopes import run_scope, step_scopes
from replan.state.limits import CLOSING_TOKENS, Budget, Limits, Price

LIMITS = Limits(
    max_model_calls=10,
    max_tokens=10_000,
    max_cost=5,
    max_seconds=600,
    per_step=Budget(max_tokens=50),
)


def test_who_closes_may_use_all_and_others_leave_a_part(services):
    whole = run_scope(LIMITS, services(), closing=True)
    assert whole.budget == Budget(
        max_model_calls=10, max_tokens=10_000, max_cost=5, max_seconds=600
    )
    assert [whole.most(kind) for kind in ("calls", "tokens", "cost", "seconds")] == [
        10,
        10_000,
        5,
        600,
    ]
    others = run_scope(LIMITS, services(), closing=False)
    assert [others.most(kind) for kind in ("calls", "tokens", "cost", "seconds")] == [
        9,
        8_000,
        4,
        540,
    ]


def test_of_large_limits_only_what_an_answer_needs_is_kept(services):
    dear = {"m": Price(input=1, output=2), "n": Price(input=2, output=8)}
    scope = run_scope(
        Limits(max_tokens=10_000_000, max_cost=1_000), services(prices=dear), closing=False
    )
    assert scope.kept.tokens == CLOSING_TOKENS
    assert scope.kept.cost == pytest.approx(CLOSING_TOKENS * 10 / 1_000_000)


def test_of_small_limits_one_short_answer_is_kept_but_no_more_than_half(services):
    prices = {"m": Price(input=1, output=2), "n": Price(input=2, output=8)}

    def kept(**limits):
        return run_scope(Limits(**limits), services(prices=prices), closing=False).kept

    assert [kept(max_tokens=n).tokens for n in (1, 1_000, 2_999, 5_000, 8_000)] == [
        0,
        500,
        1_499,
        1_500,
        1_600,
    ]
    # 1,000 tokens to read and 500 to write, by the dearer model.
    assert [kept(max_cost=cost).cost for cost in (0.004, 0.02, 1.0)] == pytest.approx(
        [0.002, 0.006, 0.2]
    )


def test_a_step_is_charged_to_its_specialist_and_itself_where_they_have_budgets(services):
    live = services(budgets={"a": Budget(max_seconds=3), "b": Budget()})
    names = [scope.name for scope in step_scopes(LIMITS, live, "a", 7)]
    assert names == ["run", "specialist/a", "step/7"]
    assert [scope.name for scope in step_scopes(Limits(), live, "b", 7)] == ["run"]
    assert [scope.name for scope in step_scopes(Limits(), live, "c", 7)] == ["run"]
