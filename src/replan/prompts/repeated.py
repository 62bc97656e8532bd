"""Replies that repeat what the prompts tell models to do, as very small models do."""

import re
from collections.abc import Iterator, Sequence
from functools import cache

from langchain_core.messages import BaseMessage

from replan.prompts.templates import load

REPEATED = "The reply repeats the instructions, and answers nothing."

_PROMPTS = (
    *("host", "thinking", "thinking_format", "planning", "direct_answer", "final_answer"),
    *("feedback", "feedback_format", "closing_format", "specialist"),
)
"""The prompts whose sentences are orders to a model. What explains a plan may be in an answer."""

_SHORTEST = 25  # characters of a sentence that counts; shorter ones may be in any answer
_LEAST = 60  # characters of all orders in a reply that repeats them
# What may be around a sentence: marks of lists, quotations, emphasis.
_MARKS = " \t\"'`*_#>-"
_ENDS = re.compile(r"(?<=[.:!?])\s+|\n+|\$[a-z_]+")
# Who asks about such texts gets them.
_ASKS_FOR_THEM = re.compile(
    r"prompt|instruction|system message|guideline|\brules?\b|repeat|verbatim|word for word"
    r"|\babove\b|提示|指令|指示|规则|重复|逐字|上面|以上",
    re.IGNORECASE,
)


def repeats_instructions(reply: str, messages: Sequence[BaseMessage], request: str) -> bool:
    """Whether more than half of a reply are sentences of the instructions that it answers.

    At least one is an order of the built-in prompts. A sentence that is in the data of the prompt,
    such as the request or a result, does not count, nor anything if the request is about
    instructions.

    Args:
        reply: The text of the reply.
        messages: The prompt; its system messages have the instructions.
        request: What was asked for.
    """
    # Nearly every reply has no order in it, and is not taken apart.
    if _told_by().isdisjoint(reply.casefold().split()):
        return False
    orders, text = _orders(), _plain(reply)
    if not [order for order in orders if order in text] or _ASKS_FOR_THEM.search(request):
        return False
    sentences = [*_sentences(reply)]
    data = _plain(" ".join(message.text for message in messages if message.type != "system"))
    told = _plain(" ".join(message.text for message in messages if message.type == "system"))
    repeated = [sentence for sentence in sentences if sentence in told and sentence not in data]
    length = sum(len(sentence) for sentence in repeated if sentence in orders)
    return length >= _LEAST and 2 * sum(map(len, repeated)) > sum(map(len, sentences))


@cache
def _orders() -> frozenset[str]:
    found = (sentence for name in _PROMPTS for sentence in _sentences(load(name)))
    return frozenset(sentence for sentence in found if len(sentence) >= _SHORTEST)


@cache
def _told_by() -> frozenset[str]:
    """The longest word within each order, which a text has as a word, too, that has the order."""
    return frozenset(max(order.split()[1:-1], key=len) for order in _orders())


def _sentences(text: str) -> Iterator[str]:
    yield from filter(None, map(_plain, _ENDS.split(text)))


def _plain(text: str) -> str:
    return " ".join(text.casefold().split()).strip(_MARKS)
