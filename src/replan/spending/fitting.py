"""The amount that a call may reserve: pure arithmetic, for one call at a time.

A tokenizer made of bytes (BPE, and SentencePiece with its bytes to fall back on) never makes more
tokens than the text has bytes, in no language, so the bytes of all that is sent are a true upper
bound of a request. For English it is about four times too high. That costs nothing for long: what
was reserved too much is free again as soon as the call is settled.

Where there is room, a call reserves the most that it can use, so that nothing goes past a limit
whatever its server does. Where room is short, it waits for calls that are on their way. Only when
nothing is on its way any more does it get what is left, judged by a likely number and by what
requests were counted as so far; what it can then go past the limit by is the error of that
judgement. The likely number depends on the kinds of characters: tokenizers have whole words for
letters, next to none for digits and marks, and pieces of a character for scripts other than Latin.
It is high for the usual texts, by about a half.
"""

import json
import math
import re
from asyncio import AbstractEventLoop
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.utils.function_calling import convert_to_openai_tool

from replan.errors import LimitReachedError
from replan.log.amounts import Charged, Reservation, Spending
from replan.spending.scopes import Scope
from replan.state.limits import Price

LEAST_REPLY = 256  # tokens for the reply that a call waits for as long as other calls can make room
USUAL = 2  # a call also waits for this many times the longest reply so far
BARE_REPLY = 64  # tokens for its reply without which a call is not worth its money
LONG_REPLY = 1_024  # tokens for its reply that always make a call worth its money
SHARE = 4  # while others also need room, a call takes one part in this many for its reply
MARGIN = 1.25  # the most by which the likely tokens of a request grow if servers counted more

# Sums of prices are not exact, and must not come out above a limit by their last bit.
_EXACT = 1 - 1e-9

TOKENS_OF_A_REQUEST = 16  # what a server may put around the messages
TOKENS_OF_A_MESSAGE = 16  # what a server may put around each message: its role and its marks
TOKENS_OF_TOOLS = 512  # what a server may say about tools, in addition to their schemas

TOKENS_OF_AN_IMAGE = 3_000
"""One image; servers count by its size and by their model, and few of them more than this."""

TOKENS_OF_A_LETTER = 0.35
"""Latin letters and blanks; in most languages they are 0.2 to 0.3 tokens each."""

TOKENS_OF_A_BYTE = 0.67
"""A byte of any other script: two tokens for a Chinese character, most are one."""

_PLAIN = re.compile(r"[A-Za-z\s]+")
_IMAGES = frozenset({"image", "image_url", "input_image"})
_NAMES_OF_TOOLS = ("tools", "functions", "response_format")


@dataclass(frozen=True, kw_only=True, slots=True)
class Ask:
    id: str  # unique
    run_id: str
    model: str
    scopes: Sequence[Scope]  # what the call is charged to
    input_tokens: int  # tokens of its request, at most
    output_tokens: int  # tokens of its reply, at most, if there is room
    likely_tokens: int  # tokens of its request as far as one can judge; no more than that
    cuttable: bool = False  # whether the server can be told to stop earlier
    price: Price | None = None  # what it costs; none: nothing is known, and nothing bounds it
    # Calls that are on their way, and that this one is made inside.
    part_of: frozenset[str] = frozenset()
    # The event loop that must turn for it to end; none where a thread waits for its reply.
    loop: AbstractEventLoop | None = None

    @property
    def limited(self) -> list[Scope]:
        return [scope for scope in self.scopes if scope.bounds_amounts]

    def cost(self, input_tokens: float, output_tokens: float) -> float:
        return 0.0 if self.price is None else self.price.of(input_tokens, output_tokens)


@dataclass(frozen=True, slots=True)
class Permit:
    """The permission to make a call."""

    ask: Ask
    reservation: Reservation  # what is charged until it is settled
    # Tokens that its reply may have; none where neither tokens nor money are bound.
    most_output: int | None


