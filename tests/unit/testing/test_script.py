"""Tests of scripts: who gets which reply."""

import pytest
from hypothesis import given, strategies as st
from langchain_core.messages import HumanMessage

from replan.prompts.sections import Call
from replan.testing import Reply, Script, UnconsumedReplies, UnexpectedModelCall, always
from replan.testing.script import keys_of

THINK = Call(node="think")
STEP = Call(node="specialist", step=3, specialist="analyst")


def texts(script: Script, call: Call | None, count: int = 1) -> list[str]:
    return [script.reply_now(call, ()).text for _ in range(count)]


@pytest.mark.parametrize(
    ("call", "keys"),
    [
        (None, ("*",)),
        (THINK, ("think", "*")),
        (STEP, ("step 3/analyst", "step 3", "specialist", "*")),
        (Call(node="specialist", step=3), ("step 3", "specialist", "*")),
        (Call(node="specialist"), ("specialist", "*")),
    ],
)
def test_a_call_is_looked_for_from_narrow_to_wide(call: Call | None, keys: tuple[str, ...]):
    assert keys_of(call) == keys


def test_a_used_up_key_does_not_fall_back_to_a_wider_one():
    script = Script({"step 3": ["once"], "specialist": ["other"]})
    texts(script, STEP)

    with pytest.raises(UnexpectedModelCall):
        texts(script, STEP)


def test_a_reply_for_always_is_never_used_up_and_need_not_be_used():
    script = Script({"think": ["first", always("then")], "feedback": always("unused")})

    assert texts(script, THINK, 4) == ["first", "then", "then", "then"]
    script.assert_finished()


def test_an_unexpected_call_names_who_called_and_what_is_left():
    script = Script({"think": ["a", "b"], "feedback": "c"})

    with pytest.raises(UnexpectedModelCall) as caught:
        script.take(STEP, [HumanMessage("Compare both.")])

    assert caught.value.call == STEP
    assert caught.value.left == {"think": 2, "feedback": 1}
    assert str(caught.value) == (
        "No reply is left for node 'specialist', step 3, specialist 'analyst'. Looked under: "
        "'step 3/analyst', 'step 3', 'specialist', '*'. Left over: 2 for 'think', 1 for "
        "'feedback'. The prompt ended with: 'Compare both.'."
    )


def test_a_call_of_a_foreign_prompt_is_named_so():
    with pytest.raises(UnexpectedModelCall, match="not Replan's"):
        Script({}).take(None)


def test_a_swallowed_assertion_of_a_function_is_raised_at_the_end():
    def picky(messages: object) -> str:
        assert messages == "something else", "not what was meant"
        return "fine"

    script = Script({"*": picky})
    with pytest.raises(AssertionError):
        script.reply_now(None, ())

    with pytest.raises(AssertionError, match="not what was meant"):
        script.assert_finished()


def test_replies_that_are_left_over_are_named():
    with pytest.raises(UnconsumedReplies, match="2 for 'think'") as caught:
        Script({"think": ["a", "b"]}).assert_finished()

    assert caught.value.left == {"think": 2}


def test_the_end_of_a_block_notes_an_unexpected_call_on_the_error_in_flight():
    script, error = Script({"feedback": "left"}), RuntimeError("the real one")
    with pytest.raises(UnexpectedModelCall):
        script.take(THINK)

    script.leave(error)

    assert "No reply is left for node 'think'" in error.__notes__[0]


def test_the_end_of_a_block_adds_no_note_to_the_unexpected_call_itself():
    script = Script({})
    with pytest.raises(UnexpectedModelCall) as caught:
        script.take(THINK)

    script.leave(caught.value)

    assert not hasattr(caught.value, "__notes__")


@pytest.mark.parametrize("key", ["thinking", "step", "step 0", "step 1/", "Step 1", "", "analyst"])
def test_a_key_that_no_call_can_have_is_refused(key: str):
    with pytest.raises(ValueError, match="is not a key of a script"):
        Script({key: "never"})


def test_nothing_can_follow_a_reply_for_always():
    with pytest.raises(ValueError, match="Nothing can follow"):
        Script([always("a"), "b"])


def test_one_text_is_no_script():
    with pytest.raises(TypeError):
        Script("text")


def test_what_is_no_reply_is_refused_at_once():
    with pytest.raises(TypeError, match="not 1"):
        Script({"think": [1]})  # type: ignore[list-item]


def test_an_asynchronous_function_needs_an_asynchronous_call():
    async def echo(messages: object) -> str:
        return ""

    with pytest.raises(TypeError, match="asynchronous"):
        Script({"*": echo}).reply_now(None, ())


def test_usage_is_estimated_by_length_where_it_is_not_given():
    messages = [HumanMessage("x" * 8), HumanMessage("x" * 3)]

    assert Reply("x" * 12).counted(messages).input_tokens == 2
    assert Reply("x" * 12).counted(messages).output_tokens == 3
    assert Reply("x", usage=(7, 9)).counted(messages).total_tokens == 16


@given(st.text())
def test_the_words_of_a_text_join_to_the_text(text: str):
    assert "".join(Reply(text).pieces) == text


def test_chunks_must_join_to_the_text():
    with pytest.raises(ValueError, match="join"):
        Reply("abc", chunks=("a", "b"))
