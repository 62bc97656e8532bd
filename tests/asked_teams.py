"""The team of a page, whose specialists are functions that do what stands there.

A `team` block has options of the team (`host`: those of its host) and `members`: their cards, for
specialists that are functions, and for a chat model `chat: true`. What a function does is its task,
but for what `does` has for a step, by its number (`1`, `1/name`) or its text: a text, or what
`_done` knows; of a list, the first entry at first. `its key` counts the keys by which services know
work again, `what it sees` the messages of the conversation. `what it knows` is what it is given of
the `knowledge`. That is what each search finds: chunks, or what it `returns` or `raises`, or
`hangs`.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from langchain_core.messages import AIMessage
from langgraph.types import interrupt

from replan import (
    Budget,
    Host,
    Limits,
    MemoryOptions,
    Price,
    RAGOptions,
    Specialist,
    SpecialistResult,
    Team,
    ask_user,
)
from transcripts import error_of

_DEFAULT = {"payer": {"intended_use": "Pays invoices."}}
_CHAT = {"researcher": "Finds facts.", "analyst": "Compares things."}


def team_of(options: dict[str, Any], chat: Any) -> Team:
    """Make the team of a page, whose models are this one."""
    options = dict(options)
    members = options.pop("members", _DEFAULT)
    does, times, keys = options.pop("does", {}), Counter[Any](), dict[str, int]()
    if members == _DEFAULT:
        members = members | {
            name: {"intended_use": use, "chat": True} for name, use in _CHAT.items()
        }
    team = [
        _member(name, dict(card), _working(name, does, times, keys), chat)
        for name, card in members.items()
    ]
    host = Host(chat, **options.pop("host", {}))
    prices = {name: Price(**price) for name, price in options.pop("prices", {}).items()}
    found = options.pop("knowledge", None)
    knowledge = None if found is None else _Found(found)
    return Team(host, team, prices=prices, knowledge=knowledge, **made(options))


def _member(name: str, card: dict[str, Any], work: Any, chat: Any) -> Specialist:
    way: dict[str, Any] = {"chat_model": chat} if card.pop("chat", False) else {"run": work}
    way |= {"limits": Budget(**card.pop("limits"))} if "limits" in card else {}
    return Specialist(name, **way | made(card))


def made(options: dict[str, Any]) -> dict[str, Any]:
    """The options with objects for what a page has as fields."""
    kinds: dict[str, Any] = {"limits": Limits, "rag": RAGOptions, "memory": MemoryOptions}
    return options | {name: kinds[name](**options[name]) for name in kinds.keys() & options.keys()}


def _working(
    name: str, does: dict[Any, Any], times: Counter[Any], keys: dict[str, int]
) -> Callable[[Any], Awaitable[Any]]:
    """A function that does what a page has for a step, or else its task."""

    async def work(context: Any) -> Any:
        step, task = context.plan_step.id, context.task_description
        named = [f"{step}/{name}", step, task]
        key = next((each for each in named if each in does), task)
        done = does.get(key, f"{task} is done")
        times[key] += 1
        known = keys.setdefault(context.idempotency_key, len(keys) + 1)
        if isinstance(done, list):
            done = done[min(times[key], len(done)) - 1]
        if done == "what it knows":
            return context.knowledge_context
        if done == "what it sees":
            return f"{len(context.messages)} messages"
        if done == "its key":
            done = f"key {known}"
        inputs = "; ".join(f"{number}: {text}" for number, text in context.inputs.items())
        return await _done(done, f" ({inputs})" if inputs else "")

    return work


async def _done(does: Any, inputs: str) -> Any:
    match does:
        case {"asks": _} | {"interrupts": _}:
            return f"heard {_heard(**does)}{inputs}"
        case {"raises": error}:
            raise error_of(error)
        case "hangs":
            await asyncio.Event().wait()
        case dict():
            return _result(does, inputs)
    return f"{does}{inputs}"


class _Found:
    """A retriever that finds what a page has."""

    def __init__(self, found: Any) -> None:
        self._found = found

    async def search(self, _: Any) -> Any:
        match self._found:
            case list(chunks):
                return {"chunks": chunks}
            case {"returns": value}:
                return value
            case other:
                return await _done(other, "")


def _heard(asks: str | list[str] = "", interrupts: str = "", choices: Any = None) -> str:
    """What a person answers; of a list, one question after the other is asked."""
    if interrupts:
        return str(interrupt(interrupts))
    asked = asks if isinstance(asks, list) else [asks]
    return " and ".join(str(ask_user(each, choices)) for each in asked)


def _result(does: dict[str, Any], inputs: str) -> SpecialistResult:
    match does:
        case {"fails": error}:
            return SpecialistResult(status="failed", error=error, retry=does.get("retry", False))
        case {"half": text}:
            return SpecialistResult(status="partial", result=AIMessage(f"{text}{inputs}"))
    text = does["wants a revision"]
    result = None if text is None else AIMessage(f"{text}{inputs}")
    return SpecialistResult(result=result, replan_needed=True)
