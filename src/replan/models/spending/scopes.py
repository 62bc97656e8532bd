"""What a call may take, by an estimate that is seldom low, and the scopes that bound it.

No server says before a call what it will count. The numbers are such that for English and Chinese
prompts, and for JSON and code in them, the usual tokenizers count less in 99 of 100 cases: English
prompts have 0.23 to 0.3 tokens a character, digits and marks 0.5 to 1, Chinese 0.5 to 1.3.
"""

import json
import math
import string
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, cast

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.utils.function_calling import convert_to_openai_tool

from replan.base.errors import LimitReachedError, UnpricedModelError
from replan.log.amounts import NOTHING, Bound, Reservation, Spending
from replan.ports.built_in import built_in_models
from replan.state.limits import (
    CLOSING_TOKENS,
    LEAST_CLOSING_REPLY,
    LEAST_CLOSING_REQUEST,
    Budget,
    ClosingReserve,
    Limits,
    Price,
)

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


RUN = "run"  # the scope of a whole run

AMOUNTS = ("tokens", "cost")
"""What of a call is known only when it has ended."""

LEAST_REPLY = 64  # tokens for its reply without which a call is not worth its money
ENOUGH = 1_024  # tokens for its reply that a call waits for while others may still make room
SHARE = 4  # while others are in flight, a call takes one part in this many of the free room

_FREE = Price(input=0, output=0)
_LIMITS = {
    "calls": "max_model_calls",
    "tokens": "max_tokens",
    "cost": "max_cost",
    "seconds": "max_seconds",
}


@dataclass(frozen=True, slots=True)
class Scope:
    """A part of a run that has bounds of its own."""

    name: str  # `run`, `specialist/<name>` or `step/<id>`
    budget: Budget
    # What of that is kept back for others.
    kept: ClosingReserve = field(default_factory=ClosingReserve)

    @property
    def bound(self) -> Bound:
        budget = self.budget
        return Bound(
            scope=self.name,
            calls=None if budget.max_model_calls is None else int(self.most("calls")),
            tokens=None if budget.max_tokens is None else int(self.most("tokens")),
            cost=None if budget.max_cost is None else self.most("cost"),
        )

    @property
    def bounds_amounts(self) -> bool:
        """Whether it bounds tokens or money, which are unknown before a call."""
        return self.budget.max_tokens is not None or self.budget.max_cost is not None

    def limit(self, kind: str) -> tuple[str, float | None]:
        """The limit of `calls`, `tokens`, `cost` or `seconds`, and its value."""
        return _LIMITS[kind], getattr(self.budget, _LIMITS[kind])

    def most(self, kind: str) -> float:
        """The maximum of `calls`, `tokens`, `cost` or `seconds` that may be charged."""
        limit = getattr(self.budget, _LIMITS[kind])
        return math.inf if limit is None else max(0.0, limit - getattr(self.kept, kind))

    def reached(self, kind: str, spent: float = 0, wants: float = 0) -> LimitReachedError:
        """The error for a call without room; `spent` is charged already, `wants` is needed."""
        name, kept = _LIMITS[kind], getattr(self.kept, kind)
        value = getattr(self.budget, name)
        return LimitReachedError(name, value, self.name, spent=spent, wants=wants, kept=kept)


@dataclass(frozen=True, kw_only=True, slots=True)
class CallRequest:
    """A call that wants to be made."""

    id: str  # unique
    run_id: str
    model: str
    scopes: Sequence[Scope]  # what the call is charged to
    input_tokens: int  # tokens of its request, as far as one can judge
    output_tokens: int  # tokens of its reply, at most, if there is room
    price: Price | None = None  # what it costs; none: nothing is known, and nothing bounds it
    # Calls that are in flight, and that this one is made inside.
    part_of: frozenset[str] = frozenset()

    def cost(self, input_tokens: float, output_tokens: float) -> float:
        return 0.0 if self.price is None else self.price.of(input_tokens, output_tokens)


@dataclass(frozen=True, slots=True)
class Permit:
    """The permission to make a call."""

    call: CallRequest
    reservation: Reservation  # what is charged until it is settled
    # Tokens that its reply may have; none where neither tokens nor money are bound.
    most_output: int | None

    @property
    def id(self) -> str:
        return self.call.id


