"""An expression is computed exactly, or refused."""

import operator
from contextlib import suppress
from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

from replan import ExecutionStatus
from replan_local.expressions import calculated, written
from replan_local.grammar import parse
from replan_local.refusals import CannotAnswerError

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
    [
        ("2 + 3 * 4", "14"),
        ("(2 + 3) * -4", "-20"),
        ("2 ^ 10", "1024"),
        ("0.1 + 0.2", "0.3"),
        ("1 / 3", "0.333333333333 (rounded)"),
        ("12.5 % of 80", "10"),
        ("10 % of 50 + 1", "6"),
        ("average(1, 2, 6)", "3"),
        ("median(1, 9, 2) - min(4, 3)", "-1"),
        ("step 2 * 2", "12"),
        ('step 1["total cost"]["Oslo"] - step 2', "4.5"),
        ("sum(step 1) / step 2", "2.41666666667 (rounded)"),
        ("max(step 1['Total Cost'], 99)", "99"),
    ],
)
def test_an_expression_is_computed_exactly(expression, result):
    assert calculated(expression, INPUTS) == f"{expression} = {result}"


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        ("1 / 0", "divides by zero"),
        ("2 +", "is not an expression"),
        ("2 + x", "or '(' after '2 +', not 'x'"),
        ("totl(1, 2)", "is not an expression"),
        ("avrage(1, 2)", "Did you mean 'average'?"),
        ("7 % 3", "is not an expression"),
        ("1e9", "is not an expression"),
        ("0x10", "is not an expression"),
        ("1_0", "is not an expression"),
        ("__import__('os')", "is not an expression"),
        ("sum(step 1).real", "not '.real'"),
        ("sum([1, 2])", "after 'sum(', not '['"),
        ("True + 1", "is not an expression"),
        ("--1", "is not an expression"),
        ("step1", "is not an expression"),
        ("2 2", "is not an expression"),
        ("2 ** 3", "is not an expression"),
        ("9 ^ 9 ^ 9", "whole ones up to 256"),
        ("2 ^ 0.5", "whole ones up to 256"),
        ("step 1 * 2", "One figure is needed where a step has 2"),
        ("step 3 + 1", "Step 3 has no tables; one is needed."),
        ("step 9 + 1", "This step comes after 1, 2, 3, 4, 5, not after step 9. Add it"),
        ('step 1["total cots"]["Oslo"]', "Did you mean 'total cost'?"),
        ('step 1["total cost"]["Olso"]', "Did you mean 'Oslo'?"),
        ("sum(step 4)", "No column of figures in step 4 is ''. There are: b, c."),
        ('step 4["b"]["x"]', "'Twice' has several rows with the same keys."),
        ('max(step 5["b"]["y"])', "Step 5 has no figure there."),
        ('max(step 4["c"], 1) / step 5["c"]["z"]', "No row in step 5 is 'z'. There are: x, y."),
        ("1 + " * 200 + "1", "at most 500 are read"),
        ("(" * 400 + "1" + ")" * 400, "at most 500"),
        ("-" * 400 + "(" * 90, "is not an expression"),
    ],
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


async def test_the_calculator_computes_from_the_results_it_comes_after(ask):
    result = await ask("calculate step 2 + 1", inputs=INPUTS)
    assert result.text == "step 2 + 1 = 7"
    given = await ask("x", who="calculator", expression="2 + 2")
    assert given.text == "2 + 2 = 4"
    refused = await ask("What is two and two?", who="calculator")
    assert refused.status is ExecutionStatus.FAILED
