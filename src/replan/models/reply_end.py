"""How a model's reply ended, read from what LangChain's providers report."""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, cast

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.tool import ToolCallChunk

from replan.prompts.replies.unfinished import breaks_off, is_unfinished
from replan.state.outcomes import CONTENT_FILTER, CUTS, REPLY_LENGTH, UNFINISHED

# What providers call the reason of an end; `status` is that of OpenAI's Responses API.
_KEYS = ("finish_reason", "finishReason", "stop_reason", "stopReason", "done_reason", "status")
_NESTED_KEYS = (("incomplete_details", "reason"), ("prompt_feedback", "block_reason"))
_LENGTH = (
    *("length", "max_tokens", "max_output_tokens", "max_new_tokens", "max_length"),
    *("model_length", "model_context_window_exceeded", "token_limit", "error_limit"),
)
_FILTER = (
    *("content_filter", "content_filtered", "safety", "refusal", "recitation", "blocklist"),
    *("prohibited_content", "spii", "image_safety", "language", "guardrail_intervened"),
    *("error_toxic", "sensitive", "model_armor"),
)
_BROKEN = (
    *("error", "failed", "abort", "aborted", "cancelled", "interrupted"),
    *("network_error", "insufficient_system_resource"),
)
_REFUSAL = "refusal"
_REPEATED = re.compile(r"(.+?)\1*")
_LONGEST_WORDS, _LONGEST_NAME = 500, 200


class ReplyEnd(NamedTuple):
    cut: str = ""  # why it is incomplete, a name of `CUTS`; empty where it is
    words: str = ""  # what a model that refused said about it
    tokens: int = 0  # the tokens of the reply, as its server counted them

    @property
    def problem(self) -> str:
        """What is wrong with a reply that was cut off; empty for any other."""
        return f"The reply is incomplete: {self.why}." if self.cut else ""

    @property
    def why(self) -> str:
        words = self.words.rstrip(".")
        return f"the model refused: {words}" if words else CUTS.get(self.cut, "")


def end_of(message: BaseMessage) -> ReplyEnd:
    # Of a server's reply without any reason, its structure tells whether it was cut off. Any other
    # message that says nothing known of its end is whole.
    reasons = _reasons(message.response_metadata)
    if words := _refusal(message, reasons):
        return ReplyEnd(CONTENT_FILTER, words, _tokens_of(message))
    if reasons & _FILTER_NAMES:
        return ReplyEnd(CONTENT_FILTER, tokens=_tokens_of(message))
    # What has no metadata at all is not a server's reply, but a text of somebody's function.
    is_silent = bool(message.response_metadata) and not reasons
    if reasons & _LENGTH_NAMES or (is_silent and is_unfinished(message.text)):
        return ReplyEnd(REPLY_LENGTH, tokens=_tokens_of(message))
    return ReplyEnd(UNFINISHED, tokens=_tokens_of(message)) if breaks_off(message.text) else WHOLE


WHOLE = ReplyEnd()


def refusal_in(message: BaseMessage) -> str:
    """The text of a refusal, which is separate from that of the reply; empty without one."""
    return _refusal(message, _reasons(message.response_metadata))


def _refusal(message: BaseMessage, reasons: Collection[str]) -> str:
    # Where a server gives a refusal as the reason of the end, the text itself has the words.
    blocks = message.content if isinstance(message.content, list) else []
    refusals = [message.additional_kwargs.get(_REFUSAL)]
    refusals += [block.get(_REFUSAL) for block in blocks if isinstance(block, dict)]
    words = " ".join(refusal for refusal in refusals if isinstance(refusal, str))
    if not words and _REFUSAL in reasons:
        words = message.text
    return " ".join(words.split())[:_LONGEST_WORDS]


def refused(answer: AIMessage, words: str) -> AIMessage:
    """Mark an answer as a refusal, in the form in which providers do."""
    return answer.model_copy(update={"additional_kwargs": {_REFUSAL: words}})


def may_hide_refusal(message: AIMessage) -> bool:
    """Whether a stream ended without text, as a refusal does in LangChain."""
    # Whole replies have the field `refusal`, `None` included; of a stream, LangChain's own model of
    # the OpenAI protocol drops it.
    if message.content or message.tool_calls or message.invalid_tool_calls:
        return False
    metadata = message.response_metadata
    is_ended = metadata.get("model_provider") == "openai" and _reasons(metadata) == {"stop"}
    return is_ended and "refusal" not in message.additional_kwargs


def check_unbroken(message: BaseMessage) -> None:
    """Check that a reply does not report a failure of its server."""
    broken = _reasons(message.response_metadata) & _BROKEN_NAMES
    if broken:
        raise ConnectionError(f"the server cut the reply off ({', '.join(sorted(broken))})")


class StreamEnds:
    """What is known about how a server ends its streams: with a reason, or silently."""

    def __init__(self) -> None:
        # Whether the next reply is to be asked for as a whole, since nobody knows whether a stream
        # of this server that ended in silence was whole.
        self.is_in_doubt = False
        self._are_told = False
        self._silent = 0

    def take(self, joined: AIMessageChunk) -> None:
        if any(joined.response_metadata.get(key) for key in _KEYS):
            self._are_told = True
            return
        # Servers of this protocol report each end, so a silent one says something, too.
        if not self._are_told and joined.response_metadata.get("model_provider") != "openai":
            return
        if _are_whole(joined.tool_call_chunks):
            # Some servers report the end of a text, and none of a tool call.
            return
        if not self._are_told:
            self._silent += 1
        self.is_in_doubt = True
        raise ConnectionError("the stream ended before the reply did")

    def take_whole(self) -> None:
        """Stream again after one silent end; after a second one, this server reports none."""
        self.is_in_doubt = self._silent > 1


def _are_whole(calls: Sequence[ToolCallChunk]) -> bool:
    """Whether there are calls of tools, and the arguments of each are a whole JSON object."""
    try:
        return bool(calls) and all(
            call["name"] and isinstance(json.loads(call["args"] or "", strict=False), dict)
            for call in calls
        )
    except ValueError:
        return False


def _reasons(metadata: Mapping[str, Any]) -> set[str]:
    reasons = [metadata[key] for key in _KEYS if key in metadata]
    for place, key in _NESTED_KEYS:
        if place in metadata and isinstance(metadata[place], Mapping):
            reasons.append(cast("Mapping[str, Any]", metadata[place]).get(key))
    return {_name(str(value)[-_LONGEST_NAME:]) for value in reasons if value}


@lru_cache(maxsize=256)
def _name(reason: str) -> str:
    """Return a reason in one spelling: the same for `FinishReason.MAX_TOKENS` and `maxTokens`."""
    name = re.sub(r"[^a-z]", "", reason.rpartition(".")[2].casefold())
    # LangChain joins a reason that is in two pieces of a stream.
    repeated = _REPEATED.fullmatch(name)
    return repeated.group(1) if repeated else name


_LENGTH_NAMES, _FILTER_NAMES, _BROKEN_NAMES = (
    frozenset(map(_name, names)) for names in (_LENGTH, _FILTER, _BROKEN)
)


def _tokens_of(message: BaseMessage) -> int:
    usage = message.usage_metadata if isinstance(message, AIMessage) else None
    tokens = cast("object", usage["output_tokens"]) if usage else 0
    return tokens if isinstance(tokens, int) and tokens > 0 else 0