@dataclass
class Seen:
    """How a model's calls were counted so far."""

    ratio: float = 0.0  # the most tokens for each that a request could have
    likely: float = 0.0  # the most tokens for each that a request was likely to have
    over: float = 1.0  # the most tokens for each that a reply was allowed to have
    largest: int = 0  # the longest reply

    def add(self, permit: Permit, input_tokens: int, output_tokens: int) -> None:
        self.ratio = max(self.ratio, input_tokens / permit.ask.input_tokens)
        self.likely = max(self.likely, input_tokens / permit.ask.likely_tokens)
        self.largest = max(self.largest, output_tokens)
        if permit.most_output and permit.ask.cuttable:
            self.over = max(self.over, output_tokens / permit.most_output)


@dataclass
class Picture:
    """What is charged to a scope, as known in this process, and the calls to be settled."""

    calls: int = 0
    tokens: int = 0
    cost: float = 0.0
    on_way: dict[str, Permit] = field(default_factory=dict[str, Permit])  # those of this process
    elsewhere: dict[str, Spending] = field(default_factory=dict[str, Spending])

    def add(self, amount: Spending, sign: int = 1) -> None:
        self.calls += sign * amount.calls
        self.tokens += sign * amount.tokens
        self.cost += sign * amount.cost

    def read(self, found: Charged, on_record: Collection[str], lost: Collection[str]) -> bool:
        """Take over what the log has; return whether a call elsewhere has ended."""
        # `on_record` are calls here that were on record before, `lost` those that nobody settles.
        for name in [each for each in self.on_way if each not in found.reserved]:
            if name in on_record:
                # It is settled there, and what it used is in the sum.
                del self.on_way[name]
        self.calls, self.tokens, self.cost = found.spent.calls, found.spent.tokens, found.spent.cost
        for name, permit in self.on_way.items():
            if name not in found.reserved:
                self.add(permit.reservation.amount)
        before, ours = self.elsewhere, {*self.on_way, *lost}
        self.elsewhere = {name: each for name, each in found.reserved.items() if name not in ours}
        return bool(before.keys() - self.elsewhere.keys())


@dataclass(frozen=True)
class Room:
    """What a scope that bounds tokens or money has left."""

    scope: Scope
    tokens: float  # tokens that are not charged
    cost: float  # money that is not charged
    tokens_later: float  # tokens, if all calls on their way used nothing, wherever they are made
    cost_later: float  # money, if so

    @property
    def is_awaited(self) -> bool:
        return self.tokens_later > self.tokens or self.cost_later > self.cost

    def output(self, ask: Ask, input_tokens: float, *, later: bool = False) -> float:
        """Tokens of a reply that fit in addition to a request."""
        tokens = (self.tokens_later if later else self.tokens) - input_tokens
        money = (self.cost_later if later else self.cost) - ask.cost(input_tokens, 0)
        each = ask.cost(0, 1)
        if each:
            return min(tokens, money / each)
        return tokens if money >= 0 else -1.0

    def reached(self, ask: Ask, request: float, reply: float) -> LimitReachedError:
        """Return the error for the bound that has less room for such a call."""
        each = ask.cost(1, 1)
        is_money = each and self.cost_later / each < self.tokens_later
        if is_money:
            spent = self.scope.most("cost") - self.cost_later
            return self.scope.reached("cost", spent, ask.cost(request, reply))
        return self.scope.reached(
            "tokens", self.scope.most("tokens") - self.tokens_later, request + reply
        )


@dataclass(frozen=True)
class Blocked:
    """A call has to wait, and so do all later calls that need the same room."""

    tag: str  # the scope that has no room, or the model that nothing is known of yet
    error: LimitReachedError  # what to say to somebody who cannot wait


Offer = Permit | LimitReachedError | Blocked


def unbounded(ask: Ask) -> Permit:
    """Permit a call whose tokens and money have no bound."""
    return _permit(ask, ask.input_tokens, ask.output_tokens, None)


