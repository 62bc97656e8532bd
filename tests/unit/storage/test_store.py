"""The store keeps items as LangGraph says, in every kind of storage as in LangGraph's own."""

import asyncio
import math
import sqlite3
from datetime import UTC, datetime
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from langgraph.store.base import (
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore

from databases import opened_database
from replan import StorageError
from replan.errors import UsageError
from replan.storage.databases import schema
from replan.storage.databases.cipher import Cipher
from replan.storage.databases.sqlite import MemoryDatabase
from replan.storage.store import Store
from stored_tables import changing
from unit.storage.conftest import tables_opener

ODD = ["a", "A", "a b", "a%", "a_", "a/b", "a!", "a-b", "á", "海", "\U0010ffff", "'; --", "*", '"']


@pytest.fixture
async def in_memory(tmp_path):
    """One store, for what is judged before any database is asked."""
    async with opened_database("memory", tmp_path) as database:
        yield Store(database, Cipher())


async def fill(store, **items):
    """Keep items of one namespace, each in an operation of its own."""
    for key, value in items.items():
        await store.aput(("n",), key, value)


async def keys(store, *prefix, **options):
    return [each.key for each in await store.asearch(prefix or ("n",), **options)]


async def test_a_prefix_takes_whole_labels_whatever_their_signs(any_store):
    for each in ODD:
        await any_store.aput((each, "x"), each, {"text": each})
        assert (await any_store.aget((each, "x"), each)).value == {"text": each}
    for label in ODD:
        found = await any_store.asearch((label,), limit=99)
        assert [(each.namespace, each.key) for each in found] == [((label, "x"), label)]


async def test_a_bad_label_is_refused_as_by_langgraph(any_store):
    for label in ("", "a.b", "a\x00", 7):
        for asked in (
            any_store.aput((label,), "k", {}),
            any_store.aget((label,), "k"),
            any_store.asearch((label,)),
            any_store.adelete((label,), "k"),
            any_store.alist_namespaces(prefix=(label,)),
        ):
            with pytest.raises(InvalidNamespaceError):
                await asked
    with pytest.raises(InvalidNamespaceError):
        await any_store.aput((), "k", {})


async def test_a_time_to_live_is_refused_as_by_langgraph(any_store):
    assert not any_store.supports_ttl
    with pytest.raises(NotImplementedError):
        await any_store.aput(("n",), "k", {}, ttl=5)


async def test_threads_use_the_synchronous_methods(any_store):
    def work():
        any_store.put(("n",), "k", {"a": 1})
        any_store.put(("n",), "gone", {"a": 1})
        any_store.delete(("n",), "gone")
        return (
            any_store.get(("n",), "k").value,
            [each.key for each in any_store.search(("n",))],
            any_store.list_namespaces(),
            any_store.batch(iter([GetOp(("n",), "gone")])),
        )

    assert await asyncio.to_thread(work) == ({"a": 1}, ["k"], [("n",)], [None])


async def test_another_event_loop_is_served(any_store):
    def work():
        asyncio.run(any_store.aput(("n",), "k", {"a": 1}))
        return asyncio.run(any_store.asearch(("n",)))

    assert [each.value for each in await asyncio.to_thread(work)] == [{"a": 1}]


async def test_what_was_given_and_what_is_returned_belong_to_the_caller(store):
    value = {"parts": [1]}
    await store.aput(("n",), "k", value)
    value["parts"].append(2)
    for _ in range(2):
        item, (found,) = await store.aget(("n",), "k"), await store.asearch(("n",))
        assert item.value == found.value == {"parts": [1]}
        item.value["parts"].clear()
        found.value["parts"].clear()


async def test_the_newest_items_come_first(store):
    await fill(store, a={}, b={}, c={"n": 1})
    await store.aput(("n",), "a", {"n": 1})
    assert await keys(store) == ["a", "c", "b"]
    assert await keys(store, limit=1, offset=1) == ["c"]
    assert await keys(store, filter={"n": 1}, limit=1, offset=1) == ["c"]
    assert await keys(store, limit=0) == []
    assert await keys(store, limit=2**80, offset=2) == ["b"]
    await store.abatch([PutOp(("batch",), key, {}) for key in "zam"])
    assert await keys(store, "batch") == ["m", "a", "z"]


async def test_a_replaced_item_keeps_when_it_was_made(store):
    await fill(store, a={"n": 1})
    made = await store.aget(("n",), "a")
    await fill(store, a={"n": 2})
    changed = await store.aget(("n",), "a")
    assert made.created_at == made.updated_at == changed.created_at < changed.updated_at


async def test_texts_are_compared_as_texts_and_what_cannot_be_compared_is_not_found(store):
    await fill(store, a={"on": "2026-01-02"}, b={"on": "2026-03-01"}, c={"on": None}, d={"on": []})
    assert await keys(store, filter={"on": {"$gt": "2026-02"}}) == ["b"]
    assert await keys(store, filter={"on": {"$lte": "2026-01-02"}}) == ["a"]
    assert await keys(store, filter={"on": {"$lt": 7}}) == []


CYCLE: dict[str, object] = {}
CYCLE["again"] = CYCLE


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"a": [1, (2,)]}, r"'k' of n\.m cannot be kept: value\.a\[1\]: .* type tuple"),
        ({"a": {"on": datetime(2026, 1, 1, tzinfo=UTC)}}, r"value\.a\.on: .* type datetime"),
        ({"a": math.nan}, r"value\.a: It is nan"),
        ({"a": math.inf}, r"value\.a: It is inf"),
        ({"a": 2**64}, r"value\.a: .* 64 bits"),
        ({"a": "x\x00"}, r"value\.a: It has a NUL"),
        ({"a": "\ud800"}, r"value\.a: It has half of a character"),
        ({1: "a"}, r"value: The key 1 is not text"),
        ({"\x00": "a"}, r"value: One of its keys cannot be kept"),
        ({"a": b"x"}, r"value\.a: .* type bytes"),
        (CYCLE, r"nested deeper than 100 levels"),
    ],
)
async def test_a_value_that_is_no_json_is_refused_and_named(in_memory, value, said):
    store = in_memory
    await store.aput(("n", "m"), "k", {"was": "here"})
    with pytest.raises(UsageError, match=said):
        await store.abatch([PutOp(("n", "m"), "other", {}), PutOp(("n", "m"), "k", value)])
    assert [each.value for each in await store.asearch(("n",))] == [{"was": "here"}]


