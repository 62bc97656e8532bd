"""The tokens of a request, judged by its characters: not fewer than servers count.

`counted_prompts.jsonl` has prompts and replies of a strong model, in English and in Chinese, and
Chinese texts of this project, with the counts of four tokenizers (those of two model families of
OpenAI, of Claude and of DeepSeek).
"""

import json
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool

from replan.models.spending.scopes import (
    TOKENS_OF_A_MESSAGE,
    TOKENS_OF_AN_IMAGE,
    TOKENS_OF_TOOLS,
    schemas_in,
    tokens_of_reply,
    tokens_of_request,
)

COUNTED = [
    json.loads(line)
    for line in Path(__file__).with_name("counted_prompts.jsonl").read_text("utf-8").splitlines()
]


def is_chinese(text):
    return sum("\u4e00" <= character <= "\u9fff" for character in text) > len(text) / 5


def tokens_of_text(text):
    return tokens_of_reply(AIMessage(text))


@tool
def add(a: int, b: int) -> int:
    """Add two numbers, exactly."""
    return a + b


@pytest.mark.parametrize("language", ["English", "Chinese"])
def test_of_a_hundred_counts_of_servers_99_are_no_higher_than_the_estimate(language):
    texts = [each for each in COUNTED if is_chinese(each["text"]) == (language == "Chinese")]
    ratios = [
        count / tokens_of_text(each["text"]) for each in texts for count in each["counts"].values()
    ]
    assert len(ratios) >= 40
    assert sum(ratio > 1 for ratio in ratios) <= len(ratios) / 100
    # And it is not so high that a limit would be of little use.
    assert sum(ratios) / len(ratios) >= 0.5


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        # What the usual tokenizers count, by a wide margin.
        ("The quick brown fox jumps over the lazy dog. ", 10, 20),
        ("Die Donaudampfschiffahrtsgesellschaft liegt still. ", 14, 26),
        ('{"a": 1, "b": [1, 2, 3]}', 13, 24),
        ("中文的句子没有空格。", 10, 21),
        ("1234567890 ", 4, 11),
    ],
)
def test_an_estimate_is_near_what_tokenizers_make(text, least, most):
    assert 50 * least <= tokens_of_text(text * 50) <= 50 * most


def test_all_messages_count_with_their_names():
    one, two = HumanMessage("Hello there."), SystemMessage("Be brief.")
    both = tokens_of_request([two, one])
    assert both > tokens_of_request([one]) + TOKENS_OF_A_MESSAGE
    assert tokens_of_request([two, HumanMessage("Hello there.", name="somebody")]) > both


@pytest.mark.parametrize(
    ("content", "tokens"),
    [
        (["abc", {"type": "text", "text": "de"}], tokens_of_text("abcde")),
        ([{"type": "image_url", "image_url": {"url": "data:" + "x" * 90_000}}], TOKENS_OF_AN_IMAGE),
        ([{"type": "image", "base64": "x" * 90_000}], TOKENS_OF_AN_IMAGE),
        (
            [{"type": "file", "base64": "xxxx"}],
            tokens_of_text('{"type": "file", "base64": "xxxx"}'),
        ),
        ([{"type": "text", "text": None}], tokens_of_text('{"type": "text", "text": null}')),
    ],
    ids=["texts", "an image", "an image of another form", "a file", "a broken block"],
)
def test_blocks_count_by_their_kind(content, tokens):
    message = HumanMessage("")
    message.content = content
    assert tokens_of_request([message]) == TOKENS_OF_A_MESSAGE + tokens


def test_calls_of_tools_and_their_schemas_count():
    call = {"name": "add", "args": {"a": 1}, "id": "1", "type": "tool_call"}
    called = [AIMessage("", tool_calls=[call]), ToolMessage("3", tool_call_id="1")]
    assert tokens_of_request(called) > 2 * TOKENS_OF_A_MESSAGE + tokens_of_text('"add"')
    with_tool = tokens_of_request([HumanMessage("")], [add])
    assert with_tool > TOKENS_OF_TOOLS + tokens_of_text("Add two numbers, exactly.")
    assert tokens_of_request([HumanMessage("")], [{"type": "web_search"}]) < with_tool


def test_schemas_are_found_in_the_parameters_of_a_call():
    parameters = {"tools": [{"a": 1}, {"b": 2}], "response_format": {"c": 3}, "functions": None}
    assert schemas_in(parameters) == [{"a": 1}, {"b": 2}, {"c": 3}]
    assert schemas_in({}) == []


def test_a_reply_counts_by_its_characters_where_its_server_does_not_say():
    assert tokens_of_reply(AIMessage("äb" * 10)) == 18
