"""By what a step's work is known: what changes each key, and what must not."""

from datetime import UTC, datetime

import pytest
from hypothesis import given, strategies as st

from replan import PlanStep
from replan.state.generations import Generation
from replan.steps.on_record import keys_of

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
STEP = PlanStep(
    id=2,
    description="Compare",
    brief="Mind 税.",
    parameters={"b": [1], "a": None},
    dependencies=(1,),
)
INPUTS = {1: "One 税.", 3: "Three."}
KEYS = keys_of("run", STEP, "a", INPUTS)


def test_the_keys_of_a_step_are_the_same_in_every_process():
    assert (KEYS.result, KEYS.attempt, KEYS.idempotency) == (
        "33a51a4dcd5d0c7b37b31e1f609d5e8a",
        "b84dceba35ff33fc4e6be99d0cf97d60",
        "91ae6c583e8240db55d8b411403daf13",
    )


@pytest.mark.parametrize(
    "change",
    [
        {"status": "failed"},
        {"result": "text"},
        {"feedback": "no"},
        {"retry_count": 2},
        {"updated_at": NOON},
        {"optional": True},
        {"parameters": {"a": None, "b": [1]}},
    ],
    ids=str,
)
def test_how_a_step_went_leaves_its_keys_alone(change):
    assert keys_of("run", STEP.replace(**change), "a", INPUTS) == KEYS


@pytest.mark.parametrize(
    "change",
    [{"priority": 5}, {"max_retries": 9}, {"timeout": 1}, {"writes": ("x.csv",)}],
    ids=str,
)
def test_how_a_step_is_run_changes_only_what_a_failure_answers_for(change):
    keys = keys_of("run", STEP.replace(**change), "a", INPUTS)
    assert (keys.result, keys.idempotency) == (KEYS.result, KEYS.idempotency)
    assert keys.attempt != KEYS.attempt


@pytest.mark.parametrize(
    "change",
    [
        {"id": 3},
        {"description": "Compare all"},
        {"brief": ""},
        {"parameters": {"b": [2], "a": None}},
    ],
    ids=str,
)
def test_what_a_step_asks_for_changes_every_key(change):
    assert not shared(keys_of("run", STEP.replace(**change), "a", INPUTS), KEYS)


@pytest.mark.parametrize(
    "inputs",
    [{}, {1: "One 税."}, {1: "Three.", 3: "One 税."}, {1: "One 税.", 3: "Three. "}],
    ids=str,
)
def test_what_a_step_is_given_changes_every_key(inputs):
    assert not shared(keys_of("run", STEP, "a", inputs), KEYS)


def test_a_step_that_is_opened_again_after_a_failure_is_the_same_work_to_services():
    again = keys_of("run", STEP, "a", INPUTS, Generation(settled=1))
    assert again.idempotency == KEYS.idempotency
    assert again.result != KEYS.result
    assert again.attempt != KEYS.attempt


def test_a_completed_step_that_is_opened_again_is_new_work_to_all():
    assert not shared(keys_of("run", STEP, "a", INPUTS, Generation(settled=1, done=1)), KEYS)


def test_an_input_with_half_a_character_has_the_key_of_what_is_stored_of_it():
    assert keys_of("run", STEP, "a", {1: "A \ud800"}) == keys_of("run", STEP, "a", {1: "A ?"})


@given(
    st.lists(
        st.tuples(
            st.text(max_size=4),
            st.integers(1, 9),
            st.text(max_size=4),
            st.dictionaries(st.integers(1, 3), st.sampled_from("ab"), max_size=2).map(str),
            st.integers(0, 2),
        ),
        unique=True,
    )
)
def test_no_two_pieces_of_work_share_a_key(asked):
    keys = [
        key
        for run, number, name, inputs, settled in asked
        for key in vars_of(
            keys_of(
                run,
                STEP.replace(id=number),
                name,
                {1: inputs},
                Generation(settled=settled, done=settled),
            )
        )
    ]
    assert len(set(keys)) == len(keys)


def vars_of(keys):
    return {keys.result, keys.attempt, keys.idempotency}


def shared(one, other):
    return vars_of(one) & vars_of(other)
