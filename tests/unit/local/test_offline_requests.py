"""The offline model makes plans of requests."""

import pytest

LAST_AFTER_ALL = [
    "Profile a.csv; total cost by team in b.csv, count of trips by day in c.csv; finally report",
    "Profile a.csv. Total cost by team in b.csv. Count of trips in c.csv. Write a report.",
    "1. Profile a.csv\n2. Cost by team in b.csv\n3. Count of trips in c.csv\n4. Write a report",
    "- profile a.csv\n- cost by team in b.csv\n- trips per day in c.csv\n- summarise the results",
    "1) profile a.csv 2) cost by team in b.csv 3) trips per day in c.csv 4) write a report",
]


def shape(plan):
    return [(step.id, step.assigned_to, step.dependencies) for step in plan.steps]


@pytest.mark.parametrize("request_text", LAST_AFTER_ALL)
def test_independent_clauses_run_in_parallel_and_the_report_waits_for_all(planned, request_text):
    assert shape(planned(request_text)) == [
        (1, "data_analyst", ()),
        (2, "data_analyst", ()),
        (3, "data_analyst", ()),
        (4, "writer", (1, 2, 3)),
    ]


def test_then_waits_for_both_sides_of_an_and(planned):
    plan = planned("Total cost by team and average age by team from b.csv, then profile c.csv")
    assert [step.dependencies for step in plan.steps] == [(), (), (1, 2)]


def test_then_continues_its_own_branch_only(planned):
    plan = planned(
        "Profile a.csv. Total cost by team in b.csv, then top 3 teams by cost in b.csv. Report."
    )
    assert [step.dependencies for step in plan.steps][:3] == [(), (), (2,)]


def test_a_comparison_joins_what_stands_before_it_and_the_report_takes_in_everything(planned):
    plan = planned(
        "Total cost by team, average age by team in b.csv, compare both and write a report"
    )
    assert shape(plan)[2:] == [(3, "data_analyst", (1, 2)), (4, "writer", (1, 2, 3))]


def test_a_report_holds_every_result_of_a_chain(planned):
    plan = planned("Profile a.csv, then total cost by team, then top 3 teams by cost, then report")
    assert plan.steps[-1].dependencies == (1, 2, 3)


def test_a_comparison_that_names_its_own_files_waits_for_nothing(planned):
    plan = planned("Profile a.csv; compare a.csv and b.csv by team")
    assert [step.dependencies for step in plan.steps] == [(), ()]


def test_a_request_with_one_clause_is_a_plan_with_one_step(planned):
    assert shape(planned("Total cost by team from b.csv")) == [(1, "data_analyst", ())]


def test_a_report_on_something_new_is_the_work_and_then_the_report(planned):
    plan = planned("Write a short report on total cost by team from b.csv")
    assert shape(plan) == [(1, "data_analyst", ()), (2, "writer", (1,))]
    assert plan.steps[0].description == "Total cost by team from b.csv"


def test_a_clause_without_a_file_takes_the_one_spoken_of(planned):
    plan = planned("Do this with trips.parquet:\n- total cost by team\n- monthly cost")
    assert all(step.description.endswith(" in trips.parquet") for step in plan.steps)


def test_a_file_at_the_end_of_a_sentence_serves_the_whole_sentence(planned):
    plan = planned("Total cost by team and average age by city from b.csv")
    assert [step.description for step in plan.steps] == [
        "Total cost by team in b.csv",
        "Average age by city from b.csv",
    ]


def test_two_measures_of_one_table_stay_one_step(planned):
    assert len(planned("Total cost and average age by team in b.csv").steps) == 1
    assert len(planned("Total cost, count and average by team in b.csv").steps) == 1


def test_background_sentences_are_no_steps(planned):
    assert (
        len(planned("I run a zoo. Please compute the total cost by team in b.csv. Thanks").steps)
        == 1
    )