@pytest.mark.parametrize(
    ("op", "said"),
    [
        (PutOp(("n",), "k" * 1_001, {}), "The key of an item: It has more than 1,000 bytes"),
        (PutOp(("n" * 1_001,), "k", {}), "The namespace of an item: It has more than 1,000 bytes"),
        (PutOp(("n",), "\x00", {}), "The key of an item: It has a NUL"),
        (GetOp(("n",), "\x00"), "The key of an item: It has a NUL"),
        (SearchOp(("\ud800",)), "The namespace of an item: It has half of a character"),
        (PutOp(("\ud800",), "k", {}), "The namespace of an item: It has half of a character"),
        (PutOp(("n",), "k", {}, index=True), "index: Give False"),
        (PutOp(("n",), "k", {}, index=[1]), "index: Give False"),
        (SearchOp(("n",), limit=-1), "limit: It is -1"),
        (SearchOp(("n",), offset=-1), "offset: It is -1"),
        (ListNamespacesOp(limit=-1), "limit: It is -1"),
        (SearchOp(("n",), filter={"a": {"$in": [1]}}), r"filter: \$in is unknown"),
        (ListNamespacesOp((MatchCondition("middle", ("a",)),)), "match_type: middle is unknown"),
    ],
)
async def test_what_no_store_can_do_is_refused_with_the_reason(in_memory, op, said):
    await in_memory.aput(("n",), "there", {})
    with pytest.raises(UsageError, match=said):
        await in_memory.abatch([op])


async def test_the_longest_names_are_kept(store):
    place, key = ("海" * 333,), "\U0001f600" * 250
    await store.aput(place, key, {"n": 1})
    assert (await store.aget(place, key)).value == {"n": 1}


