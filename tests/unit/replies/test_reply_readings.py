"""What a reply means, where the rules leave a choice."""

from datetime import UTC, datetime

import pytest

from replan.replies.readings import read_feedback, read_plan, read_think, says_complete, says_simple
from replan.replies.specialist_reading import read_specialist
from replan.replies.unreadable import Complaint
from replan.replies.vocabulary.labels import (
    action_of,
    complexity_of,
    flag_of,
    number_of,
    status_of,
    verdict_of,
)
from replan.replies.vocabulary.naming import Names
from replan.replies.written_plans.records import plan_text

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
PLAN = "- [ ] 1. Look @a"


def think(text: str, threshold: float = 0.5):
    reading = read_think(text, threshold=threshold)
    assert not isinstance(reading, Complaint)
    return reading


@pytest.mark.parametrize("label", ["moderate", "complex"])
def test_moderate_and_complex_both_mean_a_plan(label: str) -> None:
    assert think(f"---\ncomplexity: {label}\n---\n{PLAN}").body == PLAN


def test_a_label_goes_before_a_score() -> None:
    assert think("---\ncomplexity: simple\nscore: 0.9\n---\nHi.").complexity == "simple"


@pytest.mark.parametrize(("score", "complexity"), [("0.59", "simple"), ("0.6", "complex")])
def test_a_score_at_the_threshold_means_a_plan(score: str, complexity: str) -> None:
    assert think(f"---\nscore: {score}\n---\n{PLAN}", 0.6).complexity == complexity


def test_a_score_without_its_scale_decides_nothing() -> None:
    assert isinstance(read_think("---\nscore: 7\n---\nHi."), Complaint)


def test_a_complaint_names_the_key_and_shows_the_form() -> None:
    for text, what in (
        ("", "is empty"),
        ("Hi.", "does not begin with its front matter"),
        ("---\nreasoning: so\n---\nHi.", "`complexity` is missing"),
        ("---\ncomplexity: huge\n---\nHi.", "`complexity: huge` is not one of simple, moderate"),
    ):
        complaint = read_think(text)
        assert isinstance(complaint, Complaint)
        assert what in complaint.problem
        assert "---\ncomplexity: simple\nreasoning:" in complaint.problem


def test_the_form_that_a_complaint_shows_can_be_read() -> None:
    for read in (read_think, read_feedback):
        complaint = read("")
        assert isinstance(complaint, Complaint)
        form = complaint.problem.split("\n", 1)[1]
        assert "- [ ]" in form or "verdict" in form
        again = read(form)
        assert not isinstance(again, Complaint)


def test_a_json_list_is_a_plan_only_with_fields_of_steps_or_under_a_label() -> None:
    steps = '[{"id": 1, "description": "Look", "depends_on": []}]'
    products = '[{"id": 1, "name": "Lamp"}]'
    assert think(steps).body == "- [ ] 1. Look"
    assert isinstance(read_think(products), Complaint)
    assert think(f"---\ncomplexity: complex\n---\n{products}").body == "- [ ] 1. Lamp"


def test_an_answer_in_json_stays_as_it_is() -> None:
    assert think(f"---\ncomplexity: simple\n---\n{PLAN}").body == PLAN
    assert think('---\ncomplexity: simple\n---\n["a", "b"]').body == '["a", "b"]'


def test_a_contradiction_is_told() -> None:
    reading = think("---\ncomplexity: simple\nnext_action: create_plan\n---\nHi.")
    assert reading.contradiction == "complexity is simple, next_action is create_plan"


def test_a_front_matter_alone_says_whether_an_answer_follows() -> None:
    assert says_simple({"complexity": "easy"})
    assert says_simple({"score": "0.2"})
    assert not says_simple({"score": "0.2"}, 0.1)
    assert not says_simple({"complexity": "complex"})
    assert not says_simple({})
    assert says_complete({"verdict": "done"})
    assert not says_complete({"verdict": "continue"})
    assert not says_complete({"feedback": "done"})


def test_a_plan_reply_is_the_plan_without_what_stands_around_it() -> None:
    for text in (
        PLAN,
        f"<think>Hm.</think>\n```markdown\n{PLAN}\n```",
        f"---\ncomplexity: complex\n---\n{PLAN}",
        '{"plan": [{"description": "Look", "assigned_to": "a"}]}',
        '[{"description": "Look", "assigned_to": "a"}]',
    ):
        assert read_plan(text).text == PLAN
    assert read_plan("1. Look").text == "1. Look"


@pytest.mark.parametrize(
    "update", ["none", "None.", "(no changes)", "n/a", "-", "**nothing**", "无"]
)
def test_an_update_that_says_nothing_is_none(update: str) -> None:
    reading = read_feedback(f"---\nverdict: continue\nupdate: {update}\n---")
    assert not isinstance(reading, Complaint)
    assert reading.update == ""


def test_a_specialist_keeps_every_line_that_is_not_front_matter() -> None:
    for text in (
        "status: on track\n\nAll well.",
        "replan_needed: yes\n\nAll well.",
        "status: success story\nof the year",
        "- status: failed\n- retry: no",
        "---\nstatus: open\n---\nText",
        "---\nHello\n---\nText",
        "Text\n\n---\nstatus: failed\n---",
    ):
        reading = read_specialist(text)
        assert reading.body == text
        assert reading.status == "success"