def fit(
    call: CallRequest, charged: Mapping[str, Spending], crowded: Collection[str] = ()
) -> Permit | LimitReachedError:
    """Fit a call into what its scopes have left.

    Args:
        call: The call.
        charged: What each scope is charged with, reservations in full.
        crowded: The scopes in which other calls are in flight, which need room and will make some.
    """
    for scope in call.scopes:
        calls = charged.get(scope.name, NOTHING).calls
        if calls + 1 > scope.most("calls"):
            return scope.reached("calls", calls, 1)
    most, is_bounded = float(call.output_tokens), False
    for scope in call.scopes:
        if not scope.bounds_amounts:
            continue
        is_bounded, spent = True, charged.get(scope.name, NOTHING)
        room, kind = _room(scope, spent, call)
        is_crowded = scope.name in crowded
        least = min(call.output_tokens, ENOUGH if is_crowded else LEAST_REPLY)
        if room < least:
            return _refusal(scope, kind, spent, call, least)
        most = min(most, max(least, room / SHARE) if is_crowded else room)
    output = int(most)
    tokens, cost = call.input_tokens + output, call.cost(call.input_tokens, output)
    amount = Spending(calls=1, tokens=tokens, cost=cost)
    reservation = Reservation(id=call.id, run_id=call.run_id, amount=amount)
    return Permit(call, reservation, output if is_bounded else None)


def _room(scope: Scope, spent: Spending, call: CallRequest) -> tuple[float, str]:
    """The tokens of a reply that fit in addition to the request, and what bounds them."""
    tokens = scope.most("tokens") - spent.tokens - call.input_tokens
    money = scope.most("cost") - spent.cost - call.cost(call.input_tokens, 0)
    each = call.cost(0, 1)
    affordable = money / each if each else (math.inf if money >= 0 else -1.0)
    return (tokens, "tokens") if tokens <= affordable else (affordable, "cost")


def _refusal(
    scope: Scope, kind: str, spent: Spending, call: CallRequest, least: int
) -> LimitReachedError:
    if kind == "cost":
        return scope.reached("cost", spent.cost, call.cost(call.input_tokens, least))
    return scope.reached("tokens", spent.tokens, call.input_tokens + least)


class Pricing(Protocol):
    """What models cost and specialists may spend; `Services` has them."""

    @property
    def prices(self) -> Mapping[str, Price]: ...

    @property
    def unpriced(self) -> Mapping[str, str]: ...

    @property
    def budgets(self) -> Mapping[str, Budget]: ...

    @property
    def is_direct(self) -> bool: ...


def run_scope(limits: Limits, terms: Pricing, *, closing: bool) -> Scope:
    """The scope of the whole run; only a `closing` call may use what is kept for its answer."""
    if closing or terms.is_direct:
        # Without a host, nobody answers after the step.
        return Scope(RUN, limits.whole)
    kept = limits.kept
    if prices := [price for price in terms.prices.values() if price is not _FREE]:
        most = max(price.of(CLOSING_TOKENS, CLOSING_TOKENS) for price in prices)
        least = max(price.of(LEAST_CLOSING_REQUEST, LEAST_CLOSING_REPLY) for price in prices)
        least = min(least, (limits.max_cost or 0.0) / 2)
        kept = replace(kept, cost=min(most, max(kept.cost, least)))
    return Scope(RUN, limits.whole, kept)


def step_scopes(limits: Limits, terms: Pricing, specialist: str, step_id: int) -> list[Scope]:
    """The scopes that a step of a specialist is charged to: the run, and those inside it."""
    scopes = [run_scope(limits, terms, closing=False)]
    # A scope without bounds would be charged, and refuse nothing.
    if (budget := terms.budgets.get(specialist)) is not None and budget.model_fields_set:
        scopes.append(Scope(f"specialist/{specialist}", budget))
    if limits.per_step.model_fields_set:
        scopes.append(Scope(f"step/{step_id}", limits.per_step))
    return scopes


def check_prices(limits: Limits, terms: Pricing) -> None:
    """Refuse a bound on money if a price is missing."""
    budgets = (limits.whole, limits.per_step, *terms.budgets.values())
    if any(budget.max_cost is not None for budget in budgets):
        for field, model in terms.unpriced.items():
            raise UnpricedModelError(field, model)


def price_of(names: Iterable[str], prices: Mapping[str, Price]) -> Price | None:
    """The price of a model, by the first of its names that has one; built-in ones are free."""
    return known_price(names, with_free_ones(prices))


def known_price(names: Iterable[str], prices: Mapping[str, Price]) -> Price | None:
    """The price under one of a model's names."""
    return next((prices[name] for name in names if name in prices), None)


def with_free_ones(prices: Mapping[str, Price]) -> Mapping[str, Price]:
    """Prices, and those of the built-in models, which cost nothing."""
    return {**dict.fromkeys(built_in_models(), _FREE), **prices}
