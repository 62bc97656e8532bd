"""What is not known of a cost is not told as 0."""

import pytest
from pydantic import ValidationError

from replan.base.values import restored
from replan.state.usage import TokenCount, Usage
from replan.views.run.below_answer import money

PRICED = TokenCount(calls=2, input_tokens=10, output_tokens=1, known_cost=0.25)
UNPRICED = TokenCount(calls=1, input_tokens=7, output_tokens=3, unpriced_calls=1)


def test_the_cost_of_a_sum_is_unknown_as_soon_as_that_of_one_part_is():
    both = PRICED + UNPRICED
    assert (PRICED.cost, UNPRICED.cost, both.cost) == (0.25, None, None)
    assert (both.known_cost, both.unpriced_calls, both.calls) == (0.25, 1, 3)


def test_a_run_tells_whose_cost_is_unknown():
    usage = Usage().plus(("think", PRICED), ("a", UNPRICED))
    assert usage.cost is None
    assert {name: each.cost for name, each in usage.by.items()} == {"think": 0.25, "a": None}


def test_json_has_the_cost_and_comes_back_equal():
    usage = Usage().plus(("think", PRICED), ("a", UNPRICED))
    told = usage.model_dump(mode="json")
    assert (told["cost"], told["by"]["think"]["cost"]) == (None, 0.25)
    assert Usage.model_validate_json(usage.model_dump_json()) == usage
    assert restored(Usage, usage.model_dump()) == usage


@pytest.mark.parametrize("wrong", [{"calls": 1, "cost": 0.5}, {"by": 3}])
def test_what_is_no_usage_is_refused(wrong):
    with pytest.raises(ValidationError):
        Usage.model_validate(wrong)


def test_the_terminal_says_how_much_of_a_cost_it_knows():
    assert money(PRICED) == ", cost 0.25"
    assert money(PRICED + UNPRICED) == ", cost at least 0.25 (1 call without a price)"
    assert money(UNPRICED) == money(TokenCount(calls=3)) == ""