def test_chinese_requests_are_split_too(planned):
    plan = planned("统计 a.csv 按城市的总收入\uff1b对比 a.csv 和 b.csv\uff0c然后写一份报告")
    assert shape(plan) == [
        (1, "data_analyst", ()),
        (2, "data_analyst", ()),
        (3, "writer", (1, 2)),
    ]


def test_text_that_looks_like_an_assignment_stays_text(planned):
    plan = planned("Total cost by team from b.csv for @nobody (after 7; optional)")
    (step,) = plan.steps
    assert step.specialists == ("data_analyst",)
    assert step.dependencies == ()
    assert not step.optional


def test_what_nobody_can_do_is_left_out_and_said(reply, planned):
    request = "Total cost by team in b.csv; compose a sonata"
    assert len(planned(request).steps) == 1
    assert "nobody in the team does it: Compose a sonata" in reply("think", request)


def test_file_names_abbreviations_and_decimals_end_no_sentence(planned):
    plan = planned("Total cost over 1.5 by team, e.g. per year, from data/b.v2.csv")
    assert [step.description for step in plan.steps] == [
        "Total cost over 1.5 by team, e.g. per year, from data/b.v2.csv"
    ]


@pytest.mark.parametrize(
    ("request_text", "expected"),
    [
        (
            "Total cost by team in b.csv, find what our notes say about cost, compare both, report",
            [(1, "data_analyst", ()), (2, "librarian", ())],
        ),
        (
            "Total the cost in b.csv, then calculate 19 % of the total cost, then write a report",
            [(1, "data_analyst", ()), (2, "calculator", (1,)), (3, "writer", (1, 2))],
        ),
        (
            "Cost by team in b.csv, total age by team in c.csv, ratio of age to cost, report",
            [(1, "data_analyst", ()), (2, "data_analyst", ()), (3, "calculator", (1, 2))],
        ),
        (
            "What is 5 % of 80, and total cost by team from b.csv, and write a report",
            [(1, "calculator", ()), (2, "data_analyst", ()), (3, "writer", (1, 2))],
        ),
        (
            "Profile b.csv and what do the documents say about holidays?",
            [(1, "data_analyst", ()), (2, "librarian", ())],
        ),
        (
            "Plot the monthly cost from b.csv",
            [(1, "data_analyst", ()), (2, "writer", (1,))],
        ),
    ],
)
def test_every_member_of_the_team_gets_its_work(planned, request_text, expected):
    assert shape(planned(request_text))[: len(expected)] == expected


def test_a_comparison_waits_for_the_steps_that_it_speaks_of(planned):
    plan = planned(
        "Total cost by team in b.csv; total age by team in c.csv; search our notes for rent; "
        "compare cost and age by team; write a report"
    )
    assert [step.dependencies for step in plan.steps[3:]] == [(1, 2), (1, 2, 3, 4)]


def test_a_table_is_no_source_for_whoever_reads_texts(planned):
    plan = planned("Total cost by team in b.csv and find what our notes say about rent")
    assert plan.steps[1].description == "Find what our notes say about rent"


@pytest.mark.parametrize(
    ("request_text", "line"),
    [
        ("Draw a bar chart of the cost by team from b.csv", "Write a report with a bar chart"),
        ("Write a brief with a line chart of cost by day from b.csv", "Write a brief with a line"),
    ],
)
def test_a_chart_of_something_new_is_the_work_and_then_the_chart(planned, request_text, line):
    plan = planned(request_text)
    assert shape(plan) == [(1, "data_analyst", ()), (2, "writer", (1,))]
    assert plan.steps[1].description.startswith(line)


def test_a_number_at_the_end_of_a_bracket_begins_no_list(planned):
    plan = planned("Calculate 3 * (4 + 5) and then calculate 10 / 4")
    assert [step.description for step in plan.steps] == [
        "Calculate 3 * (4 + 5)",
        "Calculate 10 / 4",
    ]
