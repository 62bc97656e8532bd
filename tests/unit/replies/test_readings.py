"""What is read of a reply, and what is asked where it does not say so.

`test_readings.yaml` has replies below what they show, who reads them (`by`), and what is read: what
has nothing in it, or says no, is left out. Where a `within` stands, the same is read of each reply
in each of its texts.
"""

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel, Field

from cases import cases_of, check_cases
from golden import as_yaml
from replan.prompts.replies.body_stream import BodyStream
from replan.prompts.replies.keys import COMPLEXITY, FEEDBACK, HOST, STATUS, THINK, VERDICT, Key
from replan.prompts.replies.readings import (
    read_answer,
    read_feedback,
    read_specialist,
    read_think,
    says_complete,
    says_simple,
)
from replan.prompts.replies.reply import Keys, read_reply
from replan.prompts.replies.shape import MisshapenError, Shape
from replan.prompts.replies.unfinished import is_unfinished

TEAM = ("researcher", "coder", "writer")


def parts_of(text: str, keys: Keys) -> dict[str, Any]:
    reply = read_reply(text, keys)
    told = {"fields": dict(reply.fields), "body": reply.body, "problem": reply.problem}
    return {name: part for name, part in (told | {"unread": reply.unread}).items() if part}


def shown(stream: Callable[[], BodyStream], text: str) -> dict[str, Any]:
    """What is shown while a reply arrives: the same at once and sign by sign."""
    told = list[str]()
    for parts in ([text], list(text)):
        streamed = stream()
        told += ["".join(map(streamed.feed, parts))]
        assert streamed.is_streaming == (streamed.fields is not None or bool(told[-1])), text
    assert told == told[:1] * 2
    assert read_answer(text).body.startswith(told[0])
    found = {"shown": told[0], "fields": dict(streamed.fields or {})}
    return {name: each for name, each in found.items() if each}


class Price(BaseModel):
    item: str
    cents: int = Field(ge=0)


class Lenient(BaseModel):
    name: str = ""
    cents: int = 0
    tags: list[str] = []


def shaped(kind: type[BaseModel], text: str) -> Any:
    try:
        return Shape(kind).read(text)
    except MisshapenError as refused:
        # What Python says of JSON is its own, and differs.
        return f"refused: {refused}".partition(" in it: ")[0]


READERS: dict[str, Callable[[str], Any]] = {
    "think": lambda text: read_think(text, TEAM),
    "think of an exact team": lambda text: read_think(text, TEAM, 0.3),
    "feedback": lambda text: read_feedback(text, TEAM),
    "feedback of nobody": read_feedback,
    "feedback for a planner": lambda text: read_feedback(text, TEAM, holds_plan=False),
    "specialist": read_specialist,
    "answer": read_answer,
    "reply": lambda text: parts_of(text, HOST),
    "reply to think": lambda text: parts_of(text, THINK),
    "reply to feedback": lambda text: parts_of(text, FEEDBACK),
    "body": lambda text: read_reply(text, HOST).body,
    "value of complexity": COMPLEXITY.value_of,
    "value of verdict": VERDICT.value_of,
    "value of status": STATUS.value_of,
    "value of a number": Key("n", "number").value_of,
    "value of a flag": Key("f", "flag").value_of,
    "unfinished": is_unfinished,
    "shown": lambda text: shown(BodyStream, text),
    "shown at once": lambda text: shown(lambda: BodyStream(None), text),
    "price": lambda text: shaped(Price, text),
    "lenient price": lambda text: shaped(Lenient, text),
}


def read(section: dict[str, Any], text: str) -> Any:
    """What is read of a reply, which is the same in all texts that it may stand in."""
    around = section.get("within", ["{}"])
    found = [READERS[section["by"]](each.replace("{}", text)) for each in around]
    told = [as_yaml(each) for each in found]
    assert told == told[:1] * len(told), text
    return found[0]


@pytest.mark.parametrize("name", cases_of(__file__))
def test_of_a_reply_is_read_what_the_page_has(name: str) -> None:
    check_cases(__file__, name, read)


def test_the_form_that_a_complaint_shows_can_be_read() -> None:
    for by in (read_think, read_feedback):
        asked = by("")
        assert asked.complaint == f"{asked.wrong} {asked.form}"
        assert not by(asked.form.split("\n", 1)[1]).wrong


def test_a_front_matter_alone_says_whether_an_answer_follows() -> None:
    assert says_simple({"complexity": "simple"})
    assert says_simple({"score": "0.2"})
    assert not says_simple({"score": "0.2"}, 0.1)
    assert not says_simple({"complexity": "complex"})
    assert not says_simple({})
    assert says_complete({"verdict": "complete"})
    assert not says_complete({"verdict": "continue"})
    assert not says_complete({"feedback": "done"})


def test_half_a_character_is_replaced() -> None:
    assert read_reply("a\ud800", HOST).body == "a\ufffd"
