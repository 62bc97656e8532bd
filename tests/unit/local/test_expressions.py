"""An expression is computed exactly, or refused."""

import operator

from hypothesis import given, strategies as st

from cases import cases_of
from replan_local import calculate

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
SIGNS = {"+": operator.add, "-": operator.sub, "*": operator.mul}


async def test_an_expression_is_computed_exactly_or_refused_and_nothing_is_run(ask):
    for expression, result in CASES["computed"]:
        found = await ask("x", who="calculator", inputs=INPUTS, expression=expression)
        assert found.text == f"{expression} = {result}", (expression, found.error)
    for expression, told in CASES["refused"]:
        found = await ask("x", who="calculator", inputs=INPUTS, expression=expression)
        assert told in found.error, expression
        assert not found.retry


@given(
    st.recursive(
        st.integers(0, 99).map(lambda number: (str(number), number)),
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
    assert calculate.invoke({"expression": text}) == f"{text} = {value}"


@given(st.text(alphabet="0123456789+-*/^%()., step[]\"'sumof\\", max_size=40))
def test_no_text_breaks_it_or_keeps_it_busy(text):
    assert calculate.invoke({"expression": text})
