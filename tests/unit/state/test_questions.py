"""Questions as values: what answers and decisions are read from, and what waits for them."""

from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from hypothesis import given, strategies as st
from pydantic import JsonValue, TypeAdapter

from replan import Decision, InputError, PlanStep, Question, TaskPlan, waiting_for
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
YES = {"action": "approve"}


@pytest.mark.parametrize(
    ("given", "asked", "shown", "answers"),
    [
        # A question takes an answer by its key, the beginning of it, or none where it is alone.
        ("x = y", [SIZE], None, {"1/a/1": "x = y"}),
        ("1/a/1=x", [SIZE], None, {"1/a/1": "x"}),
        ("1=x=y", [SIZE, CALL], None, {"1/a/1": "x=y"}),
        ('{"1": "x"}', [SIZE], None, {"1/a/1": "x"}),
        ({"size": 1, "colour": "red"}, [SIZE], None, {"1/a/1": {"size": 1, "colour": "red"}}),
        ('{"size": 1}', [SIZE], None, {"1/a/1": '{"size": 1}'}),
        ({"answer": "x", "fingerprint": "f1"}, [SIZE], None, {"1/a/1": "x"}),
        ({"answer": "x", "fingerprint": "f1"}, [SIZE, CALL], None, {"1/a/1": "x"}),
        ({"1/a/1": {"3/c/9": "x"}}, [SIZE], None, {"1/a/1": {"3/c/9": "x"}}),
        # A decision needs the whole key, a fingerprint, or a door that knows what it showed.
        ({"2/b/1": "yes"}, [CALL], None, {"2/b/1": YES}),
        ("2/b/1=yes", [SIZE, CALL], None, {"2/b/1": YES}),
        ({"2": {**YES, "fingerprint": "f2"}}, [SIZE, CALL], None, {"2/b/1": YES}),
        ({**YES, "fingerprint": "f2"}, [SIZE, CALL], None, {"2/b/1": YES}),
        ("yes", [CALL], {"2/b/1": "f2"}, {"2/b/1": YES}),
        ({"2": "no"}, [CALL, SIZE], {"2/b/1": "f2"}, {"2/b/1": {"action": "reject"}}),
        (
            {"to": "me"},
            [question("2/b/1", kind="question", fingerprint="f2")],
            {"2/b/1": "f2"},
            {"2/b/1": {"to": "me"}},
        ),
        (
            '{"to": "me"}',
            [CALL],
            {"2/b/1": "f2"},
            {"2/b/1": {"action": "edit", "arguments": {"to": "me"}}},
        ),
        ({"3/c/1": "run again"}, [DOUBT], None, {"3/c/1": "run again"}),
        (
            {"plan/2/3": "reject: dull"},
            [PLAN_ASKED],
            None,
            {"plan/2/3": {**YES, "action": "reject", "reason": "dull"}},
        ),
        ({"plan": {**YES, "fingerprint": "f4"}}, [PLAN_ASKED], None, {"plan/2/3": YES}),
        (
            {"action": "edit", "plan": "- [ ] 1. Two @a\n"},
            [PLAN_ASKED],
            {"plan/2/3": "f4"},
            {"plan/2/3": {"action": "edit", "plan": "- [ ] 1. Two @a\n"}},
        ),
    ],
)
def test_an_answer_lands_on_the_question_that_was_shown(given, asked, shown, answers):
    assert read_answers(given, asked, shown=shown) == answers


@pytest.mark.parametrize(
    ("given", "asked", "shown", "problem"),
    [
        ("x", [], None, "no open question"),
        # A key that is not open, or was answered before.
        ({"7/q/1": "10"}, [SIZE], None, "No open question has the key '7/q/1'.*open: '1/a/1'"),
        ({"1/a/2": "10"}, [SIZE], None, "No open question has the key"),
        ({"7": "10"}, [SIZE], None, "No open question has the key '7'"),
        ({"plan": "approve"}, [SIZE], None, "No open question has the key 'plan'"),
        ({"0123456789abcdef": "x"}, [SIZE], None, "No open question has the key"),
        ({"1/a/1": "x", "note": "y"}, [SIZE], None, "No open question has the key 'note'"),
        ("3/seats/1=7", [SIZE], None, "No open question has the key '3/seats/1'"),
        ("3/house/1/painter/2=7", [SIZE], None, "No open question has the key"),
        ('{"3/seats/1": 7}', [SIZE], None, "No open question has the key"),
        # Several questions.
        ("x", [SIZE, CALL], None, "not clear which question"),
        ({"answer": "x", "fingerprint": "f9"}, [SIZE, CALL], None, "not clear which question"),
        # A decision about what is not named.
        ("yes", [CALL], None, "whole key.*'2/b/1'"),
        (True, [PLAN_ASKED], None, "whole key.*'plan/2/3'"),
        ({"2": "yes"}, [CALL], None, "whole key"),
        ({"plan": "approve"}, [PLAN_ASKED], None, "whole key"),
        (YES, [CALL], None, "whole key"),
        ("run again", [DOUBT], None, "whole key"),
        # What was not shown.
        ("yes", [CALL], {}, "does not answer what is asked now.*'2/b/1'"),
        ("yes", [CALL], {"2/b/1": "f1"}, "does not answer what is asked now"),
        ({"2/b/1": "yes"}, [CALL], {"1/a/1": "f1"}, "does not answer what is asked now"),
        ("x", [SIZE], {}, "does not answer what is asked now"),
        ({"2/b/1": {**YES, "fingerprint": "f1"}}, [CALL], None, "does not answer what is"),
        ({"answer": "x", "fingerprint": "f9"}, [SIZE], None, "does not answer what is asked now"),
        # No answer to this.
        ({"2/b/1": "perhaps"}, [CALL], None, "not a decision"),
        ({"2/b/1": '{"to": '}, [CALL], None, "not arguments"),
        ({"2/b/1": {"action": "edit"}}, [CALL], None, "no changed arguments"),
        ({"3/c/1": "hm"}, [DOUBT], None, "cannot be read.*run again"),
        ({"1/a/1": " "}, [SIZE], None, "is empty"),
    ],
)
def test_what_was_not_shown_takes_no_answer(given, asked, shown, problem):
    with pytest.raises(InputError, match=f"(?s){problem}"):
        read_answers(given, asked, shown=shown)


def plan(*steps):
    return TaskPlan(steps=tuple(PlanStep(**{"description": "Do it", **step}) for step in steps))


def test_what_waits_is_read_from_interrupts_in_every_form():
    payload = {"questions": [each.model_dump(mode="json") for each in ASKED], "problem": ""}
    interrupt = SimpleNamespace(value=payload, id="f00")
    assert waiting_for({"__interrupt__": [interrupt]}) == ASKED
    assert waiting_for([{"value": payload, "id": "f00"}]) == ASKED
    assert waiting_for([{"value": interrupt_about([PLAN_ASKED]), "id": "f00"}]) == (PLAN_ASKED,)
    assert waiting_for({"outcome": "completed"}) == ()
    (foreign,) = waiting_for([{"value": {"questions": 7}, "id": "f00"}])
    assert (foreign.key, foreign.text) == ("f00", "{'questions': 7}")