def fit(ask: Ask, rooms: Sequence[Room], seen: Seen | None, *, crowded: bool) -> Offer:
    """Fit a call into the free room; `crowded` means that other calls need it, too."""
    known = seen or Seen()
    request = math.ceil(ask.input_tokens * max(1.0, known.ratio))
    least = _usual(ask, seen)
    want = ask.output_tokens if ask.cuttable else least
    room = min(room.output(ask, request) for room in rooms) / known.over
    if room >= least:
        output = int(min(want, max(least, room / SHARE) if crowded else room))
        return _permit(ask, request, math.ceil(output * known.over), output)
    guessed = min(request, math.ceil(ask.likely_tokens * max(1.0, MARGIN * known.likely)))
    bare = min(want, max(BARE_REPLY, min(known.largest, LONG_REPLY)))
    for one in rooms:
        if one.output(ask, guessed, later=True) < bare:
            return one.reached(ask, guessed, bare)
    for one in rooms:
        if one.is_awaited and one.output(ask, request) / known.over < least:
            return Blocked(one.scope.name, one.reached(ask, guessed, bare))
    # Nothing else will make room, so the call gets all that is left.
    output = int(min(want, *(one.output(ask, guessed) for one in rooms)))
    return _trimmed(_permit(ask, request, output, output), rooms)


def _usual(ask: Ask, seen: Seen | None) -> int:
    """Tokens that a reply should have room for, judged by earlier replies."""
    if seen is None:
        return ask.output_tokens
    return min(ask.output_tokens, max(LEAST_REPLY, USUAL * seen.largest))


def _permit(ask: Ask, input_tokens: int, charged: int, output: int | None) -> Permit:
    amount = Spending(calls=1, tokens=input_tokens + charged, cost=ask.cost(input_tokens, charged))
    return Permit(ask, Reservation(id=ask.id, run_id=ask.run_id, amount=amount), output)


def _trimmed(permit: Permit, rooms: Sequence[Room]) -> Permit:
    """Reserve no more than is left."""
    amount = permit.reservation.amount
    tokens = int(min(amount.tokens, *(room.tokens for room in rooms)))
    cost = min(amount.cost, *(room.cost * _EXACT for room in rooms))
    reservation = permit.reservation.replace(amount=amount.replace(tokens=tokens, cost=cost))
    return Permit(permit.ask, reservation, permit.most_output)


def most_tokens(messages: Iterable[BaseMessage], tools: Sequence[Any] = ()) -> int:
    """Return a number of tokens that a request cannot exceed, images apart."""
    total = TOKENS_OF_A_REQUEST + sum(_of_message(message) for message in messages)
    if tools:
        total += TOKENS_OF_TOOLS + sum(_of_json(_schema(tool)) for tool in tools)
    return total


def likely_tokens(messages: Iterable[BaseMessage], tools: Sequence[Any] = ()) -> int:
    """Return at most `most_tokens`: what a request in a usual language does not exceed."""
    most = likely = 0
    for message in messages:
        text = message.text
        bound, size = _of_message(message), bytes_of(text)
        most += bound
        # What is not text, an image or the call of a tool, counts in full.
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
    """The schemas of tools and of the reply that are in a call's parameters."""
    given = (parameters.get(name) for name in _NAMES_OF_TOOLS)
    found: list[Any] = []
    for one in given:
        found += cast("list[Any]", one) if isinstance(one, list) else [one] if one else []
    return found


def bytes_of(text: str) -> int:
    """The bytes of a text, which its tokens cannot be more than."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def most_tokens_of_reply(message: BaseMessage) -> int:
    """Return a number of tokens that a reply cannot exceed, where its server does not say."""
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
    # A provider's own tool is there as a mapping already.
    return cast("Any", tool) if isinstance(tool, dict) else convert_to_openai_tool(tool)
