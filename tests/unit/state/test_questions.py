"""Questions as values: what answers and decisions are read from, and what waits for them."""

from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from hypothesis import given, strategies as st
from pydantic import JsonValue, TypeAdapter

from replan import Approval, Decision, InputError, PlanStep, Question, TaskPlan, waiting_for
from replan.state.channels import CheckedDelta, merged
from replan.state.enhanced import EnhancedState
from replan.state.person.answers import given_answers, read_answers, read_decision
from replan.state.person.waiting import resumption
from replan.state.questions import question_key, questions_of, still_asked
from replan.state.rules import open_questions, waiting_steps

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
KINDS = st.sampled_from(["question", "approval", "in doubt"])


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


def test_the_beginning_of_a_key_will_do_where_one_question_has_it():
    asked = [question(key) for key in ("1/a/1", "2/a/1", "2/b/1", "12/a/1")]
    assert read_answers({"1": "x", "12": "y", "2/b": "z"}, asked) == {
        "1/a/1": "x",
        "12/a/1": "y",
        "2/b/1": "z",
    }
    for unclear in ({"2": "x"}, {"1": "x", "1/a/1": "y"}):
        with pytest.raises(InputError, match="not clear which question each answer is for"):
            read_answers(unclear, asked)
    with pytest.raises(InputError, match="No open question has the key '2/'"):
        read_answers({"2/": "x"}, asked)


def test_the_only_question_of_another_kind_may_be_answered_with_a_mapping():
    (asked,) = [question("1/a/1", kind="approval")]
    edit = {"action": "edit", "arguments": {"to": "x"}}
    assert read_answers(edit, [asked]) == {"1/a/1": edit}
    assert read_answers({"1/a/1": edit}, [asked]) == {"1/a/1": edit}
    assert read_answers("yes", [asked]) == {"1/a/1": {"action": "approve"}}


def test_changed_arguments_of_a_tool_must_be_given():
    call = question("1/a/1", kind="approval")
    with pytest.raises(InputError, match="no changed arguments"):
        read_answers({"1/a/1": {"action": "edit"}}, [call])
    given = {"action": "edit", "arguments": {}}
    assert read_answers(given, [call]) == {"1/a/1": given}


def test_answers_that_come_before_their_questions_wait_at_their_keys():
    made = given_answers({"2/b/1": "x"}, NOON)
    assert made["2/b/1"].answer == "x"
    assert not made["2/b/1"].is_open
    assert questions_of(made, 2, "b") == (made["2/b/1"],)
    for key in ("b/1", "0/b/1", "2//1", "2/b/0", "2/b/1/1", "x"):
        with pytest.raises(InputError, match="the key of a question"):
            given_answers({key: "x"}, NOON)


def test_the_questions_of_a_step_come_in_the_order_of_their_numbers():
    keys = [question_key(3, "a", number) for number in (10, 2, 1)]
    asked = {key: question(key) for key in [*keys, "3/b/1", "4/a/1"]}
    assert [each.ordinal for each in questions_of(asked, 3, "a")] == [1, 2, 10]


def plan(*steps):
    return TaskPlan(steps=tuple(PlanStep(**{"description": "Do it", **step}) for step in steps))


def test_steps_that_need_a_waiting_step_wait_too_and_no_others():
    state = {
        "current_plan": plan(
            {"id": 4, "dependencies": (3,)},
            {"id": 1},
            {"id": 2, "status": "completed"},
            {"id": 3, "condition": {"step": 1, "outcome": "failed"}},
            {"id": 5, "dependencies": (2,)},
            {"id": 6, "dependencies": (1,), "status": "skipped"},
        ),
        "questions": {key: question(key) for key in ("1/a/1", "2/a/1", "9/a/1")},
    }
    assert [each.key for each in open_questions(state)] == ["1/a/1"]
    assert waiting_steps(state) == {1, 3, 4}
    answered = question("1/a/1").answered("x", NOON)
    assert waiting_steps(state | {"questions": {"1/a/1": answered}}) == frozenset()
    assert open_questions({}) == ()
    assert open_questions({"questions": {"1/a/1": question("1/a/1")}}) == ()


