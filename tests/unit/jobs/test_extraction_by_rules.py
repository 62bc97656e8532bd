"""What rules find in messages, in English and Chinese; what can be read in two ways is none."""

import sys
from datetime import date
from itertools import count

import pytest

from cases import cases_of
from replan.jobs.extraction.by_rules import read_by_rules
from replan.jobs.extraction.dates import dates_in
from replan.jobs.extraction.numbers import numbers_in
from replan.jobs.extraction.port import Wanted
from replan.jobs.job import Asked, Job
from replan.jobs.spec.job_spec import JobSpec

CASES = cases_of(__file__)

TODAY = date(2026, 3, 2)  # a Monday


@pytest.mark.parametrize(
    ("text", "expected"),
    CASES["numbers"],
)
def test_numbers(text, expected):
    assert [number for number, _ in numbers_in(text)] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    CASES["dates"],
)
def test_dates(text, expected):
    found = [str(day) for day, _ in dates_in(text, TODAY) if day is not None]
    assert found == [expected] * (expected is not None)


SPOKEN_NUMBERS = CASES["spoken_numbers"]
SPOKEN_DATES = CASES["spoken_dates"]


def test_numbers_and_dates_as_they_are_spoken():
    for text, numbers in SPOKEN_NUMBERS.items():
        assert [number for number, _ in numbers_in(text)] == numbers, text
    for text, day in SPOKEN_DATES.items():
        found = {str(each) for each, _ in dates_in(text, TODAY) if each is not None}
        assert (found.pop() if len(found) == 1 else None) == day, text


SPEC, ROUTE = (JobSpec(**CASES["specs"][name]) for name in ("trip", "route"))


def read(said, asked="", command="go", **held):
    job = Job(id="1", type="t", command=command, collected_info=held)
    job = job.replace(asked=Asked(names=(asked,) if asked else (), count=1))
    return read_by_rules(Wanted(spec=SPEC, job=job, said=said, today=TODAY))


@pytest.mark.parametrize(
    ("said", "asked", "expected"),
    CASES["values"],
)
def test_values(said, asked, expected):
    assert read(said, asked).found.values == expected


@pytest.mark.parametrize(
    ("said", "asked", "expected"),
    CASES["routes"],
)
def test_no_name_beside_a_word_of_another_slot_and_what_only_one_slot_can_take(
    said, asked, expected
):
    job = Job(id="1", type="route", command="" if asked == "command" else "ride")
    job = job.replace(asked=Asked(names=(asked,) if asked else (), count=1))
    found = read_by_rules(Wanted(spec=ROUTE, job=job, said=said, today=TODAY)).found
    assert found.values == expected


def test_a_message_full_of_choices_and_commands_is_read_in_time_that_grows_with_it():
    def compared(times):
        job = Job(id="1", type="route", asked=Asked(names=("command",), count=1))
        said = "ride large red from 1 May to Rome " * times
        steps = count()
        sys.setprofile(lambda *_: next(steps))
        try:
            read_by_rules(Wanted(spec=ROUTE, job=job, said=said, today=TODAY))
        finally:
            sys.setprofile(None)
        return next(steps)

    # Work that grows with the square of a message would be sixteen times as much.
    assert compared(400) < 8 * compared(100)


def test_commands_confirmation_and_the_end():
    assert read("I want to travel", command="").found.command == "go"
    assert read("请取消行程", command="").found.command == "undo"
    assert read("travel or undo", command="").found.command == ""
    assert read("I would undo that", "origin").found.command == ""
    assert read("undo", "origin").found.command == "undo"
    assert read("是的。", "confirmation").found.confirmed is True
    assert read("Nope!", "confirmation").found.confirmed is False
    assert read("yes but people: 3", "confirmation").found.confirmed is None
    assert read("Cancel!", "origin").found.cancelled
    assert read("取消", "day").found.cancelled
    assert not read("cancel the noise", "origin").found.cancelled


def test_a_command_with_its_values_is_not_the_answer_to_what_was_asked():
    for said in ("undo AB123", "取消行程 AB123"):
        found = read(said, "origin").found
        assert (found.command, found.values) == ("", {}), said
    assert read("go people: 3", "origin").found.values == {"people": 3}
