"""What a call is charged: read from what LangChain reports before and after it."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, cast

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, LLMResult

from replan.base.langgraph_inside.callbacks import read_reported_call
from replan.log.amounts import Spending
from replan.models.spending.scopes import Permit, schemas_in, tokens_of_reply
from replan.ports.allowance import USUAL_REPLY, Request
from replan.state.usage import Tokens

NO_TOKENS = Tokens()


def announced(
    serialized: dict[str, Any] | None, messages: Sequence[BaseMessage], options: dict[str, Any]
) -> Request:
    """Read the request of a call without a permit: its reply can no longer be shortened."""
    reported = read_reported_call(serialized, options)
    names = reported.names or ["model"]
    return Request(
        model=names[0],
        names=names,
        messages=messages,
        tools=schemas_in(reported.parameters),
        most_output=reported.most_output or USUAL_REPLY,
        provider=reported.provider,
    )


def replies_in(response: LLMResult) -> list[BaseMessage]:
    """The first reply to each prompt: others of the same prompt repeat its usage."""
    firsts = (one for generations in response.generations for one in generations[:1])
    return [
        one.message if isinstance(one, ChatGeneration) else AIMessage(one.text) for one in firsts
    ]


def charged_for_replies(
    permit: Permit, replies: Sequence[BaseMessage], counts: Sequence[Tokens] = ()
) -> tuple[Spending, Tokens]:
    """Charge a call by what its server reported, else by what one can judge."""
    # The pieces of a stream reported the `counts` one by one: LangChain adds them up.
    reported = counts[-1] if are_running_totals(counts) else _reported(replies)
    charged = reported[:2]
    if charged == (0, 0):
        charged = (permit.call.input_tokens, sum(map(tokens_of_reply, replies)))
    spent = Spending(calls=1, tokens=sum(charged), cost=permit.call.cost(*charged))
    return spent, reported


def are_running_totals(counts: Sequence[Tokens]) -> bool:
    """Whether each count includes the one before: no part of a request is counted twice."""
    return len(counts) > 1 and all(
        0 < before.input_tokens <= after.input_tokens
        and before.output_tokens <= after.output_tokens
        for before, after in pairwise(counts)
    )


def _reported(replies: Sequence[BaseMessage]) -> Tokens:
    counts = [*map(reported_tokens, replies)]
    return counts[0] if len(counts) == 1 else Tokens(*map(sum, zip(*counts, strict=True)))


def holds_more_than_text(piece: BaseMessage) -> bool:
    """Whether a piece of a reply has something besides its text: a call of a tool, a thought."""
    calls = piece.tool_call_chunks if isinstance(piece, AIMessageChunk) else ()
    content = () if isinstance(piece.content, str) else piece.content
    return bool(calls or content or piece.additional_kwargs)


def reported_tokens(message: BaseMessage) -> Tokens:
    """The tokens that a message reports; an impossible number counts as not reported."""
    usage: Any = message.usage_metadata if isinstance(message, AIMessage) else None
    if not isinstance(usage, dict):
        return NO_TOKENS
    reported = cast("dict[str, Any]", usage)
    details: dict[str, Any] = reported.get("input_token_details") or {}
    return Tokens(
        _count_in(reported.get("input_tokens")),
        _count_in(reported.get("output_tokens")),
        _count_in(details.get("cache_read")),
    )


_MOST_TOKENS = 10**12


def _count_in(number: object) -> int:
    """Read a count of tokens: a negative, too large or non-numeric one is 0."""
    if type(number) is int and 0 <= number <= _MOST_TOKENS:
        return number
    if isinstance(number, str) and number.strip().isdecimal():
        number = int(number.strip()[:20])
    if isinstance(number, bool) or not isinstance(number, (int, float)):
        return 0
    return math.ceil(number) if 0 <= number <= _MOST_TOKENS else 0
