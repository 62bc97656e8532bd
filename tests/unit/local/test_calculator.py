"""The calculator computes with the figures that earlier steps found, and says which it took."""

import pytest

from replan.plan.model import PlanStep
from replan_local import Calculator
from replan.state.results import ExecutionContext, ExecutionStatus

EGGS = """\
**Total eggs by farm** (eggs.csv, 9 rows)

| farm | total eggs |
| --- | ---: |
| Hill | 60 |
| Dale | 20 |
"""
HENS = """\
**Average hens by farm**

| farm | average hens |
| --- | ---: |
| Hill | 6 |
| Dale | 4 |
"""
SHARE = "**5 % of 80: 4**\n\n5 % of 80 = 4\n"


@pytest.fixture
def calculate():
    async def run(text, *, brief="", inputs=None, **parameters):
        context = ExecutionContext(
            task_description=text,
            plan_step=PlanStep(id=9, description=text, brief=brief),
            parameters=parameters,
            inputs={1: EGGS, 2: HENS} if inputs is None else inputs,
        )
        return await Calculator().run(context, {})

    return run


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("Calculate 12.5 % of the total eggs", "12.5 % of 80 = 10"),
        ("share of Hill in the total eggs", "60 / 80 = 75 %"),
        ("growth from Dale's eggs to Hill's eggs", "(60 - 20) / 20 = 200 %"),
        ("total eggs in Hill / average hens in Hill", "60 / 6 = 10"),
        ("difference between the largest eggs and the smallest eggs", "60 - 20 = 40"),
        ("average of hens", "average of 6, 4 = 5"),
        ("sum of eggs of step 1", "sum of 60, 20 = 80"),
        ("The eggs left: total eggs - 5", "80 - 5 = 75"),
        ("2 * (total eggs + 1)", "2 \u00d7 (80 + 1) = 162"),
    ],
)
async def test_names_are_the_columns_and_rows_of_earlier_results(calculate, text, line):
    result = await calculate(text)
    assert result.status is ExecutionStatus.SUCCESS, result.error
    assert f"\n\n{line}" in result.text


async def test_it_says_which_figures_it_took_and_is_less_sure_where_it_added_up(calculate):
    sure, taken, added = [
        await calculate(text)
        for text in ("5 % of 80", "5 % of eggs in Dale", "5 % of the total eggs")
    ]
    assert sure.confidence > taken.confidence > added.confidence
    assert "- 'the total eggs' is total eggs of step 1, the 2 values added up." in added.text


async def test_the_result_of_another_calculation_can_be_used(calculate):
    result = await calculate("100 plus the result of step 3", inputs={3: SHARE})
    assert "100 + 4 = 104" in result.text


async def test_the_parameter_and_the_brief_may_hold_the_question(calculate):
    assert "= 14" in (await calculate("Do it", expression="2 * 7")).text
    assert "= 14" in (await calculate("Do it", brief="Please be exact.\n2 * 7")).text


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("10 % of total egs", "Did you mean 'total eggs'?"),
        ("10 % of hens", "has 2 values in step 2 (Hill, Dale"),
        ("10 % of Hill", "could be any of: total eggs of step 1 and average hens of step 2"),
        ("10 % of eggs of step 2", "No figure 'eggs of step 2'"),
        ("Write a poem", "This is no arithmetic"),
        ("5 / 0", "divides by zero"),
    ],
)
async def test_what_cannot_be_computed_fails_for_good_and_says_why(calculate, text, error):
    result = await calculate(text)
    assert result.status is ExecutionStatus.FAILED
    assert not result.retry
    assert error in result.error


async def test_without_earlier_results_a_name_is_unknown(calculate):
    assert "builds on no result with figures" in (await calculate("5 % of x", inputs={})).error


async def test_wrong_parameters_are_refused(calculate):
    assert "Did you mean 'expression'?" in (await calculate("x", expresion="1+1")).error
    assert "must be a text" in (await calculate("x", expression=3)).error
