"""Arithmetic is exact, reads words and signs, and never takes long."""

import time
from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

from replan_local.arithmetic import compute, relates, written


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("what is 12.5 % of 213276.2", "12.5 % of 213276.2 = 26659.525"),
        ("growth from 120 to 150", "(150 - 120) / 120 = 25 %"),
        ("the percentage change from 150 to 120?", "(120 - 150) / 150 = -20 %"),
        ("sum of 1, 2 and 3.5", "sum of 1, 2, 3.5 = 6.5"),
        ("average of 1,250, 3 and 4", "average of 1250, 3, 4 = 419"),
        ("median of 3, 9 and 4", "median of 3, 9, 4 = 4"),
        ("range of 3, 9 and 4", "range of 3, 9, 4 = 6"),
        ("product of 3 and 0.5", "product of 3, 0.5 = 1.5"),
        ("largest of 3, 9 and 4", "largest of 3, 9, 4 = 9"),
        ("difference between 5 and 8", "5 - 8 = -3"),
        ("ratio of 3 to 4", "3 / 4 = 0.75"),
        ("What percentage is 30 of 120?", "30 / 120 = 25 %"),
        ("30 as a percentage of 120", "30 / 120 = 25 %"),
        ("Increase 120 by 25 %", "120 + 25 % = 150"),
        ("decrease 80 by 10%", "80 - 10 % = 72"),
        ("120 plus 10 %", "120 + 10 % = 132"),
        ("add 19 % to 100", "100 + 19 % = 119"),
        ("subtract 19 % from 100", "100 - 19 % = 81"),
        ("20% of 45 plus 3", "20 / 100 \u00d7 45 + 3 = 12"),
        ("5 % of (20 + 40)", "5 % of 60 = 3"),
        ("$1,000 - 1 EUR", "1000 - 1 = 999"),
        ("0.1 + 0.2", "0.1 + 0.2 = 0.3"),
        ("-2 ^ 2", "-2 ^ 2 = -4"),
        ("2 ^ -1", "2 ^ -1 = 0.5"),
        ("growth from 3 to 4", "(4 - 3) / 3 = 33.3333333333 % (rounded)"),
        ("growth from 0 to 5", "(5 - 0) / 0 is not defined: it divides by zero."),
        ("213276.123456789012345 * 2", "213276.123456789012345 \u00d7 2 = 426552.24691357802469"),
    ],
)
def test_questions_and_their_answers(question, answer):
    assert str(compute(question)) == answer


@pytest.mark.parametrize(
    "text",
    ["", "12", "1 2", "hello", "Total the revenue by region", "sum of costs", "2024-01-05", "(1+2",
     "growth from low to high", "5 % of sales", "Write a poem - now", "import os", "1..2 + 3",
     "2 +"],
)  # fmt: skip
def test_what_is_not_arithmetic_on_numbers_is_left_to_others(text):
    assert compute(text) is None


@pytest.mark.parametrize("text", ["sales less 5 %", "growth from May to June", "(a - b) / a"])
def test_names_may_stand_for_numbers(text):
    assert relates(text)


@pytest.mark.parametrize("text", ["sum of the costs", "the costs", "hello"])
def test_a_lone_name_relates_nothing(text):
    assert not relates(text)


@given(st.text(alphabet="0123456789.,+-*/^()% ofand", max_size=240))
def test_no_text_breaks_it_or_keeps_it_busy(text):
    start = time.process_time()
    compute(text)
    assert time.process_time() - start < 2


@given(st.fractions(min_value=-(10**6), max_value=10**6))
def test_a_written_number_is_exact_or_says_that_it_is_rounded(value):
    text = written(value)
    rounded = text.endswith(" (rounded)")
    assert (Fraction(text.removesuffix(" (rounded)")) == value) is not rounded
