"""An expression is computed exactly, or refused."""

import operator
from contextlib import suppress
from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

from cases import cases_of
from replan_local.expressions import calculated, written
from replan_local.grammar import parse
from replan_local.refusals import CannotAnswerError

CASES = cases_of(__file__)

COSTS = """\
**Total cost by town**

| town | total cost |
| --- | ---: |
| Oslo | 10.5 |
| Bergen | 4 |
"""
TWO = """\
**Twice**

| a | b | c |
| --- | ---: | ---: |
| x | 1 | 2 |
| x | (empty) | 3 |
| y | (empty) | 4 |
"""
INPUTS = {1: COSTS, 2: "2 * 3 = 6", 3: "Nothing.", 4: TWO, 5: TWO.replace("| x | 1 | 2 |\n", "")}


@pytest.mark.parametrize(
    ("expression", "result"),
    CASES["computed"],
)
def test_an_expression_is_computed_exactly(expression, result):
    assert calculated(expression, INPUTS) == f"{expression} = {result}"


@pytest.mark.parametrize(
    ("expression", "told"),
    CASES["refused"],
)
def test_what_is_no_expression_is_refused_and_nothing_is_run(expression, told):
    with pytest.raises(CannotAnswerError) as refusal:
        calculated(expression, INPUTS)
    assert told in str(refusal.value)


def test_the_steps_that_an_expression_names_are_known_before_it_is_computed():
    assert parse('calculate step 12 + step 3["step 4"] - step 12').steps == (3, 12)


SIGNS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}


@given(
    st.recursive(
        st.integers(0, 99).map(lambda number: (str(number), Fraction(number))),
        lambda inner: st.tuples(inner, st.sampled_from("+-*"), inner).map(
            lambda each: (
                f"({each[0][0]} {each[1]} {each[2][0]})",
                SIGNS[each[1]](each[0][1], each[2][1]),
            )
        ),
        max_leaves=12,
    )
)
def test_any_expression_has_the_value_of_its_parts(expression):
    text, value = expression
    assert calculated(text, {}) == f"{text} = {written(value)}"


@given(st.text(alphabet="0123456789+-*/^%()., step[]\"'sumof\\", max_size=40))
def test_no_text_breaks_it_or_keeps_it_busy(text):
    with suppress(CannotAnswerError):
        assert calculated(text, INPUTS).startswith(" ".join(text.split()))
