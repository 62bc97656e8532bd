"""What a reply means, and what is asked where it does not say so."""

import pytest

from replan.replies.keys import COMPLEXITY, STATUS, VERDICT, Key
from replan.replies.readings import (
    read_answer,
    read_feedback,
    read_specialist,
    read_think,
    says_complete,
    says_simple,
)

TEAM = ("researcher", "coder", "writer")
PLAN = "- [ ] 1. Find A @researcher\n- [ ] 2. Find B @coder (after 1)"
CONTINUE = "---\nverdict: continue\n"


def think(text, *, threshold=0.5):
    reading = read_think(text, TEAM, threshold)
    assert not reading.wrong, reading
    return reading


def asked(reading):
    assert reading.wrong, reading
    return reading


@pytest.mark.parametrize(
    ("head", "body", "complexity", "next_action"),
    [
        ("complexity: simple\nscore: 0.9", "Hi.", "simple", "direct_answer"),
        ("complexity: complex", PLAN, "complex", "create_plan"),
        ("score: 0.9", "Hi.", "complex", "create_plan"),
        ("score: 0.2", "Hi.", "simple", "direct_answer"),
        ("complexity: simple", '["a", "b"]', "simple", "direct_answer"),
        ("complexity: simple", "- [ ] Milk\n- [ ] Bread", "simple", "direct_answer"),
        ("complexity: simple", "Ask @coder.\n\n1. Lima\n2. Cusco", "simple", "direct_answer"),
    ],
)
def test_the_label_decides_and_without_one_a_score(head, body, complexity, next_action):
    reading = think(f"---\n{head}\n---\n{body}")
    assert (reading.complexity, reading.next_action) == (complexity, next_action)
    assert (reading.body, reading.contradiction, reading.odd) == (body, "", "")


def test_a_team_may_have_another_threshold():
    assert think("---\nscore: 0.4\n---\nHi.", threshold=0.3).complexity == "complex"


ANSWERED = "the text of the reply is the answer"
TAKEN = "the text of the reply is taken for a plan"


@pytest.mark.parametrize(
    ("head", "body", "complexity", "done"),
    [
        ("", "Lima.", "simple", ANSWERED),
        ("", PLAN, "moderate", TAKEN),
        ("score: 0.2", PLAN, "moderate", TAKEN),
        ("complexity: simple", PLAN, "moderate", "the plan is taken"),
        ("complexity: simple", "1. @coder adds it\n2. @writer tells it", "simple", ANSWERED),
        ("complexity: simple", "- [ ] Ask @coder\n- [ ] Let @writer go", "simple", ANSWERED),
        ("complexity: simple", "- [ ] 1. Add\n- [ ] 2. Tell (after 1)", "simple", ANSWERED),
    ],
)
def test_what_may_be_an_answer_or_a_plan_is_asked_about_and_else_taken(
    head, body, complexity, done
):
    complaint = asked(read_think(f"---\n{head}\n---\n{body}" if head else body, TEAM))
    assert (complaint.complexity, complaint.body) == (complexity, body)
    assert complaint.done == done


def test_a_contradiction_and_lines_that_nobody_reads_are_told():
    reading = think("---\ncomplexity: simple\nnext_action: create_plan\nmood: good\n---\nHi.")
    assert reading.contradiction == "complexity is simple, next_action is create_plan"
    assert "`mood: good`" in reading.odd


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("", "The reply is empty, so it has no `complexity`."),
        ("Hm.", "does not begin with its front matter, so it has no `complexity`"),
        ("---\nreasoning: x\n---\nHm.", "has `reasoning`, but no `complexity`"),
        ("---\ncomplexity: huge\n---\nHm.", "`complexity: huge` is not one of simple, moderate,"),
        ("---\ncomplexity: simple\nanswer: 1\n---\n", "`answer` is a line of the front matter"),
    ],
)
def test_a_complaint_says_what_was_read_what_is_missing_and_shows_an_example(text, wrong):
    complaint = asked(read_think(text, TEAM))
    assert wrong in complaint.complaint
    assert "---\ncomplexity: simple\n" in complaint.complaint


def test_the_form_that_a_complaint_shows_can_be_read():
    for read in (read_think, read_feedback):
        form = asked(read("")).complaint.split("\n", 1)[1]
        assert not read(form).wrong


@pytest.mark.parametrize(
    "label", ["simple, moderate or complex", "simple | complex", "simple/complex"]
)
def test_an_echo_of_the_labels_is_no_label_and_its_text_no_answer(label):
    complaint = asked(read_think(f"---\ncomplexity: {label}\n---\nYou host a team.", TEAM))
    assert not complaint.counts


@pytest.mark.parametrize("mark", "x ")
def test_a_plan_for_the_team_is_no_final_answer(mark):
    plan = f"- [x] 1. Get it @{TEAM[0]}\n- [{mark}] 2. Write it up @{TEAM[0]} (after 1)\n"
    text = f"---\nverdict: complete\n---\n{plan}"
    complaint = asked(read_feedback(text, TEAM))
    assert (complaint.verdict, complaint.body) == ("complete", "")
    assert complaint.done == "another call writes the answer"
    assert read_feedback(text).body == plan.strip()


