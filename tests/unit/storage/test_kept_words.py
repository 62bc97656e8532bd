"""With a key, a new process finds the words of items together, and opens only what is new."""

import pytest
from langgraph.store.base import PutOp
from sqlalchemy import update

from replan import open_storage
from replan.adapters.storage.store.full_text import words_in
from replan.adapters.storage.store.words_in_memory import FORM
from replan.adapters.storage.stored_values import places
from replan.adapters.storage.stored_values.sealing import Cipher, cipher_of
from replan.adapters.storage.tables.schema import kept_words
from stored_tables import changing

MANY = 150
FEW = 6
"""Values that a search opens beside the items: a token of the key, what is kept of the words."""
KEY = "a key that only the test knows"


@pytest.fixture(params=["tmp_path", "empty_database"])
def where(request):
    place = request.getfixturevalue(request.param)
    return str(place) if request.param == "empty_database" else str(place / "facts.db")


async def fill(store, *who, first=0, many=MANY):
    puts = [
        PutOp((*who, "facts"), str(at), {"text": f"Parcel {at} goes to town{at % 7}."})
        for at in range(first, first + many)
    ]
    await store.abatch(puts)


@pytest.fixture
def opens(monkeypatch):
    """The places of all values that are decrypted."""
    places = []
    open_value = Cipher.open
    monkeypatch.setattr(
        Cipher,
        "open",
        lambda self, data, place: places.append(place) or open_value(self, data, place),
    )
    return places


async def found(where, query, *prefix, before=()):
    """Search in newly opened storage: the keys of what is found."""
    async with open_storage(where, key=KEY) as storage:
        for place, key, text in before:
            value = None if text is None else {"text": text}
            await storage.store.abatch([PutOp((place, "facts"), key, value)])
        items = await storage.store.asearch(prefix, query=query, limit=MANY)
        return {each.key for each in items}


def kept(where):
    with changing(where) as connection:
        rows = connection.exec_driver_sql("SELECT prefix, value FROM replan_kept_words")
        return {prefix: bytes(value) for prefix, value in rows}


def opened(where, prefix):
    with changing(where) as connection:
        query = "SELECT value FROM replan_facts WHERE name = 'salt'"
        salt = bytes(connection.exec_driver_sql(query).scalar_one())
    return cipher_of(KEY, salt).open(kept(where)[prefix], places.of_kept_words(prefix, FORM))


async def test_the_first_search_of_a_process_opens_only_what_is_new(where, opens):
    async with open_storage(where, key=KEY) as storage:
        await fill(storage.store, "eva")
    opens.clear()
    assert len(await found(where, "parcel 17", "eva")) == MANY
    assert len(opens) >= MANY
    opens.clear()
    assert await found(where, "zebra", "eva", before=[("eva", "new", "A zebra.")]) == {"new"}
    assert len(opens) <= FEW
    assert await found(where, "zebra town3", "eva") == {
        "new",
        *(str(at) for at in range(3, MANY, 7)),
    }


async def test_nothing_is_kept_of_what_was_deleted_or_replaced(where, opens):
    async with open_storage(where, key=KEY) as storage:
        await fill(storage.store, "eva")
        await fill(storage.store, "bob", many=2)
        for key, text in {"zebra": "A zebra.", "okapi": "An okapi."}.items():
            await storage.store.aput(("eva", "facts"), key, {"text": text})
    for prefix in ((), ("eva",)):
        assert await found(where, "zebra okapi", *prefix) == {"zebra", "okapi"}
    for prefix in ("", "eva."):
        assert b"zebra" in opened(where, prefix)
    gone = ("eva", "zebra", None)
    # Who deletes leaves the words of the others behind.
    assert await found(where, "zebra", "eva", before=[gone]) == set()
    changed = ("eva", "okapi", "A gnu.")
    assert await found(where, "okapi", before=[changed]) == set()
    for prefix in ("", "eva."):
        left = opened(where, prefix)
        assert b"gnu" in left or prefix
        assert not [each for each in (b"zebra", b"okapi") if each in left]
    opens.clear()
    assert await found(where, "gnu", "eva") == {"okapi"}
    assert len(opens) <= FEW
    async with open_storage(where, key=KEY) as storage:
        await fill(storage.store, "bob", first=2)
        await storage.store.asearch(("bob",), query="parcel")
    assert kept(where).keys() == {"", "eva.", "bob."}


async def test_kept_words_that_are_not_those_of_their_place_are_told_and_made_anew(where, caplog):
    async with open_storage(where, key=KEY) as storage:
        await fill(storage.store, "eva")
        await fill(storage.store, "bob", first=MANY)
        for who in ("eva", "bob"):
            await storage.store.asearch((who,), query="parcel")
    before = kept(where)
    with changing(where) as connection:
        for prefix, other in (("eva.", "bob."), ("bob.", "eva.")):
            connection.execute(
                update(kept_words).where(kept_words.c.prefix == other).values(value=before[prefix])
            )
    assert await found(where, "town3", "eva") == {str(at) for at in range(3, MANY, 7)}
    assert "kept words" in caplog.text
    caplog.clear()
    assert len(await found(where, "parcel", "eva")) == MANY
    assert not caplog.text
    assert kept(where)["eva."] not in (before["eva."], before["bob."])


async def test_a_file_without_a_key_keeps_no_words_twice(tmp_path):
    async with open_storage(tmp_path / "plain.db") as storage:
        await fill(storage.store, "eva")
        await storage.store.asearch(("eva",), query="parcel")
    assert kept(str(tmp_path / "plain.db")) == {}


def test_the_form_of_kept_words_changes_with_the_words():
    # If this fails, raise FORM: what is kept would be searched for words of another form.
    said = "geteventtype  喝  茶  strasse café get event type"
    assert (words_in("getEventType 喝茶 STRASSE café"), FORM) == (said, 1)
