"""How replies end, in the words of all providers."""

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk

from replan.models.reply_end import WHOLE, StreamEnds, check_unbroken, end_of

LENGTH = [
    {"finish_reason": "length"},  # OpenAI and those who speak its protocol, Groq, TGI
    {"finish_reason": "lengthlength"},  # LangChain joined two pieces that both say so
    {"finish_reason": "MAX_TOKENS"},  # Gemini, Cohere
    {"finish_reason": "FinishReason.MAX_TOKENS"},  # Vertex, as its enumeration writes it
    {"finish_reason": "model_length"},  # Mistral
    {"stop_reason": "max_tokens"},  # Anthropic, Bedrock
    {"stop_reason": "model_context_window_exceeded"},
    {"stopReason": "max_tokens"},  # Bedrock's Converse
    {"done_reason": "length"},  # Ollama
    {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},  # Responses
]
FILTERED = [
    {"finish_reason": "content_filter"},
    {"finish_reason": "SAFETY"},
    {"finish_reason": "PROHIBITED_CONTENT"},
    {"finish_reason": "ERROR_TOXIC"},
    {"stop_reason": "refusal"},
    {"stopReason": "guardrail_intervened"},
    {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}},
    {"prompt_feedback": {"block_reason": "SAFETY", "safety_ratings": []}},
]
COMPLETE = [
    {},
    {"finish_reason": None},
    {"finish_reason": "stop"},
    {"finish_reason": "STOP"},
    {"finish_reason": "tool_calls"},
    {"finish_reason": "COMPLETE"},
    {"finish_reason": "eos_token"},
    {"finish_reason": "something new"},
    {"finish_reason": 3},
    {"stop_reason": "end_turn"},
    {"stop_reason": "tool_use"},
    {"done_reason": "stop"},
    {"status": "completed", "incomplete_details": None},
    {"prompt_feedback": {"block_reason": 0}},
]


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


def test_an_end_knows_how_many_tokens_its_reply_had():
    usage = {"input_tokens": 7, "output_tokens": 12, "total_tokens": 19}
    assert end_of(ended({"finish_reason": "length"}, usage_metadata=usage)).tokens == 12
    assert end_of(ended({"finish_reason": "length"})).tokens == 0


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


def test_a_silent_end_over_the_openai_protocol_asks_for_one_whole_reply_then_streams_again():
    ends = StreamEnds()
    with pytest.raises(ConnectionError):
        ends.take(stream(model_provider="openai"))
    assert ends.is_in_doubt
    ends.take_whole()
    assert not ends.is_in_doubt
    ends.take(stream(model_provider="openai", finish_reason="stop"))


def test_a_server_that_never_tells_an_end_is_not_asked_for_streams_any_more():
    ends = StreamEnds()
    for _ in range(2):
        with pytest.raises(ConnectionError):
            ends.take(stream(model_provider="openai"))
        ends.take_whole()
    assert ends.is_in_doubt


SILENT = [{"model_provider": "openai", "finish_reason": None}, {"model_name": "fake"}]
FRONT = "---\ncomplexity: simple\n---\n"
FORGOTTEN = [
    '{"a": 1',
    '{"complexity": "simple", "answer": "It is Paris."',
    "[1, 2",
    "{",
    '{"answer": "He said "no" to',
    "Here it is:\n\n```python\nprint(",
    "- Here:\n\n  ~~~\n  x",
]
HALVES = [
    '{"plan": [1, 2,',
    '[{"a": 1},',
    '{"a": "x\ny',
    '[1, {"b": tru',
    FRONT + '{"a": [1,',
    "<think>Is it {?</think>\n" + '{"a":',
    '{"complexity": "simple", "answer": "It is Par',
    '```json\n{"a": 1,',
    '```json\n{"complexity": "simple", "answer": "It is Par',
    '{"half a character": "\ud83d',
]
WHOLES = [
    "It is Par",
    "Use { to open, and [",
    "[Note that",
    "[1] As Smith says",
    "{name} says {",
    '{"a": 1} and so on {',
    '{"a": 1,}',
    "{'a': 1}",
    '{"a": 1 "b": 2}',
    FRONT + "It is {",
    '```json\n{"a": 1}',
    "```py\nx\n```",
    "```print(1)``` prints",
    "- ```\n  x\n  ```\n\nand so on",
    "```markdown\n# T\n```py\nx\n```\nend\n```",
    "<think>```py\nx</think>\nParis",
]


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