def test_a_front_matter_alone_says_whether_an_answer_follows():
    assert says_simple({"complexity": "simple"})
    assert says_simple({"score": "0.2"})
    assert not says_simple({"score": "0.2"}, 0.1)
    assert not says_simple({"complexity": "complex"})
    assert not says_simple({})
    assert says_complete({"verdict": "complete"})
    assert not says_complete({"verdict": "continue"})
    assert not says_complete({"feedback": "done"})


def test_a_reply_that_is_a_plan_is_the_plan_without_what_stands_around_it():
    for text in (
        PLAN,
        f"<think>Hm.</think>\n```markdown\n{PLAN}\n```",
        f"---\ncomplexity: complex\n---\n{PLAN}",
    ):
        assert read_answer(text).body == PLAN


def test_a_judgement_without_a_verdict_has_no_reading_for_its_text_may_be_talk():
    complaint = asked(read_feedback("All is well."))
    assert not complaint.counts
    assert "`verdict`" in complaint.wrong


@pytest.mark.parametrize("body", ["", "(no changes)", "None."])
def test_a_judgement_without_a_plan_goes_on_as_it_is(body):
    reading = read_feedback(f"{CONTINUE}---\n{body}")
    assert (reading.verdict, reading.body, reading.update) == ("continue", "", "")


@pytest.mark.parametrize(
    "update", ["none", "None.", "(no changes)", "n/a", "-", "**nothing**", "无"]
)
def test_an_update_that_says_nothing_is_none(update):
    assert read_feedback(f"{CONTINUE}update: {update}\n---").update == ""


@pytest.mark.parametrize(
    "text",
    [
        f"{CONTINUE}update: another source\n---\n",
        f"{CONTINUE}suggested_action: update_plan\n---\n",
        f"{CONTINUE}---\nPlease retry step 2 with another source.",
        f"{CONTINUE}---\nStep 2 is no longer needed.",
    ],
)
def test_a_change_that_is_only_spoken_of_is_asked_for_as_a_plan(text):
    complaint = asked(read_feedback(text))
    assert complaint.wrong == "The reply asks for a change of the plan, but it holds no plan."
    assert complaint.body == ""
    assert not read_feedback(text, holds_plan=False).wrong


def test_a_suggestion_in_prose_goes_to_a_planner_of_its_own():
    reading = read_feedback(f"{CONTINUE}---\nRetry step 2.", holds_plan=False)
    assert reading.update == "Retry step 2."


@pytest.mark.parametrize(
    ("text", "status", "shown"),
    [
        ("---\ntitle: A report\nstatus: success\n---\nIt is long.", "success", "title: A report"),
        ("---\nstatus: failed\ncode: 7\n---\nIt is long.", "failed", "code: 7"),
        ("---\nconfidence: 0.4\n语气: 好\n---\nIt is long.", "success", "语气: 好"),
    ],
)
def test_an_unknown_key_of_a_front_matter_is_reported_and_not_shown_as_text(text, status, shown):
    reading = read_specialist(text)
    assert (reading.status, reading.body) == (status, "It is long.")
    assert f"`{shown}`" in reading.odd


@pytest.mark.parametrize(
    "text",
    [
        "Here is my report:\n\n---\nstatus: failed\nconfidence: 0.2\n---\nNo data.",
        "Here it is:\n```yaml\nstatus: failed\n```\nNo data.",
        "---\nstatus: failed\n# Report\n---\nIt is long.",
    ],
)
def test_a_failure_that_is_not_said_as_it_should_be_is_no_success(text):
    assert read_specialist(text).wrong


@pytest.mark.parametrize(
    ("key", "written", "value"),
    [
        *((COMPLEXITY, "Simple.", "simple"), (COMPLEXITY, "`complex`", "complex")),
        *((COMPLEXITY, "复杂", "complex"), (COMPLEXITY, "simple, not complex", None)),
        *((COMPLEXITY, "", None), (COMPLEXITY, "simply", None)),
        *((VERDICT, "COMPLETED!", "complete"), (VERDICT, "done", "complete")),
        *((VERDICT, "not complete", None), (VERDICT, "complete | continue", None)),
        *((STATUS, "**Failed**", "failed"), (STATUS, "on track", None)),
        *((Key("n", "number"), "0.8", "0.8"), (Key("n", "number"), "80%", "0.8")),
        *((Key("n", "number"), "7", None), (Key("n", "number"), "nan", None)),
        *((Key("n", "number"), "0.0 to 1.0", None), (Key("n", "number"), "9" * 5000, None)),
        *((Key("f", "flag"), "Yes.", "yes"), (Key("f", "flag"), "perhaps", None)),
    ],
)
def test_a_value_is_one_of_its_key_or_none(key, written, value):
    assert key.value_of(written) == value
