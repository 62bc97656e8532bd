"""By what a step's work is known: what changes each key, and what must not."""

from datetime import UTC, datetime

import pytest
from hypothesis import given, strategies as st

from replan import PlanStep
from replan.specialists.steps.on_record import keys_of
from replan.state.results import Generation

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


def made(change=None, inputs=INPUTS, **said):
    return keys_of("run", STEP.replace(**change or {}), "a", inputs, Generation(**said))


NONE, FAILURE, ALL = set(), {"attempt"}, {"result", "attempt", "idempotency"}
CHANGES = [
    # How a step went.
    (made({"status": "failed"}), NONE),
    (made({"result": "text"}), NONE),
    (made({"feedback": "no", "retry_count": 2, "updated_at": NOON, "optional": True}), NONE),
    (made({"parameters": {"a": None, "b": [1]}}), NONE),
    # How it is run.
    (made({"priority": 5}), FAILURE),
    (made({"max_retries": 9}), FAILURE),
    (made({"timeout": 1}), FAILURE),
    (made({"writes": ("x.csv",)}), FAILURE),
    # What it asks for, and what it is given.
    (made({"id": 3}), ALL),
    (made({"description": "Compare all"}), ALL),
    (made({"brief": ""}), ALL),
    (made({"parameters": {"b": [2], "a": None}}), ALL),
    (made(inputs={}), ALL),
    (made(inputs={1: "One 税."}), ALL),
    (made(inputs={1: "Three.", 3: "One 税."}), ALL),
    (made(inputs={1: "One 税.", 3: "Three. "}), ALL),
    # It is opened again, after a failure or as new work.
    (made(settled=1), {"result", "attempt"}),
    (made(settled=1, done=1), ALL),
]


@pytest.mark.parametrize(("keys", "changed"), CHANGES)
def test_a_key_changes_with_what_it_answers_for_and_with_nothing_else(keys, changed):
    assert {name for name in ALL if getattr(keys, name) != getattr(KEYS, name)} == changed
    assert vars_of(keys) & vars_of(KEYS) == {getattr(KEYS, name) for name in ALL - changed}


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
