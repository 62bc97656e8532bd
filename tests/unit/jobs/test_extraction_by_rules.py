"""What rules find in messages, in English and Chinese; what can be read in two ways is none."""

import sys
from datetime import date
from itertools import count

import pytest

from replan.jobs.extraction.by_rules import read_by_rules
from replan.jobs.extraction.dates import dates_in
from replan.jobs.extraction.numbers import numbers_in
from replan.jobs.extraction.port import Wanted
from replan.jobs.job import Asked, Job
from replan.jobs.spec.job_spec import JobCommand, JobSpec
from replan.jobs.spec.slot import Slot

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


SPOKEN_NUMBERS = {
    "10 million": [10_000_000],
    "2.5 million": [2_500_000],
    "3k": [3_000],
    "minus five": [-5],
    "two and a half": [2.5],
    "one point five": [1.5],
    "just one": [1],
    "the red one": [],
    "one moment": [],
    "一百五": [150],
    "一百零五": [105],
    "一千零五十": [1_050],
    "一万五": [15_000],
    "两万三": [23_000],
    "三亿五千万": [350_000_000],
    "3万": [30_000],
    "1.5万": [15_000],
    "一点五": [1.5],
    "负五": [-5],
    "百分之五十": [50],
    "一个半": [1.5],
    "壹佰": [100],
    "一个人": [1],
    "一半": [],
    "我们一起去": [],
    "万一不行": [],
    "千万别忘了": [],
    "十分感谢": [],
    "第三个": [],
    "二十多个": [],
    "三四个": [],
    "一两个": [],
    "五六十": [],
    "二三百": [],
    "二〇二六": [2026],
    "五个左右": [],
    "大约五个": [],
    "比上次多两个": [],
    "后天，3个人": [3],
    "\uff11\uff10\uff10，\uff12个": [100, 2],
    "about 5": [],
    "at least 3": [],
    "no more than 5": [],
    "5 people or so": [],
    "three or four": [],
    "between 2 and 4": [],
    "1.000": [],
    "0.125": [0.125],
}
SPOKEN_DATES = {
    "in 3 days": "2026-03-05",
    "in two weeks' time": "2026-03-16",
    "a week from Friday": "2026-03-13",
    "3 days ago": "2026-02-27",
    "last Friday": "2026-02-27",
    "Friday next week": "2026-03-13",
    "next week on Friday": "2026-03-13",
    "on Tue": "2026-03-03",
    "Fri": "2026-03-06",
    "Sept 3": "2026-09-03",
    "the first of April": "2026-04-01",
    "Friday, 13 March 2026": "2026-03-13",
    "Friday the 13th": "2026-03-13",
    "Monday, March 10": None,
    "on the 15th": "2026-03-15",
    "the 5th floor": None,
    "every Friday": None,
    "15/3/26": "2026-03-15",
    "1.2.26": None,
    "三天后": "2026-03-05",
    "一个月后": "2026-04-02",
    "下个星期五": "2026-03-13",
    "下下周五": "2026-03-20",
    "上周五": "2026-02-27",
    "礼拜五": "2026-03-06",
    "每周五": None,
    "一周三次": None,
    "二〇二六年三月五日": "2026-03-05",
    "十二月二十五日": "2026-12-25",
    "明年三月五日": "2027-03-05",
    "3月5日星期四": "2026-03-05",
    "下个月3号": "2026-04-03",
    "十五号": "2026-03-15",
    "5号楼": None,
    "二月三十日": None,
    "10000天后": None,
}