@pytest.mark.parametrize(
    ("header", "rest", "status", "body"),
    [
        ("status: failed\nerror: no source", "", "failed", "no source"),
        ("status: failed\nerror: 'no source'", "I looked.", "failed", "no source\n\nI looked."),
        ("reason: too old\nstatus: partial", "Half.", "partial", "too old\n\nHalf."),
        ("status: failed\nerror: |\n  no source,\n  no key", "", "failed", "no source, no key"),
        ("status: failed\ncode: 7\nwhere: Bonn", "", "failed", "code: 7\nwhere: Bonn"),
        ("status: success\nreason: in the register", "5", "success", "in the register\n\n5"),
        ("confidence: 0.5\nnote: two sources", "5", "success", "two sources\n\n5"),
    ],
)
def test_names_of_a_specialists_own_are_read(header, rest, status, body) -> None:
    reading = read_specialist(f"---\n{header}\n---\n{rest}")
    assert (reading.status, reading.body) == (status, body)


@pytest.mark.parametrize("header", ["title: A report\nstatus: success", "status: failed\n# Report"])
def test_the_front_matter_of_a_document_stays_in_it(header) -> None:
    text = f"---\n{header}\n---\nIt is long."
    assert read_specialist(text).body == text


def test_a_specialist_may_close_bare_lines_with_a_delimiter() -> None:
    reading = read_specialist("confidence: 0.4\nstatus: partial\n---\nHalf of it.")
    assert (reading.status, reading.confidence, reading.body) == ("partial", 0.4, "Half of it.")


@pytest.mark.parametrize(
    ("value", "label"),
    [
        ("simple", "simple"),
        ("Simple.", "simple"),
        ("simple, not complex", "simple"),
        ("very simple", "simple"),
        ("simple -> direct_answer", "simple"),
        ("multi-step", "complex"),
        ("non-trivial", "complex"),
        ("medium complexity", "moderate"),
        ("[complex]", "complex"),
        ("复杂\uff0c需要两步", "complex"),
        ("simple/complex", None),
        ("simple or moderate", None),
        ("not complex", None),
        ("complexes", None),
        ("simply the best", None),
        ("", None),
    ],
)
def test_a_complexity_label_is_read_or_it_is_none(value: str, label: str | None) -> None:
    assert complexity_of(value) == label


@pytest.mark.parametrize(
    ("value", "verdict"),
    [
        ("complete", "complete"),
        ("COMPLETED!", "complete"),
        ("not complete", "continue"),
        ("not yet done", "continue"),
        ("nicht fertig", "continue"),
        ("in_progress", "continue"),
        ("not continue", None),
        ("complete | continue", None),
        ("complete step 3", None),
        ("perhaps", None),
    ],
)
def test_a_verdict_is_read_or_it_is_none(value: str, verdict: str | None) -> None:
    assert verdict_of(value) == verdict


@pytest.mark.parametrize(
    ("value", "number"),
    [
        ("0.8", 0.8),
        ("1", 1.0),
        ("0,8", 0.8),
        (".5", 0.5),
        ("80%", 0.8),
        ("80 %", 0.8),
        ("8/10", 0.8),
        ("4 out of 5", 0.8),
        ("~0.8 (high)", 0.8),
        ("**0.8**", 0.8),
        ("0.0 to 1.0", None),
        ("0-1", None),
        ("7", None),
        ("3/0", None),
        ("-0.5", None),
        ("1e9", None),
        ("nan", None),
        ("high", None),
        ("9" * 5000, None),
    ],
)
def test_a_number_is_from_nought_to_one_or_it_is_none(value: str, number: float | None) -> None:
    assert number_of(value) == number


def test_other_labels_are_read_in_other_words() -> None:
    assert action_of("Create Plan") == "create_plan"
    assert action_of("ActionType.DIRECT_ANSWER") is None
    assert status_of("error: no network") == "failed"
    assert flag_of("Yes.") is True
    assert flag_of("nein") is False
    assert flag_of("perhaps") is None


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ([], None),
        ("text", None),
        ([1, None, {}], None),
        (["- [x] 3. Done already", "4) Next"], "- [ ] 3. Done already\n- [ ] 4. Next"),
        (
            {"1": "One", "step 2": {"task": "Two", "after": [1]}},
            "- [ ] 1. One\n- [ ] 2. Two (after 1)",
        ),
        ([{"id": 5, "task": "A"}, {"id": 5, "task": "B"}], "- [ ] 1. A\n- [ ] 2. B"),
        ([{"task": "A"}, {"task": "B", "after": [0]}], "- [ ] 1. A\n- [ ] 2. B (after 1)"),
        ([{"task": "A"}, {"task": "B", "after": "step 1"}], "- [ ] 1. A\n- [ ] 2. B (after 1)"),
        ([{"task": "A\nB", "agent": ["x", "y z"]}], "- [ ] 1. A B @x @y_z"),
        ({"goal": "G", "tasks": ["A"]}, "# G\n\n- [ ] 1. A"),
        ([{"step": 2, "name": "A", "status": "failed"}], "- [!] 2. A"),
        ([{"step": "A", "details": "B\n\nC"}], "- [ ] 1. A\n\n  B\n\n  C\n"),
    ],
)
def test_steps_in_json_become_a_task_list(value: object, text: str | None) -> None:
    assert plan_text(value, Names()) == text
