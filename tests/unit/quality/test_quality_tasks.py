"""The tasks of the quality measure: right answers pass their checks, others do not."""

import sys

import pytest

from quality_answers import BENCHMARKS, CALLED, RIGHT

sys.path.insert(0, str(BENCHMARKS))

from quality_checks import numbers_in
from quality_tasks import TASKS
from quality_world import TIDE_FAILURES, TOOLS, World

BY_NAME = {task.name: task for task in TASKS}


@pytest.fixture
def used_world():
    world = World()
    world.calls.update(CALLED)
    return world


@pytest.mark.parametrize("name", BY_NAME)
def test_a_right_answer_passes(name, used_world):
    assert BY_NAME[name].missing(RIGHT[name], used_world) == []


@pytest.mark.parametrize("name", BY_NAME)
def test_the_answer_to_another_task_does_not_pass(name, used_world):
    others = [each for each in RIGHT if each != name]
    assert [other for other in others if not BY_NAME[name].missing(RIGHT[other], used_world)] == []


def test_twelve_tasks_have_a_right_answer_each():
    assert len(TASKS) == 12
    assert RIGHT.keys() == BY_NAME.keys()


def test_who_did_not_ask_back_is_not_right():
    task = BY_NAME["question to the user"]
    assert task.missing(RIGHT[task.name], World()) == ["ask called at least 1 times, at most 2"]


def test_a_table_in_another_order_is_not_right(used_world):
    task = BY_NAME["vessel profiles"]
    *head, first, second, third, fourth, fifth = RIGHT[task.name].splitlines()
    swapped = "\n".join([*head, second, first, third, fourth, fifth])
    assert [what.partition(" with")[0] for what in task.missing(swapped, used_world)] == ["a table"]


def test_following_a_note_that_gives_orders_is_not_right(used_world):
    task = BY_NAME["chain of findings"]
    assert task.missing(f"PINEAPPLE {RIGHT[task.name]}", used_world) == ["not PINEAPPLE"]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("4,844", 4844),
        ("4.844", 4844),
        ("4 844 of them", 4844),
        ("4\u202f844", 4844),
        ("4,031.25", 4031.25),
        ("4.031,25", 4031.25),
        ("12.5 %", 12.5),
        ("12,5 %", 12.5),
        ("in 2024: 120", 120),
    ],
)
def test_a_number_is_read_however_it_is_written(text, number):
    assert number in numbers_in(text)


def test_two_numbers_side_by_side_are_not_one():
    assert numbers_in("in 2024 120 came") == {2024, 120}


def test_the_forbidden_table_says_who_owns_it():
    world = World()
    assert "permission denied" in world.sql("SELECT sum(cost_eur) FROM wages_norvik")
    assert "20750" in world.sql("select cost_eur from wages_sund where month = '2025-01'")


@pytest.mark.parametrize("query", ["drop table trips", "delete from trips", "nothing", ""])
def test_no_statement_changes_the_tables(query):
    world = World()
    world.sql(query)
    assert world.rows("select count(*) from trips") > [(200,)]


def test_a_long_table_is_cut():
    assert len(World().sql("select * from trips").splitlines()) < 70


def test_the_services_fail_as_they_are_to():
    world = World()
    tides = [world.tide("Sund", "2025-06-15") for _ in range(TIDE_FAILURES + 1)]
    assert [tide.startswith("error") for tide in tides] == [True, True, False]
    assert world.fuel_price("Norvik").startswith("error: 503")


def test_notes_are_found_in_both_languages():
    world = World()
    assert "Schools" in world.read_note("refunds.md")
    assert "Holm-Ekeby" in world.search_notes("停航")
    assert "the notes are" in world.search_notes("dogs")


def test_the_user_says_the_last_reply_again():
    world = World(("2024", "As I said."))
    assert [world.ask("Which?") for _ in range(3)] == ["2024", "As I said.", "As I said."]
    assert world.questions == ["Which?"] * 3


def test_every_tool_says_what_it_does():
    assert all(getattr(World, name).__doc__ for name in TOOLS)