async def test_no_event_loop_is_made_to_wait_for_a_database(lasting_of_every_kind):
    async with lasting_of_every_kind() as storage:
        store = storage.store
        for work in (
            lambda: store.get(("n",), "k"),
            lambda: store.put(("n",), "k", {}),
            lambda: store.search(("n",)),
        ):
            with pytest.raises(asyncio.InvalidStateError, match=r"await store\.aget"):
                work()


class Busy(MemoryDatabase):
    """A database that is locked at first."""

    def __init__(self):
        super().__init__(lambda connection: schema.make(connection, {}, ""))
        self.retrier.seconds, self.refusals = 30.0, 0

    def _submit(self, job):
        if not self.refusals:
            super()._submit(job)
            return
        self.refusals -= 1
        error = sqlite3.OperationalError("database is locked")
        error.sqlite_errorcode = sqlite3.SQLITE_BUSY
        job.future.set_exception(error)


async def test_threads_and_event_loops_try_again_what_can_pass():
    database = Busy()
    store = Store(database, Cipher())
    database.refusals = 2
    await asyncio.to_thread(store.put, ("n",), "k", {"a": 1})
    database.refusals = 2
    assert (await store.aget(("n",), "k")).value == {"a": 1}
    assert not database.refusals
    await database.close()


async def test_many_batches_at_once_are_all_kept_whatever_their_order(store):
    def batch(at):
        keys = [str((at + more) % 20) for more in range(10)][:: 1 if at % 2 else -1]
        return store.abatch([PutOp(("n",), key, {"by": at}) for key in keys])

    await asyncio.gather(*(batch(at) for at in range(40)))
    items = await store.asearch(("n",), limit=99)
    assert sorted(int(each.key) for each in items) == list(range(20))
    assert all((int(each.key) - each.value["by"]) % 20 < 10 for each in items)


async def test_a_damaged_item_is_named_and_can_be_deleted(lasting_of_every_kind, caplog):
    async with lasting_of_every_kind() as storage:
        await fill(storage.store, good={"text": "zebra"}, bad={"text": "zebra"})
    with changing(lasting_of_every_kind.where) as connection:
        connection.change("UPDATE replan_items SET value = '[]' WHERE key = 'bad'")
        if not connection.is_postgres:
            # The index is to be made anew, from what is there.
            connection.change("DROP TABLE IF EXISTS replan_words")
    async with lasting_of_every_kind() as storage:
        store = storage.store
        with pytest.raises(StorageError, match=r'replan_items at \["n\.", "bad".* delete the item'):
            await store.aget(("n",), "bad")
        assert (await store.aget(("n",), "good")).value == {"text": "zebra"}
        await store.adelete(("n",), "bad")
        assert await keys(store, query="zebra") == ["good"]


async def test_a_batch_of_thousands_is_kept_and_read(store):
    puts = [PutOp(("n", str(at % 3)), str(at), {"n": at}) for at in range(3_000)]
    await store.abatch(puts)
    assert len(await store.asearch(("n", "1"), limit=9_999)) == 1_000
    found = await store.abatch([GetOp(("n", str(at % 3)), str(at)) for at in range(0, 3_000, 30)])
    assert [each.value["n"] for each in found] == list(range(0, 3_000, 30))


def test_a_closed_storage_says_so(tmp_path):
    async def leave():
        async with opened_database("sqlite", tmp_path / "runs.db") as database:
            store = Store(database, Cipher())
            await store.aput(("n",), "k", {})
        with pytest.raises(StorageError, match="It is closed"):
            await store.aget(("n",), "k")
        return store

    left = asyncio.run(leave())
    with pytest.raises(StorageError, match="It is closed"):
        left.get(("n",), "k")


async def test_items_outlive_what_opened_the_storage(lasting_of_every_kind):
    async with lasting_of_every_kind() as storage:
        await storage.store.aput(("n",), "k", {"text": "The sea is blue."})
    async with lasting_of_every_kind() as storage, lasting_of_every_kind() as beside:
        assert (await storage.store.aget(("n",), "k")).value == {"text": "The sea is blue."}
        assert await keys(beside.store, query="blue") == ["k"]
        await beside.store.aput(("n",), "k", {"text": "It is green."})
        assert await keys(storage.store, query="green") == ["k"]
        assert await keys(storage.store, query="blue") == []


