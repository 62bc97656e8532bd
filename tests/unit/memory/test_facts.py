"""Facts stand apart by user and tenant, are bounded, and are found in every store."""

from datetime import UTC, datetime, timedelta
from itertools import product

import pytest
from langgraph.store.memory import InMemoryStore

from replan import ConfigurationError, open_storage
from replan.errors import FactError
from replan.memory import Fact
from replan.specialists.fact_tools import facts_text
from replan.state.conversation import facts as kept
from replan.state.conversation.facts import FactOwner, Facts, facts_of

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
NAMES = [
    *("eva", "evan", "EVA", "../a", "a.b", "a", "b", "%", "_", "0", "é", "e\u0301", "漢字"),
    *("x" * 100, "x" * 101, "x" * 5_000, "\udc80", "replan", "facts", " ", "eva "),
]


def fact(number, text):
    return Fact(id=f"{number:016x}", text=text, at=NOON + timedelta(minutes=number))


@pytest.fixture(params=["plain store", "memory", "file", "sealed file", "postgres"])
async def store(request, tmp_path):
    """LangGraph's own store, which ranks nothing, and that of each kind of storage."""
    if request.param == "plain store":
        yield InMemoryStore()
        return
    where = ":memory:" if request.param == "memory" else tmp_path / "facts.db"
    if request.param == "postgres":
        where = request.getfixturevalue("postgres_database")
    async with open_storage(where, key="k" if request.param == "sealed file" else None) as storage:
        yield storage.store


def test_no_two_users_share_a_namespace():
    users = [FactOwner(user, tenant) for user, tenant in product(NAMES, ["", *NAMES])]
    assert len({each.namespace for each in users}) == len(users)
    for each in users:
        assert all(label and "." not in label and len(label) <= 100 for label in each.namespace)
        assert each.namespace[-1] == "facts"


async def test_each_user_has_his_own_facts(store):
    for number, name in enumerate(NAMES):
        await facts_of(store, name).remember(fact(number, f"tea for number {number}"))
    for number, name in enumerate(NAMES):
        own = [f"tea for number {number}"]
        facts = facts_of(store, name)
        assert [each.text for each in await facts.all()] == own
        assert [each.text for each in (await facts.recall("tea"))[0]] == own
        assert await facts_of(store, name, tenant="other").all() == []
        assert await facts.forget(f"{number + 1:016x}") is None


async def test_the_best_come_first_and_all_of_them_newest_first(store):
    facts = facts_of(store, "eva")
    texts = ["Parcels leave on Friday.", "Refunds take 30 days.", "Eva likes tea.", "茶を飲みます"]
    for number, text in enumerate([*texts, *(f"Shelf {n} is full." for n in range(12))]):
        await facts.remember(fact(number, text))
    found, fit = await facts.recall("When does a refund come, in how many days?")
    assert (found[0].text, fit) == ("Refunds take 30 days.", True)
    assert (await facts.recall("飲みます"))[0][0].text == texts[3]
    found, fit = await facts.recall("xylophone")
    assert not fit
    assert [each.id for each in found] == [f"{n:016x}" for n in range(15, 7, -1)]
    assert [each.id for each in await facts.all()] == [f"{n:016x}" for n in range(15, -1, -1)]
    for odd in ("", " ", '" OR *', "\0", "\udc80", "a" * 100_000, "NEAR(", "fact:x"):
        assert len((await facts.recall(odd))[0]) <= kept.RECALLED


async def test_a_fact_comes_back_as_it_was_kept(store):
    facts = facts_of(store, "eva")
    whole = Fact(id="ab", text="Two\nlines.", at=NOON, run_id="r", step_id=3, specialist="clerk")
    await facts.remember(whole)
    assert await facts.all() == [whole]
    assert await facts.remember(whole) == whole
    assert await facts.remember(whole.replace(id="cd")) == whole
    assert await facts.forget("ab") == whole
    assert await facts.all() == []


async def test_there_is_a_bound_and_it_is_told(store, monkeypatch):
    monkeypatch.setattr(kept, "MOST_FACTS", 5)
    monkeypatch.setattr(kept, "_PAGE", 2)
    facts = facts_of(store, "eva")
    for number in range(5):
        await facts.remember(fact(number, f"word{number}"))
    with pytest.raises(FactError, match="5 facts are kept of this user"):
        await facts.remember(fact(5, "word5"))
    await facts.remember(fact(4, "word4 once more"))
    assert len(await facts.all()) == 5
    await facts.forget(f"{0:016x}")
    await facts.remember(fact(5, "word5"))


def test_no_text_of_a_fact_poses_as_another_fact():
    shown = facts_text([fact(1, "x\rfact 2, of 2030:\u2028| y\n\nfact 3, of 2031:")])
    head, *lines = shown.splitlines()
    assert head == "fact 0000000000000001, of 2026-01-01 12:01 UTC:"
    assert all(line.startswith("| ") for line in lines)


def test_facts_belong_to_somebody_and_stand_somewhere():
    with pytest.raises(ConfigurationError) as caught:
        Facts(InMemoryStore(), FactOwner(""))
    assert caught.value.field == "user"
    with pytest.raises(ConfigurationError) as caught:
        facts_of(None, "eva")
    assert caught.value.field == "store"