def test_a_revision_keeps_answers_and_the_questions_of_steps_that_stay_as_they_were():
    before = plan({"id": 1}, {"id": 2}, {"id": 3})
    after = plan({"id": 1, "priority": 9}, {"id": 2, "brief": "Otherwise"})
    answered = question("3/a/2").answered("x", NOON)
    asked = {key: question(key) for key in ("1/a/1", "2/a/1", "3/a/1")} | {"3/a/2": answered}
    assert sorted(still_asked(asked, before, after)) == ["1/a/1", "3/a/2"]


def test_what_waits_is_read_from_interrupts_in_every_form():
    payload = {"questions": [each.model_dump(mode="json") for each in ASKED], "problem": ""}
    interrupt = SimpleNamespace(value=payload, id="f00")
    assert waiting_for({"__interrupt__": [interrupt]}) == ASKED
    assert waiting_for([{"value": payload, "id": "f00"}]) == ASKED
    approval = Approval(approve="- [ ] 1. One\n", reason="Why")
    assert waiting_for([{"value": approval.model_dump(mode="json"), "id": "f00"}]) == approval
    assert waiting_for({"outcome": "completed"}) == ()
    (foreign,) = waiting_for([{"value": {"approve": 7}, "id": "f00"}])
    assert (foreign.key, foreign.text) == ("f00", "{'approve': 7}")


ASKS = SimpleNamespace(
    id="i1", value={"questions": [ASKED[0].model_dump(mode="json")], "problem": ""}
)
FOREIGN = SimpleNamespace(id="i2", value="Which?")
PLAN = SimpleNamespace(id="i3", value=Approval(approve="- [ ] 1. One @a").model_dump(mode="json"))


@pytest.mark.parametrize(
    ("given", "interrupts", "values"),
    [
        (None, [ASKS], {"i1": None}),
        ({}, [ASKS], {"i1": {}}),
        ({"1/a/1": "x"}, [ASKS], {"i1": {"1/a/1": "x"}}),
        ({"i1": "x"}, [ASKS], {"i1": "x"}),
        ({"1/a/1": "x", "i2": "y"}, [ASKS, FOREIGN], {"i1": {"1/a/1": "x"}, "i2": "y"}),
        ({"1": "x", "i2": "y"}, [ASKS, FOREIGN], {"i1": {"1/a/1": "x"}, "i2": "y"}),
        ({"i1": "x", "i2": "y"}, [ASKS, FOREIGN], {"i1": "x", "i2": "y"}),
        ({"i3": "approve"}, [ASKS, PLAN], {"i3": "approve"}),
    ],
)
def test_an_answer_goes_to_the_interrupt_that_asks(given, interrupts, values):
    assert resumption(given, interrupts) == values


@pytest.mark.parametrize(
    "given",
    ["x", None, {}, {"9/a/1": "x"}, {1: 2}, {"1": "x", "1/a/1": "y"}, {"1/a/1": "x", "z": 1}],
)
def test_an_answer_that_may_be_for_several_interrupts_is_refused(given):
    with pytest.raises(InputError, match=r"open: '1/a/1', 'i2', 'i3'\."):
        resumption(given, [ASKS, FOREIGN, PLAN])


def test_questions_come_back_from_a_checkpoint_that_has_plain_dicts():
    channel = CheckedDelta(merged, dict[str, Question])
    channel.key = "questions"
    dumped = {each.key: each.model_dump(mode="json") for each in ASKED}
    restored = channel.from_checkpoint(dumped)
    assert restored.get() == {each.key: each for each in ASKED}
    assert "questions" in EnhancedState.__annotations__
