"""How replies end, in the words of all providers."""

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk

from cases import cases_of
from replan.models.reply_end import WHOLE, StreamEnds, check_unbroken, end_of

CASES = cases_of(__file__)

LENGTH = CASES["length"]
FILTERED = CASES["filtered"]
COMPLETE = CASES["complete"]
# YAML as it is read in C has no halves of characters.
HALF_A_CHARACTER = '{"half a character": "\ud83d'


def ended(metadata, **fields):
    return AIMessage("Half a", response_metadata=metadata, **fields)


@pytest.mark.parametrize("metadata", LENGTH, ids=str)
def test_a_reply_that_reached_its_length_is_known(metadata):
    assert end_of(ended(metadata)).cut == "reply_length"
    assert "length" in end_of(ended(metadata)).why


@pytest.mark.parametrize("metadata", FILTERED, ids=str)
def test_a_reply_that_a_filter_cut_is_known(metadata):
    assert end_of(ended(metadata)).cut == "content_filter"


@pytest.mark.parametrize("metadata", COMPLETE, ids=str)
def test_whatever_else_a_reply_ends_with_it_is_whole(metadata):
    assert end_of(ended(metadata)) == WHOLE
    assert WHOLE.why == ""
    check_unbroken(ended(metadata))


def test_a_refusal_is_told_in_its_own_words():
    beside = AIMessage("", additional_kwargs={"refusal": "I cannot\nhelp with that."})
    block = AIMessage([{"type": "refusal", "refusal": "I cannot help with that."}])
    for message in (beside, block):
        end = end_of(message)
        assert (end.cut, end.why) == (
            "content_filter",
            "the model refused: I cannot help with that",
        )
    assert end_of(AIMessage("Yes.", additional_kwargs={"refusal": None})) == WHOLE


@pytest.mark.parametrize("reason", ["error", "abort", "insufficient_system_resource"])
def test_a_reply_whose_server_failed_in_the_middle_is_a_broken_connection(reason):
    with pytest.raises(ConnectionError, match="cut the reply off"):
        check_unbroken(ended({"finish_reason": reason}))


def stream(**metadata):
    return AIMessageChunk("Half a", response_metadata=metadata)


def test_after_a_silent_end_of_a_server_that_tells_ends_one_reply_is_whole_then_it_streams_again():
    ends = StreamEnds()
    ends.take(stream(done_reason="stop"))
    for _ in range(3):
        with pytest.raises(ConnectionError):
            ends.take(stream())
        assert ends.is_in_doubt
        ends.take_whole()
        assert not ends.is_in_doubt


def test_the_streams_of_models_that_never_tell_an_end_are_whole():
    ends = StreamEnds()
    for _ in range(3):
        ends.take(stream(model_name="fake"))
    assert not ends.is_in_doubt


SILENT = [{"model_provider": "openai", "finish_reason": None}, {"model_name": "fake"}]
FORGOTTEN = CASES["forgotten"]
HALVES = [*CASES["halves"], HALF_A_CHARACTER]
WHOLES = CASES["wholes"]


@pytest.mark.parametrize("metadata", SILENT, ids=str)
@pytest.mark.parametrize("text", [*FORGOTTEN, *HALVES])
def test_a_reply_without_a_reason_that_ends_within_its_structure_is_cut(text, metadata):
    assert end_of(AIMessage(text, response_metadata=metadata)).cut == "reply_length"


@pytest.mark.parametrize("text", WHOLES)
def test_a_reply_without_a_reason_that_ends_anywhere_else_is_whole(text):
    assert end_of(AIMessage(text, response_metadata=SILENT[0])) == WHOLE


@pytest.mark.parametrize("text", [*FORGOTTEN, *WHOLES])
def test_the_word_of_a_server_counts_more_than_a_mark_that_is_missing_at_the_end(text):
    assert end_of(AIMessage(text, response_metadata={"finish_reason": "stop"})) == WHOLE
    assert end_of(AIMessage(text)) == WHOLE  # of a function, and of no server


@pytest.mark.parametrize("text", HALVES)
def test_half_a_value_is_cut_off_whatever_its_server_says(text):
    for metadata in ({"finish_reason": "stop"}, {}):
        end = end_of(AIMessage(text, response_metadata=metadata))
        assert (end.cut, end.why) == (
            "unfinished_reply",
            "the reply ends in the middle of its JSON",
        )
