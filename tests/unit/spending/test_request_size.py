"""The size of a request: the bytes of all that is sent."""

import pytest
from hypothesis import given, strategies as st
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool

from replan.spending.fitting import (
    TOKENS_OF_A_MESSAGE,
    TOKENS_OF_A_REQUEST,
    TOKENS_OF_AN_IMAGE,
    TOKENS_OF_TOOLS,
    bytes_of,
    likely_tokens,
    most_tokens,
    most_tokens_of_reply,
    schemas_in,
)

EMPTY = TOKENS_OF_A_REQUEST + TOKENS_OF_A_MESSAGE


@tool
def add(a: int, b: int) -> int:
    """Add two numbers, exactly."""
    return a + b


@given(st.text())
def test_a_text_has_no_more_tokens_than_bytes(text):
    assert bytes_of(text) == len(text.encode("utf-8", "surrogatepass"))
    assert most_tokens([HumanMessage(text)]) == EMPTY + bytes_of(text)


def test_all_messages_count_with_their_names():
    messages = [SystemMessage("abc"), HumanMessage("äö", name="me")]
    assert most_tokens(messages) == TOKENS_OF_A_REQUEST + 2 * TOKENS_OF_A_MESSAGE + 3 + 4 + 2


@pytest.mark.parametrize(
    ("content", "tokens"),
    [
        (["abc", {"type": "text", "text": "de"}], 5),
        ([{"type": "image_url", "image_url": {"url": "data:" + "x" * 90_000}}], TOKENS_OF_AN_IMAGE),
        ([{"type": "image", "base64": "x" * 90_000}], TOKENS_OF_AN_IMAGE),
        ([{"type": "file", "base64": "xxxx"}], len('{"type": "file", "base64": "xxxx"}')),
        ([{"type": "text", "text": None}], len('{"type": "text", "text": null}')),
    ],
    ids=["texts", "an image", "an image of another form", "a file", "a broken block"],
)
def test_blocks_count_by_their_kind(content, tokens):
    message = HumanMessage("")
    message.content = content
    assert most_tokens([message]) == EMPTY + tokens


def test_calls_of_tools_and_their_schemas_count():
    call = {"name": "add", "args": {"a": 1}, "id": "1", "type": "tool_call"}
    called = [AIMessage("", tool_calls=[call]), ToolMessage("3", tool_call_id="1")]
    assert most_tokens(called) > EMPTY + TOKENS_OF_A_MESSAGE + 1 + len('"add"')
    with_tool = most_tokens([HumanMessage("")], [add])
    assert with_tool > EMPTY + TOKENS_OF_TOOLS + len("Add two numbers, exactly.")
    assert most_tokens([HumanMessage("")], [{"type": "web_search"}]) < with_tool


def test_schemas_are_found_in_the_parameters_of_a_call():
    parameters = {"tools": [{"a": 1}, {"b": 2}], "response_format": {"c": 3}, "functions": None}
    assert schemas_in(parameters) == [{"a": 1}, {"b": 2}, {"c": 3}]
    assert schemas_in({}) == []


def test_a_reply_counts_by_its_bytes_where_its_server_does_not_say():
    assert most_tokens_of_reply(AIMessage("äb")) == 3


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        # Numbers of tokens that the usual tokenizers give, by a wide margin.
        ("The quick brown fox jumps over the lazy dog. ", 10, 20),
        ("Die Donaudampfschiffahrtsgesellschaft liegt still. ", 14, 26),
        ('{"a": 1, "b": [1, 2, 3]}', 13, 24),
        ("中文的句子没有空格。", 10, 21),
        ("🎉🔥👍", 6, 12),
        ("a b c d ", 4, 8),
        ("1234567890 ", 4, 11),
    ],
)
def test_what_is_likely_is_more_than_tokenizers_make_and_less_than_bytes(text, least, most):
    request = [HumanMessage(text * 50)]
    around = most_tokens([HumanMessage("")])
    assert 50 * least <= likely_tokens(request) - around <= 50 * most
    assert likely_tokens(request) <= most_tokens(request)


def test_what_is_no_text_counts_in_full():
    image = HumanMessage([{"type": "image_url", "image_url": {"url": "data:x"}}])
    call = AIMessage("", tool_calls=[{"name": "add", "args": {"a": "x" * 99}, "id": "1"}])
    tool = {"type": "function", "function": {"name": "add", "parameters": {}}}
    for messages, tools in (([image], ()), ([call], ()), ([], [tool])):
        assert likely_tokens(messages, tools) == most_tokens(messages, tools)
