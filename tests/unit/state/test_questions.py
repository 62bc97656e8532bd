"""Questions as values: what answers and decisions are read from, and what waits for them."""

from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, strategies as st
from pydantic import JsonValue, TypeAdapter

from cases import read_page
from replan import Decision, InputError, Question, waiting_for
from replan.state.person.answers import read_answers, read_decision
from replan.state.person.reviews import interrupt_about

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
KEYS = ("1/a/1", "2/b/1", "2/b/2")

# NUL and halves of characters are refused: `test_values_that_no_store_keeps.py`.
WORDS = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1
).filter(str.strip)


def question(key, **fields):
    step, specialist, _ = key.split("/")
    return Question(key=key, step_id=int(step), specialist=specialist, **{"text": "?", **fields})


ASKED = tuple(question(key) for key in KEYS)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from([*KEYS, "action", "reason"]) | st.text(), inner, max_size=3
        )
    ),
    max_leaves=6,
)
ODD = (
    st.binary() | st.sets(st.integers()) | st.just(object()) | st.dictionaries(st.integers(), PLAIN)
)
ACTIONS = st.sampled_from(["approve", "Reject", "edit", "yes", "burn", ""])
DECISIONS = st.fixed_dictionaries(
    {"action": ACTIONS}, optional={"reason": PLAIN, "plan": PLAIN, "arguments": PLAIN}
)
KINDS = st.sampled_from(["question", "approval", "unknown_outcome"])


def read_or_problem(read, *given):
    try:
        return read(*given)
    except InputError as error:
        return str(error)


@given(PLAIN | ODD | DECISIONS, st.lists(KINDS, min_size=1, max_size=3))
def test_whatever_a_run_is_resumed_with_is_answers_or_a_problem_that_says_how(value, kinds):
    asked = [question(key, kind=kind) for key, kind in zip(KEYS, kinds, strict=False)]
    answers = read_or_problem(read_answers, value, asked)
    if isinstance(answers, str):
        assert answers
        return
    assert answers
    assert answers.keys() <= {each.key for each in asked}
    for key, answer in answers.items():
        TypeAdapter(JsonValue).validate_python(answer)
        assert answer is not None
        assert not question(key).answered(answer, NOON).is_open
        if next(each for each in asked if each.key == key).kind == "approval":
            assert read_decision(answer).model_dump(exclude_defaults=True) == answer


@given(st.dictionaries(st.sampled_from(KEYS), WORDS, min_size=1))
def test_a_mapping_of_open_keys_is_taken_as_it_is(answers):
    assert read_answers(answers, ASKED) == answers


@given(PLAIN | ODD | DECISIONS)
def test_whatever_is_said_of_a_plan_is_a_decision_or_a_problem_that_says_how(value):
    decision = read_or_problem(read_decision, value)
    if isinstance(decision, str):
        assert "Answer 'approve'" in decision
        return
    assert read_decision(decision) is decision
    assert read_decision(decision.model_dump(mode="json", exclude_defaults=True)) == decision


@pytest.mark.parametrize(
    ("said", "decision"),
    [
        ("OK", Decision(action="approve")),
        (" approved! ", Decision(action="approve")),
        (False, Decision(action="reject")),
        ("n", Decision(action="reject")),
        ("Reject: too long,\nand dull", Decision(action="reject", reason="too long,\nand dull")),
        ({"action": "Decline", "reason": "no"}, Decision(action="reject", reason="no")),
        ("- [ ] 1. One @a\n", Decision(action="edit", plan="- [ ] 1. One @a\n")),
        (
            {"action": "edit", "arguments": {"to": "x"}},
            Decision(action="edit", arguments={"to": "x"}),
        ),
    ],
)
def test_decisions_are_read_in_the_forms_in_which_people_give_them(said, decision):
    assert read_decision(said) == decision


CALL = question("2/b/1", kind="approval", fingerprint="f2")
DOUBT = question("3/c/1", kind="unknown_outcome", fingerprint="f3")
PLAN_ASKED = Question(
    key="plan/2/3", kind="plan", text="- [ ] 1. One @a", details={"reason": ""}, fingerprint="f4"
)
SIZE = question("1/a/1", fingerprint="f1")


QUESTIONS = {
    "size": SIZE,
    "form": question("2/b/1", fingerprint="f2"),
    "call": CALL,
    "doubt": DOUBT,
    "plan": PLAN_ASKED,
}
PAGE = read_page(Path(__file__).with_name("questions.yaml"))


def answers_to(case):
    asked = [QUESTIONS[name] for name in case["asked"]]
    return read_answers(case["given"], asked, shown=case.get("shown"))


@pytest.mark.parametrize("case", PAGE["answers"], ids=str)
def test_an_answer_lands_on_the_question_that_was_shown(case):
    assert answers_to(case) == case["answers"]


@pytest.mark.parametrize("case", PAGE["problems"], ids=str)
def test_what_was_not_shown_takes_no_answer(case):
    with pytest.raises(InputError, match=f"(?s){case['problem']}"):
        answers_to(case)


def test_what_waits_is_read_from_interrupts_in_every_form():
    payload = {"questions": [each.model_dump(mode="json") for each in ASKED], "problem": ""}
    interrupt = SimpleNamespace(value=payload, id="f00")
    assert waiting_for({"__interrupt__": [interrupt]}) == ASKED
    assert waiting_for([{"value": payload, "id": "f00"}]) == ASKED
    assert waiting_for([{"value": interrupt_about([PLAN_ASKED]), "id": "f00"}]) == (PLAN_ASKED,)
    assert waiting_for({"outcome": "completed"}) == ()
    (foreign,) = waiting_for([{"value": {"questions": 7}, "id": "f00"}])
    assert (foreign.key, foreign.text) == ("f00", "{'questions': 7}")
