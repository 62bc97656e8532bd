"""What rules find in messages, in English and Chinese; what can be read in two ways is none."""

from datetime import date

import pytest

from replan.jobs.extraction.by_rules import read_by_rules
from replan.jobs.extraction.dates import dates_in
from replan.jobs.extraction.numbers import numbers_in
from replan.jobs.extraction.port import Wanted
from replan.jobs.job import Asked, Job
from replan.jobs.slot import Slot
from replan.jobs.spec import Command, JobSpec

TODAY = date(2026, 3, 2)  # a Monday


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12 and -3.5", [12, -3.5]),
        ("1,234,567.5", [1234567.5]),
        ("twenty-one, two hundred and five", [21, 205]),
        ("三百二十", [320]),
        ("一万五千", [15000]),
        ("十二个", [12]),
        ("两", [2]),
        ("\uff11\uff12", [12]),
        ("PC-12 v1.2.3 a1", []),
    ],
)
def test_numbers(text, expected):
    assert [number for number, _ in numbers_in(text)] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-05-01", "2026-05-01"),
        ("on 2026/5/1.", "2026-05-01"),
        ("May 1st, 2027", "2027-05-01"),
        ("the 1st of May", "2026-05-01"),
        ("1 February", "2027-02-01"),
        ("2026年5月1日", "2026-05-01"),
        ("5月1号", "2026-05-01"),
        ("tomorrow", "2026-03-03"),
        ("the day after tomorrow", "2026-03-04"),
        ("后天", "2026-03-04"),
        ("friday", "2026-03-06"),
        ("next Friday", "2026-03-13"),
        ("下周五", "2026-03-13"),
        ("星期天", "2026-03-08"),
        ("31/12/2026", "2026-12-31"),
        ("03/04/2026", None),
        ("2026-13-45", None),
        ("30 February 2026", None),
    ],
)
def test_dates(text, expected):
    assert [str(day) for day, _ in dates_in(text, TODAY)] == [expected] * (expected is not None)


SPEC = JobSpec(
    "t",
    slots=[
        Slot("origin", question="From?", label={"en": "from", "zh": "出发地"}),
        Slot("target", question="To?", words=["目的地"]),
        Slot("day", type="date", question="When?"),
        Slot("people", type="integer", question="How many?"),
        Slot("cabin", choices={"economy": ["经济舱"], "business": []}, question="Which?"),
        Slot("code", pattern=r"[A-Z]{2}\d{3}", question="Code?"),
        Slot("pets", type="boolean", question="Pets?"),
    ],
    commands=[
        Command(
            "go",
            needs=["origin", "target", "day"],
            action="ask_user",
            words=["出发", "travel"],
            takes=["people", "cabin", "code", "pets"],
            parameters={"question": "?"},
        ),
        Command(
            "undo",
            needs=["code"],
            action="ask_user",
            words=["取消行程"],
            parameters={"question": "?"},
        ),
    ],
)


def read(said, asked="", command="go", **held):
    job = Job(id="1", type="t", command=command, collected_info=held)
    job = job.replace(asked=Asked(names=(asked,) if asked else (), count=1))
    return read_by_rules(Wanted(spec=SPEC, job=job, said=said, today=TODAY))


@pytest.mark.parametrize(
    ("said", "asked", "expected"),
    [
        ("Rome", "origin", {"origin": "Rome"}),
        ("What is that?", "origin", {}),
        ("from: Rome, target: Oslo", "", {"origin": "Rome", "target": "Oslo"}),
        ("Well, from is Rome. Thank you!", "", {"origin": "Rome"}),
        ("change the target to New York", "origin", {"target": "New York"}),
        ("出发地：北京，目的地：上海", "", {"origin": "北京", "target": "上海"}),
        ("出发地改成广州", "target", {"origin": "广州"}),
        ("day: May 1, 2026, people: 3", "", {"day": "2026-05-01", "people": 3}),
        ("tomorrow please", "day", {"day": "2026-03-03"}),
        ("3 people in business", "people", {"people": 3, "cabin": "business"}),
        ("经济舱", "cabin", {"cabin": "economy"}),
        ("economy or business", "cabin", {"cabin": "economy or business"}),
        ("it is AB123", "code", {"code": "AB123"}),
        ("no", "pets", {"pets": False}),
        ("1 May or 2 May, who knows", "day", {}),
        ('{"origin": "Rome", "phase": "COMPLETED"}', "", {"origin": "Rome", "phase": "COMPLETED"}),
        ("", "origin", {}),
        ("今天天气怎么样?", "day", {}),
        ("day: tomorrow, is that possible?", "", {"day": "2026-03-03"}),
    ],
)
def test_values(said, asked, expected):
    assert read(said, asked).found.values == expected


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


def test_a_text_that_only_one_slot_takes_changes_no_value_that_is_held():
    assert read("business as usual", "", cabin="economy").found.values == {}
    assert read("cabin: business", "", cabin="economy").found.values == {"cabin": "business"}


def test_rules_are_sure_of_what_they_understand_whole():
    assert read("Rome", "origin").is_sure
    assert read("from: Rome", "target").is_sure
    assert not read("I think it could be Rome, if that is possible", "origin").is_sure
    assert not read("hello there", "").is_sure
