"""What a line says as an answer, and what is said about answers that lack."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from pydantic import JsonValue

from replan.runs.asked.asks import PLAN, Ask
from replan.views.cells import counted


def bound(ask: Ask, given: JsonValue) -> JsonValue:
    """An answer to a question unchanged; a decision with its subject."""
    if ask.kind == "question":
        return given
    return (
        {**given, "fingerprint": ask.fingerprint} if isinstance(given, dict) else ask.bound(given)
    )


def by_key(text: str) -> str | Mapping[str, Any]:
    """What a program answers: a text, or answers by key as JSON."""
    if not text.lstrip().startswith("{"):
        return text
    try:
        found: object = json.loads(text)
    except json.JSONDecodeError:
        return text
    return cast("dict[str, Any]", found) if isinstance(found, dict) and found else text


def left_open(asks: Sequence[Ask]) -> str:
    """The message if the person leaves something open."""
    if [ask.kind for ask in asks] == ["question"]:
        return "Left open. Type the answer, or press Enter to see the question again."
    what = "The plan waits" if asks[0].key == PLAN else counted(len(asks), "thing") + " left open"
    return f"{what}. Press Enter to see it again; /undo goes one step back."