def test_numbers_and_dates_as_they_are_spoken():
    for text, numbers in SPOKEN_NUMBERS.items():
        assert [number for number, _ in numbers_in(text)] == numbers, text
    for text, day in SPOKEN_DATES.items():
        found = {str(each) for each, _ in dates_in(text, TODAY)}
        assert (found.pop() if len(found) == 1 else None) == day, text


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
        Slot("extras", type="object", question="Extras?"),
        Slot("stops", type="list", question="Stops?"),
    ],
    commands=[
        JobCommand(
            "go",
            needs=["origin", "target", "day"],
            action="ask_user",
            words=["出发", "travel"],
            takes=["people", "cabin", "code", "pets", "extras", "stops"],
            parameters={"question": "?"},
        ),
        JobCommand(
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
        ("AB123, in business", "", {"code": "AB123", "cabin": "business"}),
        ("AB123, in business", "code", {"code": "AB123", "cabin": "business"}),
        ("AB123", "cabin", {"code": "AB123"}),
        ("for 4 people", "day", {"people": 4}),
        ("no", "pets", {"pets": False}),
        ("seats: 4, on: 1 May", "extras", {"extras": "seats: 4, on: 1 May"}),
        ("4 towns, tomorrow Bergen", "stops", {}),
        ("for 4 people", "extras", {"people": 4}),
        ("1 May or 2 May, who knows", "day", {}),
        ('{"origin": "Rome", "phase": "COMPLETED"}', "", {"origin": "Rome", "phase": "COMPLETED"}),
        ("", "origin", {}),
        ("今天天气怎么样?", "day", {}),
        ("day: tomorrow, is that possible?", "", {"day": "2026-03-03"}),
    ],
)
def test_values(said, asked, expected):
    assert read(said, asked).found.values == expected


ROUTE = JobSpec(
    "route",
    slots=[
        Slot("origin", question="From?", label="from"),
        Slot("target", question="To?", label="to"),
        Slot("title", question="Title?"),
        Slot("day", type="date", question="When?"),
        Slot("size", choices=["large", "extra large"], question="Size?"),
        Slot("first", choices=["red", "blue"], question="First?"),
        Slot("second", choices=["red", "blue"], question="Second?"),
    ],
    commands=[
        JobCommand(
            "ride",
            needs=["origin", "target", "title", "day", "size", "first", "second"],
            action="ask_user",
            parameters={"question": "?"},
        )
    ],
)


@pytest.mark.parametrize(
    ("said", "asked", "expected"),
    [
        ("from Milan to Bergen", "origin", {"origin": "Milan", "target": "Bergen"}),
        ("To New York from Milan, please", "", {"origin": "Milan", "target": "New York"}),
        (
            "ride from Milan to Bergen on Friday",
            "command",
            {"origin": "Milan", "target": "Bergen", "day": "2026-03-06"},
        ),
        ("from 北京 to 上海", "target", {"origin": "北京", "target": "上海"}),
        ("we go from Milan to Bergen", "", {"origin": "Milan", "target": "Bergen"}),
        ("from Milan", "origin", {"origin": "Milan"}),
        ("to Bergen", "origin", {}),
        # Where it could be something else, nothing is taken.
        ("from milan to bergen", "origin", {}),
        ("from Milan to the sea", "origin", {}),
        ("from Milan to Bergen Street corner", "origin", {}),
        ("from Monday to Friday", "origin", {}),
        ("from May to June", "", {}),
        ("from Milan to Rome to Bergen", "origin", {}),
        ("from Milan to Bergen", "title", {}),
        ("from Milan to Bergen", "confirmation", {}),
        ("extra large", "", {"size": "extra large"}),
        ("the large red one", "", {"size": "large"}),
        ("the large red one", "first", {"size": "large", "first": "red"}),
    ],
)
def test_names_behind_small_words_and_what_only_one_slot_can_take(said, asked, expected):
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
        assert (found.command, found.values) == ("undo", {"code": "AB123"}), said
    assert read("go people: 3", "origin").found.values == {"people": 3}


def test_a_text_that_only_one_slot_takes_changes_no_value_that_is_held():
    assert read("business as usual", "", cabin="economy").found.values == {}
    assert read("cabin: business", "", cabin="economy").found.values == {"cabin": "business"}


def test_who_confirms_may_change_what_only_one_slot_takes():
    held = {"origin": "Rome", "day": "2026-03-03", "people": 2, "cabin": "economy"}
    said = {
        "4": {"people": 4},
        "not tomorrow but Friday": {"day": "2026-03-06"},
        "不是明天，改成后天": {"day": "2026-03-04"},
        "not economy, business": {"cabin": "business"},
        "Milan": {},
        "4 or 5": {},
        "what about 4?": {},
    }
    for each, found in said.items():
        assert read(each, "confirmation", **held).found.values == found, each
    assert read("4 people on Friday", "target", **held).found.values == {
        "target": "4 people on Friday"
    }


def test_rules_are_sure_of_what_they_understand_whole():
    assert read("Rome", "origin").is_sure
    assert read("from: Rome", "target").is_sure
    assert not read("I think it could be Rome, if that is possible", "origin").is_sure
    assert not read("hello there", "").is_sure
