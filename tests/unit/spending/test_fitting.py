"""How much a call may reserve: never more than is left, and as much as it can use."""

import math

import pytest
from hypothesis import given, strategies as st

from replan.errors import LimitReachedError
from replan.spending.fitting import (
    BARE_REPLY,
    LEAST_REPLY,
    Ask,
    Blocked,
    Permit,
    Room,
    Seen,
    fit,
    unbounded,
)
from replan.spending.scopes import Scope
from replan.state.limits import Budget, ClosingReserve, Price

RUN = Scope("run", Budget(max_tokens=10_000, max_cost=1.0))
PRICE = Price(input=1, output=2)


def ask(**options):
    given = {"input_tokens": 100, "output_tokens": 1_000, "cuttable": True, **options}
    likely = max(1, given["input_tokens"] // 2)
    return Ask(id="1", run_id="r", model="m", scopes=[RUN], **{"likely_tokens": likely, **given})


def room(tokens=math.inf, cost=math.inf, *, tokens_later=None, cost_later=None, scope=RUN):
    later = tokens if tokens_later is None else tokens_later
    cost_later = cost if cost_later is None else cost_later
    return Room(scope=scope, tokens=tokens, cost=cost, tokens_later=later, cost_later=cost_later)


def seen(ratio=0.2, largest=50, over=1.0):
    return Seen(ratio=ratio, likely=2 * ratio, largest=largest, over=over)


def reserved(offer):
    amount = offer.reservation.amount
    return amount.calls, amount.tokens, amount.cost


def test_a_call_that_nobody_bounds_is_charged_its_most_and_not_cut():
    offer = unbounded(ask(price=PRICE))
    assert offer.most_output is None
    assert reserved(offer) == (1, 1_100, pytest.approx(0.0021))


def test_where_there_is_room_a_call_gets_all_that_it_wants():
    offer = fit(ask(), [room(5_000)], None, crowded=False)
    assert (offer.most_output, reserved(offer)) == (1_000, (1, 1_100, 0))


def test_the_scope_with_the_least_room_decides():
    rooms = [room(5_000), room(900), room(700)]
    assert fit(ask(), rooms, seen(), crowded=False).most_output == 600


def test_money_bounds_the_reply_as_tokens_do():
    offer = fit(ask(price=PRICE), [room(cost=0.001)], seen(), crowded=False)
    assert offer.most_output == 450
    assert reserved(offer) == (1, 550, pytest.approx(0.001))


def test_a_free_reply_is_not_bounded_by_money_but_its_request_is():
    price = Price(input=1, output=0)
    assert fit(ask(price=price), [room(cost=0.0001)], seen(), crowded=False).most_output == 1_000
    refused = fit(ask(price=price), [room(cost=0.00001)], seen(), crowded=False)
    assert (refused.limit, refused.value) == ("max_cost", 1.0)


def test_a_call_takes_a_part_of_the_room_while_others_want_some_too():
    assert fit(ask(), [room(2_100)], seen(), crowded=True).most_output == 500
    assert fit(ask(), [room(2_100)], seen(), crowded=False).most_output == 1_000
    # But not less than replies usually need.
    assert fit(ask(), [room(2_100)], seen(largest=400), crowded=True).most_output == 800


def test_a_call_waits_while_others_can_make_enough_room():
    offer = fit(ask(), [room(200, tokens_later=5_000)], seen(), crowded=True)
    assert isinstance(offer, Blocked)
    assert offer.tag == "run"
    assert str(offer.error) == "The limit max_tokens=10000 is reached."


def test_a_refused_call_says_what_is_spent_what_is_kept_and_what_it_may_need():
    kept = ClosingReserve(tokens=2_000)
    run = Scope("run", Budget(max_tokens=10_000), kept)
    refused = fit(ask(), [room(50, scope=run)], None, crowded=False)
    assert refused.reason == "7950 spent, 2000 kept for the answer, and the next call may need 114"
    assert (refused.wants, refused.kept) == (114, 2_000)
    step = Scope("step/4", Budget(max_tokens=20))
    refused = fit(ask(), [room(20, scope=step)], None, crowded=False)
    assert refused.reason == "0 spent, and the next call may need 114"


def test_a_call_is_refused_when_nothing_that_is_on_its_way_could_make_room():
    offer = fit(ask(), [room(20, tokens_later=90)], seen(), crowded=True)
    assert isinstance(offer, LimitReachedError)


def test_when_nothing_is_on_its_way_a_call_gets_what_is_left_by_what_it_probably_needs():
    offer = fit(ask(), [room(130)], seen(), crowded=True)
    # What is likely for the request, and the rest for the reply; nothing else may start.
    assert (offer.most_output, reserved(offer)) == (80, (1, 130, 0))


def test_a_server_that_counts_more_than_is_likely_is_believed_with_a_margin():
    offer = fit(ask(), [room(170)], seen(ratio=0.8), crowded=False)
    # 100 for the request, which is never more than that, instead of 50.
    assert (offer.most_output, reserved(offer)) == (70, (1, 170, 0))


def test_a_reply_that_would_be_too_short_to_be_of_use_is_not_paid_for():
    least = 50 + BARE_REPLY
    assert isinstance(fit(ask(), [room(least - 1)], None, crowded=False), LimitReachedError)
    assert isinstance(fit(ask(), [room(least)], None, crowded=False), Permit)
    # The longest reply so far says what is of use.
    assert isinstance(fit(ask(), [room(250)], seen(largest=300), crowded=False), LimitReachedError)


def test_a_scope_that_will_have_no_room_is_told_even_if_another_will():
    step = Scope("step/4", Budget(max_tokens=20))
    rooms = [room(100, tokens_later=9_000), room(20, scope=step)]
    refused = fit(ask(), rooms, seen(), crowded=True)
    assert (refused.scope, refused.limit, refused.value) == ("step/4", "max_tokens", 20)
    assert str(refused) == "The limit max_tokens=20 of step 4 is reached."


def test_servers_that_count_more_than_bytes_or_write_more_than_asked_are_believed():
    offer = fit(ask(), [room(50_000)], seen(ratio=3.0, over=2.0), crowded=False)
    assert (offer.most_output, reserved(offer)) == (1_000, (1, 300 + 2_000, 0))


def test_a_reply_that_cannot_be_cut_is_taken_to_be_like_those_so_far():
    offer = fit(ask(cuttable=False), [room(5_000)], seen(largest=300), crowded=True)
    assert reserved(offer) == (1, 700, 0)
    short = fit(ask(cuttable=False), [room(5_000)], seen(largest=3), crowded=True)
    assert reserved(short) == (1, 100 + LEAST_REPLY, 0)


def test_what_is_seen_is_the_most_of_each():
    known = Seen()
    permit = fit(ask(), [room(5_000)], None, crowded=False)
    known.add(permit, 40, 500)
    assert known == Seen(ratio=0.4, likely=0.8, over=1.0, largest=500)
    known.add(permit, 20, 2_500)
    assert known == Seen(ratio=0.4, likely=0.8, over=2.5, largest=2_500)
    loose = fit(ask(cuttable=False), [room(5_000)], None, crowded=False)
    known.add(loose, 20, 9_000)
    assert known == Seen(ratio=0.4, likely=0.8, over=2.5, largest=9_000)


def test_what_is_kept_back_is_not_there_for_others():
    scope = Scope("run", Budget(max_tokens=100, max_model_calls=3), ClosingReserve(calls=1))
    assert (scope.most("calls"), scope.most("tokens"), scope.most("cost")) == (2, 100, math.inf)
    bound = Scope("run", Budget(max_cost=1.0), ClosingReserve(cost=3.0)).bound
    assert (bound.calls, bound.tokens, bound.cost) == (None, None, 0.0)


AMOUNTS = st.integers(0, 20_000)


@given(
    tokens=AMOUNTS,
    more=AMOUNTS,
    cost=st.floats(0, 0.1),
    more_cost=st.floats(0, 0.1),
    request=st.integers(1, 5_000),
    reply=st.integers(1, 5_000),
    known=st.none()
    | st.builds(Seen, st.floats(0, 3), st.floats(0, 6), st.floats(1, 3), st.integers(0, 5_000)),
    crowded=st.booleans(),
    cuttable=st.booleans(),
    price=st.none() | st.builds(Price, input=st.floats(0, 50), output=st.floats(0, 50)),
)
def test_no_more_is_reserved_than_is_left(
    tokens, more, cost, more_cost, request, reply, known, crowded, cuttable, price
):
    given_rooms = [room(tokens, cost, tokens_later=tokens + more, cost_later=cost + more_cost)]
    asked = ask(input_tokens=request, output_tokens=reply, cuttable=cuttable, price=price)
    offer = fit(asked, given_rooms, known, crowded=crowded)
    if isinstance(offer, Permit):
        _, taken, paid = reserved(offer)
        assert taken <= tokens
        assert paid <= cost + 1e-9
        assert 1 <= offer.most_output <= reply
    elif isinstance(offer, Blocked):
        assert more or more_cost