LABELS = st.sampled_from(["a", "b", "a-", "é", "A"])
SPACES = st.lists(LABELS, min_size=1, max_size=3).map(tuple)
LEAVES = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["x", "y", "1"])
DEEP = st.dictionaries(st.sampled_from("xy"), LEAVES | st.lists(LEAVES, max_size=2), max_size=2)
NUMBERS = st.integers(0, 4) | st.sampled_from([1.0, 2.5])
VALUES = st.fixed_dictionaries({"v": LEAVES, "n": NUMBERS}, optional={"w": LEAVES | DEEP})
COMPARED = st.dictionaries(st.sampled_from(["$gt", "$gte", "$lt", "$lte"]), NUMBERS, min_size=1)
FILTERS = st.none() | st.fixed_dictionaries(
    {},
    optional={
        "v": LEAVES
        | st.fixed_dictionaries({"$ne": LEAVES})
        | st.fixed_dictionaries({"$eq": LEAVES}),
        "n": NUMBERS | COMPARED,
        "w": LEAVES | DEEP,
    },
)
KEYS = st.sampled_from(["k", "l", "海"])
OPS = st.one_of(
    st.builds(PutOp, SPACES, KEYS, VALUES | st.none(), st.none(), st.none()),
    st.builds(GetOp, SPACES, KEYS),
    st.builds(
        SearchOp,
        st.lists(LABELS, max_size=2).map(tuple),
        FILTERS,
        st.just(999),
        st.just(0),
        st.none(),
    ),
    st.builds(
        ListNamespacesOp,
        st.lists(
            st.builds(
                MatchCondition,
                st.sampled_from(["prefix", "suffix"]),
                st.lists(LABELS | st.just("*"), min_size=1, max_size=2).map(tuple),
            ),
            max_size=2,
        ).map(tuple),
        st.none() | st.integers(1, 3),
        st.just(999) | st.integers(0, 3),
        st.integers(0, 2),
    ),
)


def seen(result):
    """What LangGraph defines of a result: it leaves open the order of a search, and times."""
    if isinstance(result, list) and result and not isinstance(result[0], tuple):
        return sorted((each.namespace, each.key, repr(each.value)) for each in result)
    return (result.namespace, result.key, result.value) if hasattr(result, "key") else result


class Emptied(InMemoryStore):
    """LangGraph's, without the namespaces that it lists though nothing is in them."""

    def _handle_list_namespaces(self, op):
        for place in [place for place, items in self._data.items() if not items]:
            del self._data[place]
        return super()._handle_list_namespaces(op)


_numbers = count()


@pytest.fixture(params=["memory", "encrypted sqlite", "postgres"])
def kept(request):
    """One open store for all examples, and what runs its event loop."""
    with asyncio.Runner() as runner:
        opening = tables_opener(request.param, request)()
        storage = runner.run(opening.__aenter__())
        yield runner, storage.store
        runner.run(opening.__aexit__(None, None, None))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(batches=st.lists(st.lists(OPS, max_size=4), max_size=12))
def test_any_operations_have_the_results_of_langgraphs_store(kept, batches):
    runner, store = kept
    root, model = f"example {next(_numbers)}", Emptied()

    def below(op):
        """The same operation in a part of the store that no other example uses."""
        if isinstance(op, SearchOp):
            return op._replace(namespace_prefix=(root, *op.namespace_prefix))
        if isinstance(op, ListNamespacesOp):
            own = MatchCondition("prefix", (root,))
            return op._replace(match_conditions=(own, *op.match_conditions))
        return op._replace(namespace=(root, *op.namespace))

    for batch in batches:
        ops = [below(op) for op in batch]
        expected = [seen(each) for each in model.batch(ops)]
        assert [seen(each) for each in runner.run(store.abatch(ops))] == expected
