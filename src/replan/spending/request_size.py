"""How many tokens a request can be, at most and most likely, before anybody has counted them.

A tokenizer made of bytes (BPE, and SentencePiece with its bytes to fall back on) never makes more
tokens than the text has bytes, in no language, so the bytes of all that is sent are a true upper
bound. For English it is about four times too high. That costs nothing for long: what was reserved
too much is free again as soon as the call is settled.

Where room is short, a likely number goes in its place, by the kinds of characters: tokenizers have
whole words for letters, next to none for digits and marks, and pieces of a character for scripts
other than Latin. It is high for the usual texts, by about a half.
"""

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.utils.function_calling import convert_to_openai_tool

TOKENS_OF_A_REQUEST = 16
"""What a server may put around the messages."""

TOKENS_OF_A_MESSAGE = 16
"""What a server may put around each message: its role and its marks."""

TOKENS_OF_TOOLS = 512
"""What a server may say about tools, beside their schemas."""

TOKENS_OF_AN_IMAGE = 3_000
"""One image; servers count by its size and by their model, and few of them more than this."""

TOKENS_OF_A_LETTER = 0.35
"""Latin letters and blanks; in most languages they are 0.2 to 0.3 tokens each."""

TOKENS_OF_A_BYTE = 0.67
"""A byte of any other script: two tokens for a Chinese character, most are one."""

_PLAIN = re.compile(r"[A-Za-z\s]+")
_IMAGES = frozenset({"image", "image_url", "input_image"})
_NAMES_OF_TOOLS = ("tools", "functions", "response_format")


def most_tokens(messages: Iterable[BaseMessage], tools: Sequence[Any] = ()) -> int:
    """Give a number of tokens that a request cannot exceed, images apart."""
    total = TOKENS_OF_A_REQUEST + sum(_of_message(message) for message in messages)
    if tools:
        total += TOKENS_OF_TOOLS + sum(_of_json(_schema(tool)) for tool in tools)
    return total


def likely_tokens(messages: Iterable[BaseMessage], tools: Sequence[Any] = ()) -> int:
    """Give at most `most_tokens`: what a request in a usual language does not exceed."""
    most = likely = 0
    for message in messages:
        text = message.text
        bound, size = _of_message(message), bytes_of(text)
        most += bound
        # What is no text, an image or the call of a tool, counts in full.
        likely += bound - min(bound, size) + min(size, _likely_in(text))
    rest = most_tokens((), tools)
    return min(most, math.ceil(likely)) + rest


def _likely_in(text: str) -> float:
    if not text.isascii():
        size, text = bytes_of(text), text.encode("ascii", "ignore").decode("ascii")
        return TOKENS_OF_A_BYTE * (size - len(text)) + _likely_in(text)
    others = len(_PLAIN.sub("", text))
    return others + max(TOKENS_OF_A_LETTER * (len(text) - others), len(text.split()))


def schemas_in(parameters: Mapping[str, Any]) -> list[Any]:
    """The schemas of tools and of the reply that stand in a call's parameters."""
    given = (parameters.get(name) for name in _NAMES_OF_TOOLS)
    found: list[Any] = []
    for one in given:
        found += cast("list[Any]", one) if isinstance(one, list) else [one] if one else []
    return found


def bytes_of(text: str) -> int:
    """The bytes of a text, which its tokens cannot be more than."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def most_tokens_of_reply(message: BaseMessage) -> int:
    """Give a number of tokens that a reply cannot exceed, where its server does not say."""
    return _of_message(message) - TOKENS_OF_A_MESSAGE


def _of_message(message: BaseMessage) -> int:
    total = TOKENS_OF_A_MESSAGE + bytes_of(message.name or "")
    content = cast("str | list[Any]", message.content)
    blocks: list[Any] = [content] if isinstance(content, str) else content
    total += sum(_of_block(block) for block in blocks)
    if isinstance(message, AIMessage) and message.tool_calls:
        total += _of_json(message.tool_calls)
    return total


def _of_block(block: Any) -> int:
    if isinstance(block, str):
        return bytes_of(block)
    kind = cast("dict[str, Any]", block).get("type") if isinstance(block, dict) else None
    if kind in _IMAGES:
        return TOKENS_OF_AN_IMAGE
    text = cast("dict[str, Any]", block).get("text") if kind == "text" else None
    return bytes_of(text) if isinstance(text, str) else _of_json(block)


def _of_json(value: Any) -> int:
    return bytes_of(json.dumps(value, ensure_ascii=False, default=str))


def _schema(tool: Any) -> Any:
    # A provider's own tool stands there as a mapping already.
    return cast("Any", tool) if isinstance(tool, dict) else convert_to_openai_tool(tool)
