"""Replies as they were recorded, and the deviations of small models: read as meant, or asked."""

import importlib
import json
import re
import sys
from collections import Counter
from pathlib import Path

import pytest

from replan.plan import PlanDocument
from replan.prompts.replies.readings import read_feedback, read_think

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"
RECORDED = [
    json.loads(line)
    for line in (Path(__file__).parent / "corpus/host_replies.jsonl").read_text("utf-8").split("\n")
    if line
]


@pytest.fixture(scope="module")
def replies():
    """The benchmark of replies."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(BENCHMARKS)
        return importlib.import_module("replies")


@pytest.fixture(scope="module")
def graded(replies):
    """How each reply of the families is read, by the name of its family."""
    forms, reading = sys.modules["reply_forms"], sys.modules["reply_reading"]
    grades = {name: Counter() for name in forms.FAMILIES}
    for name, meant, text in forms.replies():
        grades[name][reading.grade(meant, reading.read(meant, text))] += 1
    return grades


@pytest.mark.parametrize("recorded", RECORDED, ids=[f"{r['task']}-{r['node']}" for r in RECORDED])
def test_what_a_strong_model_replied_is_read_at_once(recorded):
    is_thought = recorded["node"] == "think"
    reading = (read_think if is_thought else read_feedback)(recorded["reply"])
    _, head, body = recorded["reply"].split("---\n", 2)

    assert not reading.wrong
    label = reading.complexity if is_thought else reading.verdict
    assert f": {label}\n" in head.split("\n", 1)[0] + "\n"
    assert reading.body == body.strip()
    if "create_plan" in head:
        plan = PlanDocument.parse(reading.body).plan
        lines = [line for line in body.split("\n") if line.startswith("- [ ]")]
        assert [step.assigned_to for step in plan.steps] == re.findall("@(\\w+)", "".join(lines))
        assert sum("(after" in line for line in lines) == sum(bool(s.awaits) for s in plan.steps)


def test_there_are_many_families_in_two_languages(graded):
    assert len(graded) >= 15
    assert {name for name, grades in graded.items() if grades.total() < 20} == set()


def test_no_deviation_is_read_wrong(graded):
    assert {name: grades for name, grades in graded.items() if grades["wrong"]} == {}


def test_few_deviations_are_asked_about(graded):
    asked = sum(grades["asked"] for grades in graded.values())
    assert asked <= 0.3 * sum(grades.total() for grades in graded.values())


@pytest.mark.parametrize("mutation", ["kept", "damaged"])
def test_a_mutation_is_read_as_its_reply_or_asked_about(replies, mutation):
    """A sample; `benchmarks/replies.py --long` has 100,000 of each."""
    drawn = (replies.outcome(getattr(replies, mutation), 1, number) for number in range(1_000))
    assert [text for grade, _, text in drawn if grade == "wrong"] == []
