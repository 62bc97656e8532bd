"""How many tokens a request or a reply has, judged by its characters.

No server says before a call what it will count. The numbers are such that for English and Chinese
prompts, and for JSON and code in them, the usual tokenizers count less in 99 of 100 cases: English
prompts have 0.23 to 0.3 tokens a character, digits and marks 0.5 to 1, Chinese 0.5 to 1.3.
"""

import json
import math
import string
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.utils.function_calling import convert_to_openai_tool

TOKENS_OF_A_LETTER = 0.3
"""Latin letters and blanks."""

TOKENS_OF_A_MARK = 0.75
"""Digits, and marks such as those of JSON."""

TOKENS_OF_A_CHARACTER = 1.5
"""A character of any other script."""

TOKENS_OF_A_MESSAGE = 16
"""What a server may put around a message: its role and its marks."""

TOKENS_OF_TOOLS = 512
"""What a server may say about tools, in addition to their schemas."""

TOKENS_OF_AN_IMAGE = 3_000
"""One image; servers count by its size and by their model, and few of them more than this."""

_LETTERS_AND_BLANKS = (string.ascii_letters + string.whitespace + "\x1c\x1d\x1e\x1f").encode()
_IMAGES = frozenset({"image", "image_url", "input_image"})
_NAMES_OF_TOOLS = ("tools", "functions", "response_format")


def tokens_of_request(messages: Iterable[BaseMessage], tools: Sequence[Any] = ()) -> int:
    """The tokens that a server is likely to count for a request, at most."""
    total = 0.0
    for message in messages:
        total += TOKENS_OF_A_MESSAGE + _of_message(message)
    if tools:
        total += TOKENS_OF_TOOLS + sum(_of_json(_schema(tool)) for tool in tools)
    return math.ceil(total)


def tokens_of_reply(message: BaseMessage) -> int:
    """The tokens of a reply, where its server does not say."""
    return math.ceil(_of_message(message))


def schemas_in(parameters: Mapping[str, Any]) -> list[Any]:
    """The schemas of tools and of the reply that are in a call's parameters."""
    found: list[Any] = []
    for name in _NAMES_OF_TOOLS:
        schemas = parameters.get(name)
        if isinstance(schemas, list):
            found += cast("list[Any]", schemas)
        elif schemas:
            found.append(schemas)
    return found


def _of_text(text: str) -> float:
    latin = text.encode("ascii", "ignore")
    marks = len(latin.translate(None, _LETTERS_AND_BLANKS))
    return (
        TOKENS_OF_A_LETTER * (len(latin) - marks)
        + TOKENS_OF_A_MARK * marks
        + TOKENS_OF_A_CHARACTER * (len(text) - len(latin))
    )


def _of_message(message: BaseMessage) -> float:
    content = cast("str | list[Any]", message.content)
    total = _of_text(content) if isinstance(content, str) else sum(map(_of_block, content))
    total += _of_text(message.name) if message.name else 0
    if isinstance(message, AIMessage) and message.tool_calls:
        total += _of_json(message.tool_calls)
    return total


def _of_block(block: Any) -> float:
    if isinstance(block, str):
        return _of_text(block)
    kind = cast("dict[str, Any]", block).get("type") if isinstance(block, dict) else None
    if kind in _IMAGES:
        return TOKENS_OF_AN_IMAGE
    text = cast("dict[str, Any]", block).get("text") if kind == "text" else None
    return _of_text(text) if isinstance(text, str) else _of_json(block)


def _of_json(value: Any) -> float:
    return _of_text(json.dumps(value, ensure_ascii=False, default=str))


def _schema(tool: Any) -> Any:
    # A provider's own tool is there as a mapping already.
    return cast("Any", tool) if isinstance(tool, dict) else convert_to_openai_tool(tool)
