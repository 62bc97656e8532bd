"""What every store of sessions must do: in memory, in SQLite and in PostgreSQL."""

import asyncio
import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from replan.errors import SessionConflictError
from replan.ports.session_store import SessionKey, SessionTurn
from replan.sessions import AgentContext, HistoryPage, Message, ToolExecution
from unit.storage.conftest import _opener

NOON = datetime(2026, 11, 25, 12, 0, tzinfo=UTC)
ANNA = SessionKey("shop", "anna", "s")
VALUES: list[Any] = [None, False, 1, 1.5, "", "grün \x01", [], {"a": [None, {"b": 2}]}, {"set": 1}]


@pytest.fixture(params=["memory", "sqlite", "encrypted sqlite", "postgres"])
async def sessions(request):
    async with _opener(request.param, request)() as storage:
        yield storage.sessions


def said(text, role="user"):
    return Message(role=role, content=text, timestamp=NOON.isoformat())


def called(name):
    return ToolExecution(id=name, tool_name=name, success=True)


def turn_of(before, after, name="1", *, minute=0, **fields):
    return SessionTurn(
        turn_id=name,
        at=NOON + timedelta(minutes=minute),
        stage=after.current_stage,
        updates=before.updates_to(after),
        **{"given": "digest", "title": "Paint", **fields},
    )


async def talked(sessions, key, *texts, minute=0):
    """A session in which each text was a turn."""
    for number, text in enumerate(texts):
        kept = await sessions.load(key)
        before = kept.context if kept else AgentContext(session_id=key.session_id)
        after = before.replace(dialogue_history=(*before.dialogue_history, said(text)))
        turn = turn_of(before, after, f"turn {text}", minute=minute + number)
        await sessions.append(key, turn, number)


async def texts_of(sessions, key):
    kept = await sessions.load(key)
    return [each.content for each in kept.context.dialogue_history]


def changed(context: AgentContext, draw: random.Random, number: int) -> AgentContext:
    """A session after anything that updates can say."""
    history, calls = context.dialogue_history, context.tool_execution_history
    added = tuple(said(f"{number}/{place}") for place in range(draw.randrange(4)))
    new: dict[str, Any] = {"dialogue_history": (*history, *added)}
    if draw.random() < 0.15:
        new["dialogue_history"] = (*history[draw.randrange(3) :], said(f"anew {number}"))
    if draw.random() < 0.5:
        new["tool_execution_history"] = () if draw.random() < 0.2 else (*calls, called("pay"))
    new["current_stage"] = draw.choice(["done", "question", context.current_stage])
    for field in ("project_state", "session_metadata"):
        entries = {**getattr(context, field), draw.choice("abcü/"): draw.choice(VALUES)}
        entries.pop(draw.choice("abcd"), None)
        new[field] = entries
    return context.replace(**new)


async def test_whatever_turns_change_is_read_back_at_each_version(sessions):
    """Turns, edits, turns that are taken back, sessions that are taken over."""
    draw = random.Random(3)  # noqa: S311 - no secret
    versions = [AgentContext(session_id="s")]
    for number in range(30):
        kept = await sessions.load(ANNA)
        newest = kept.newest if kept else 0
        now, fields = versions[-1], dict[str, Any]()
        if newest and draw.random() < 0.35:
            now = versions[newest - 1]
            fields = {"takes_back": newest, "given": draw.choice(["", "digest"])}
        elif draw.random() < 0.1:
            fields = {"given": ""}
        after = changed(now, draw, number)
        turn = turn_of(now, after, f"turn {number}", minute=number, **fields)
        await sessions.append(ANNA, turn, number)
        versions.append(after)
        kept = await sessions.load(ANNA)
        assert (kept.context, kept.version) == (after, number + 1)
        assert await sessions.turn(ANNA, turn.turn_id) == turn.replace(updates={})
    for version, context in enumerate(versions[1:], start=1):
        assert (await sessions.load(ANNA, version)).context == context
    pages, before = list[Message](), None
    while page := await sessions.history(ANNA, before, 3):
        pages[:0] = page.messages
        before = page.before
        if before is None:
            break
    assert tuple(pages) == versions[-1].dialogue_history
    (record,) = await sessions.recent("shop", "anna", 9)
    assert (record.session_id, record.version, record.title) == ("s", 30, "Paint")
    assert record.created_at == NOON
    assert record.updated_at == NOON + timedelta(minutes=29)


async def test_a_turn_is_appended_to_the_version_that_it_was_taken_at(sessions):
    await talked(sessions, ANNA, "a", "b")
    context = AgentContext(session_id="s")
    for version in (0, 1, 3):
        late = turn_of(context, context.replace(current_stage="late"), "late")
        with pytest.raises(SessionConflictError) as raised:
            await sessions.append(ANNA, late, version)
        assert (raised.value.expected, raised.value.found) == (version, 2)
    assert await texts_of(sessions, ANNA) == ["a", "b"]
    assert await sessions.turn(ANNA, "late") is None


async def test_of_many_who_append_at_once_one_does(sessions):
    context = AgentContext(session_id="s")

    async def one(number):
        turn = turn_of(context, context.replace(dialogue_history=(said("x"),)), str(number))
        try:
            await sessions.append(ANNA, turn, 0)
        except SessionConflictError as error:
            return error.found
        return 0

    found = await asyncio.gather(*(one(number) for number in range(8)))
    assert sorted(found) == [0] + [1] * 7
    assert await texts_of(sessions, ANNA) == ["x"]


async def test_a_session_belongs_to_its_tenant_and_user(sessions):
    others = [SessionKey("shop", "tom", "s"), SessionKey("", "anna", "s"), SessionKey("", "", "s")]
    await talked(sessions, ANNA, "mine")
    for key in others:
        assert await sessions.load(key) is None
        assert await sessions.turn(key, "turn mine") is None
        assert await sessions.history(key, None, 9) == HistoryPage(messages=(), before=None)
        assert list(await sessions.recent(key.tenant, key.user, 9)) == []
    await talked(sessions, others[0], "another's")
    await sessions.remove(ANNA)
    assert await sessions.load(ANNA) is None
    assert await sessions.turn(ANNA, "turn mine") is None
    assert await texts_of(sessions, others[0]) == ["another's"]
    await talked(sessions, ANNA, "begun anew")
    assert await texts_of(sessions, ANNA) == ["begun anew"]


async def test_the_sessions_of_a_user_are_listed_and_the_old_ones_found(sessions):
    keys = [SessionKey("shop", "anna", name) for name in "abc"]
    for minute, key in enumerate(keys):
        await talked(sessions, key, "Hello", minute=10 * minute)
    await talked(sessions, SessionKey("shop", "tom", "d"), "Hello", minute=5)
    records = await sessions.recent("shop", "anna", 2)
    assert [(each.session_id, each.title, each.version) for each in records] == [
        ("c", "Paint", 1),
        ("b", "Paint", 1),
    ]
    old = await sessions.unused_since(NOON + timedelta(minutes=10))
    assert sorted(old) == [keys[0], SessionKey("shop", "tom", "d")]
