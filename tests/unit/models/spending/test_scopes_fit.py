"""How much a call may reserve: never more than is left, and as much as it can use."""

import pytest
from hypothesis import given, strategies as st

from replan.errors import LimitReachedError
from replan.log.amounts import ROUNDING, Spending, first_refusal
from replan.models.spending.scopes import ENOUGH, LEAST_REPLY, CallRequest, Permit, Scope, fit
from replan.state.limits import Budget, ClosingReserve, Price

PRICE = Price(input=1, output=2)


def scope(name="run", *, kept=None, **limits):
    return Scope(name, Budget(**limits), kept or ClosingReserve())


def call(*scopes, **options):
    given = {"input_tokens": 100, "output_tokens": 4_000, **options}
    return CallRequest(id="1", run_id="r", model="m", scopes=scopes, **given)


def spent(tokens=0, cost=0.0, calls=0):
    return {"run": Spending(calls=calls, tokens=tokens, cost=cost)}


def test_a_call_that_nobody_bounds_is_charged_its_most_and_not_cut():
    offer = fit(call(scope(max_model_calls=9), price=PRICE), {})
    assert offer.most_output is None
    assert offer.reservation.amount == Spending(calls=1, tokens=4_100, cost=PRICE.of(100, 4_000))


def test_where_there_is_room_a_call_gets_all_that_it_wants():
    offer = fit(call(scope(max_tokens=50_000)), spent(1_000), {"run"})
    assert (offer.most_output, offer.reservation.amount.tokens) == (4_000, 4_100)


def test_the_scope_with_the_least_room_decides():
    scopes = [scope(max_tokens=5_000), scope("step/1", max_tokens=900)]
    assert fit(call(*scopes), spent(3_000)).most_output == 800


def test_money_bounds_the_reply_as_tokens_do():
    offer = fit(call(scope(max_cost=0.002), price=PRICE), spent(cost=0.001))
    assert offer.most_output == 450
    assert offer.reservation.amount.cost == pytest.approx(0.001)


def test_a_free_reply_is_not_bounded_by_money_but_its_request_is():
    price = Price(input=1, output=0)
    assert fit(call(scope(max_cost=0.0001), price=price), {}).most_output == 4_000
    refused = fit(call(scope(max_cost=0.00001), price=price), {})
    assert (refused.limit, refused.value) == ("max_cost", 0.00001)


def test_a_call_takes_a_part_of_the_room_while_others_need_some_and_at_least_enough():
    assert fit(call(scope(max_tokens=8_100)), {}, {"run"}).most_output == 2_000
    assert fit(call(scope(max_tokens=3_100)), {}, {"run"}).most_output == ENOUGH
    assert fit(call(scope(max_tokens=3_100)), {}).most_output == 3_000
    # Where others are in flight elsewhere, nobody needs a part of it.
    assert fit(call(scope(max_tokens=3_100)), {}, {"step/2"}).most_output == 3_000
    # A reply that is never long needs less.
    short = call(scope(max_tokens=300), output_tokens=50)
    assert fit(short, {}, {"run"}).most_output == 50


def test_less_than_a_short_reply_is_refused_with_the_figures():
    whole = scope(max_tokens=1_000, kept=ClosingReserve(tokens=200))
    refused = fit(call(whole), spent(800 - 100 - LEAST_REPLY + 1))
    assert isinstance(refused, LimitReachedError)
    assert (refused.limit, refused.value, refused.kept) == ("max_tokens", 1_000, 200)
    assert refused.wants == 100 + LEAST_REPLY
    assert fit(call(whole), spent(800 - 100 - LEAST_REPLY)).most_output == LEAST_REPLY


def test_the_number_of_calls_is_exact():
    one = call(scope(max_model_calls=2))
    assert isinstance(fit(one, spent(calls=1)), Permit)
    refused = fit(one, spent(calls=2))
    assert (refused.limit, refused.value, refused.wants) == ("max_model_calls", 2, 1)


@given(
    tokens=st.integers(1, 20_000),
    cost=st.floats(1e-6, 1.0),
    before=st.integers(0, 20_000),
    paid=st.floats(0, 1.0),
    request=st.integers(1, 5_000),
    reply=st.integers(1, 9_000),
    price=st.tuples(st.floats(0, 50), st.floats(0, 200)),
    crowded=st.booleans(),
)
def test_what_is_reserved_is_never_more_than_the_log_has_room_for(
    tokens, cost, before, paid, request, reply, price, crowded
):
    whole = scope(max_tokens=tokens, max_cost=cost)
    prices = Price(input=price[0], output=price[1])
    wants = call(whole, input_tokens=request, output_tokens=reply, price=prices)
    charged = spent(before, paid)
    offer = fit(wants, charged, {"run"} if crowded else ())
    if isinstance(offer, Permit):
        assert first_refusal(whole.bound, offer.reservation.amount, charged["run"]) is None
        assert 0 < offer.most_output <= reply
        assert offer.reservation.amount.cost <= cost - paid + ROUNDING
