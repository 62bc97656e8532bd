"""Items are found by the words of their texts, in the same way in every kind of storage."""

import pytest

FACTS = {
    "hike": "Ana likes hiking in the mountains of Norway.",
    "tea": "Ana drinks green tea in the morning.",
    "coffee": "Ana does not drink coffee.",
    "café": "Their café is in the Rue de la Paix, Zürich.",
    "apple": "她喜欢吃苹果，不喜欢喝茶。",
    "type": "The name of the method is getEventType.",
    "street": "Bob lives in a STRASSE in Bonn.",
    "dog": "Bob has a dog called Rex, and Rex is old.",
    "car": "Bob drives a red car.",
    "long": "Bob has much to do. " + "He works and works on other things. " * 9 + "His car is old.",
}


@pytest.fixture
async def facts(store):
    for key, text in FACTS.items():
        await store.aput(("facts", "me"), key, {"text": text})
    return store


async def found(store, query, *prefix, **options):
    return [each.key for each in await store.asearch(prefix or ("facts",), query=query, **options)]


QUERIES = [
    ("mountain hikes", ["hike"]),
    ("Who is HIKING?", ["hike"]),
    ("cafe zurich", ["café"]),
    ("苹果", ["apple"]),
    ("喜欢苹果吗", ["apple"]),
    ("event type", ["type"]),
    ("straße", ["street"]),
    ("green tea", ["tea"]),
    ("what does Rex look like", ["dog"]),
    ("car", ["car", "long"]),
    ("zebra", []),
    ("?!", []),
    ("'\" OR 1 * ) NEAR(", []),
    ('text : "tea"', ["tea"]),
]


async def test_words_are_found_in_their_forms_and_the_best_come_first(facts):
    for query, expected in QUERIES:
        assert (await found(facts, query))[: len(expected)] == expected, query
        assert bool(expected) == bool(await found(facts, query)), query


async def test_scores_fall_and_stand_only_where_something_was_looked_for(facts):
    items = await facts.asearch(("facts",), query="old red car in Bonn")
    scores = [each.score for each in items]
    assert len(scores) > 3
    assert scores == sorted(scores, reverse=True)
    assert all(0 < each < 1 for each in scores)
    assert {each.score for each in await facts.asearch(("facts",))} == {None}


async def test_a_query_can_be_filtered_limited_and_paged(facts):
    await facts.aput(("facts", "me"), "red", {"text": "A red car.", "kind": "thing"})
    await facts.aput(("facts", "me"), "blue", {"text": "A blue car.", "kind": "thing"})
    whole = await found(facts, "car", limit=99)
    assert len(whole) == 4
    assert await found(facts, "car", limit=2) == whole[:2]
    assert await found(facts, "car", limit=2, offset=1) == whole[1:3]
    assert await found(facts, "car", offset=2**80) == []
    things = {"kind": "thing"}
    assert sorted(await found(facts, "car", filter=things)) == ["blue", "red"]
    assert await found(facts, "red car", filter=things, limit=1) == ["red"]
    assert await found(facts, "red car", filter=things, limit=1, offset=1) == ["blue"]
    assert await found(facts, "tea", filter=things) == []


async def test_only_what_stands_below_the_prefix_is_found(facts):
    for place in (("facts", "you"), ("facts", "me too"), ("fact",), ("facts", "me", "more")):
        await facts.aput(place, "/".join(place), {"text": "Somebody likes hiking."})
    assert sorted(await found(facts, "hiking", "facts", "me")) == ["facts/me/more", "hike"]
    assert await found(facts, "hiking", "fact") == ["fact"]
    assert await found(facts, "hiking", "none") == []
    everywhere = [each.key for each in await facts.asearch((), query="hiking")]
    assert len(everywhere) == 5


async def test_the_index_of_an_item_says_which_of_its_fields_are_looked_through(store):
    value = {"title": "zebra", "parts": [{"text": "okapi"}, {"text": "gnu"}], "n": 1234, "b": True}
    for key, index in {
        "all": None,
        "none": False,
        "title": ["title"],
        "parts": ["parts[*].text", "n"],
    }.items():
        await store.aput(("facts",), key, value, index=index)
    assert sorted(await found(store, "zebra")) == ["all", "title"]
    assert sorted(await found(store, "gnu")) == ["all", "parts"]
    assert sorted(await found(store, "1234")) == ["all", "parts"]
    assert await found(store, "title text parts true") == []
    assert len(await store.asearch(("facts",))) == 4


async def test_what_another_process_changes_is_found_at_once(lasting_of_every_kind):
    async with lasting_of_every_kind() as one, lasting_of_every_kind() as other:
        for who in ("eva", "bob"):
            for name in ("tea", "dog", "car"):
                await one.store.aput((who,), name, {"text": FACTS[name]})
        assert await found(other.store, "tea", "eva") == ["tea"]
        assert set(await found(other.store, "car dog", "bob")) == {"car", "dog"}
        await one.store.aput(("eva",), "tea", {"text": "Ana drinks water."})
        await one.store.adelete(("eva",), "car")
        await one.store.aput(("eva",), "new", {"text": "A red bicycle."})
        assert await found(other.store, "tea car", "eva") == []
        whole = await found(other.store, "water bicycle dog", "eva")
        assert set(whole) == {"new", "tea", "dog"}
        part = await found(other.store, "water bicycle dog", "eva", limit=1, offset=1)
        assert part == whole[1:2]
        await one.store.adelete(("eva",), "new")
        assert await found(other.store, "bicycle", "eva") == []
        assert await found(other.store, "dog", "bob") == ["dog"]
