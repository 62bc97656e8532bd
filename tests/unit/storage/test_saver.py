"""One saver for every database: LangGraph's own tests of savers, and what ours does beyond."""

import asyncio
import operator
import random
from functools import partial
from itertools import chain
from typing import Annotated, TypedDict

import pytest
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.serde.types import ERROR, RESUME
from langgraph.graph import START, StateGraph

from replan import StorageError
from replan.base.langgraph_inside.langgraph_channels import Delta
from replan.errors import ThreadBusyError, ThreadLostError
from replan.storage.databases.schema import OF_A_RUN
from savers import KEY, opened_saver

PLACE = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
WORD = "Aardvark"


def _kinds(*kinds):
    return pytest.mark.parametrize("saver", kinds, indirect=True)


@pytest.fixture
def opened(request, tmp_path):
    """Open a saver; what opens a second one finds what the first one wrote."""

    def opening(kind):
        name = kind.removeprefix("encrypted ")
        address = request.getfixturevalue("empty_database") if name == "postgres" else ""
        key = KEY if kind != name else None
        return partial(opened_saver, name, tmp_path / "runs.sqlite", address, key=key)

    return opening


@pytest.fixture(params=["memory", "encrypted sqlite", "postgres"])
async def saver(request, opened):
    async with opened(request.param)() as saver:
        yield saver


async def rows(saver, table):
    return await saver.database.read(
        lambda connection: connection.query(f"SELECT * FROM {table}")  # noqa: S608 - ours
    )


async def changed(saver, sql, *values):
    await saver.database.write(lambda connection: connection.change(sql, values))


async def put(saver, config=PLACE, /, metadata=None, **values):
    """Write a checkpoint with values of channels, as the first one or after another."""
    checkpoint = empty_checkpoint()
    versions = {name: saver.get_next_version(None, None) for name in values}
    checkpoint |= {"channel_values": values, "channel_versions": versions}
    return await saver.aput(config, checkpoint, metadata or {}, versions)


KINDS = [
    "memory",
    "encrypted memory",
    "sqlite",
    "encrypted sqlite",
    "postgres",
    "encrypted postgres",
]


@_kinds(*KINDS)
async def test_the_saver_conforms_to_all_that_langgraph_asks_of_one(saver):
    @checkpointer_test(name="ours")
    async def ours():
        yield saver

    report = await validate(ours)
    assert {
        name: (each.passed, each.failures) for name, each in report.results.items()
    } == dict.fromkeys(report.results, (True, []))
    assert len(report.results) == 8


async def test_a_value_stands_once_for_each_version_and_never_in_the_checkpoint(saver):
    checkpoint = empty_checkpoint()
    versions = {"short": "1", "long": "1"}
    checkpoint |= {"channel_values": {"short": 7, "long": [WORD]}, "channel_versions": versions}
    at = await saver.aput(PLACE, checkpoint, {}, versions)
    later = {**checkpoint, **{key: empty_checkpoint()[key] for key in ("id", "ts")}}
    await saver.aput(at, later, {}, {})
    assert len(await rows(saver, "replan_channels")) == 2
    found = [each async for each in saver.alist(PLACE)]
    assert [each.checkpoint["channel_values"] for each in found] == [
        {"short": 7, "long": [WORD]}
    ] * 2
    assert found[0].parent_config == at


@_kinds("encrypted sqlite", "encrypted postgres")
async def test_with_a_key_no_table_holds_a_word_of_what_was_said(saver):
    secret = {"metadata": {"note": WORD}, **PLACE}
    at = await put(saver, secret, {"said": WORD}, text=WORD, plan=[WORD])
    await saver.aput_writes(at, [("text", WORD), (ERROR, ValueError(WORD))], "task")
    for table in ("replan_checkpoints", "replan_channels", "replan_writes"):
        stored = [
            bytes(cell)
            for row in await rows(saver, table)
            for cell in row
            if isinstance(cell, bytes)
        ]
        assert stored
        assert WORD.encode() not in b"".join(stored)
        assert WORD not in str(await rows(saver, table))
    found = await saver.aget_tuple(PLACE)
    assert (found.metadata["note"], found.metadata["said"]) == (WORD, WORD)
    assert [each async for each in saver.alist(PLACE, filter={"note": WORD})] == [found]


@_kinds("sqlite", "postgres")
async def test_without_a_key_they_do(saver):
    """The search finds what is there, so that the test above can fail."""
    at = await put(saver, text=WORD)
    await saver.aput_writes(at, [("text", WORD)], "task")
    for table in ("replan_channels", "replan_writes"):
        assert WORD in str(await rows(saver, table))


COLUMNS = [
    ("replan_checkpoints", "kind", "checkpoint"),
    ("replan_checkpoints", "metadata_kind", "metadata"),
    ("replan_channels", "kind", "value"),
    ("replan_writes", "kind", "value"),
]


@_kinds("encrypted sqlite", "encrypted postgres")
@pytest.mark.parametrize(("table", "kind", "column"), COLUMNS)
async def test_a_value_that_was_changed_or_inserted_without_the_key_is_refused(
    saver, table, kind, column
):
    at = await put(saver, text=WORD)
    await saver.aput_writes(at, [("text", WORD)], "task")
    for changes in (f"{column} = ?", f"{column} = ?, {kind} = 'msgpack'"):
        await changed(saver, f"UPDATE {table} SET {changes}", b"\x80" * 40)  # noqa: S608 - ours
        with pytest.raises(StorageError, match="cannot be read"):
            await saver.aget_tuple(PLACE)
        with pytest.raises(StorageError, match="cannot be read"):
            await anext(saver.alist(PLACE))


@_kinds("encrypted sqlite")
async def test_a_value_that_was_copied_to_another_row_is_not_noticed(saver):
    """A limit: LangGraph's encryption does not bind a value to its place."""
    await put(saver, text=WORD)
    await put(saver, {"configurable": {"thread_id": "other", "checkpoint_ns": ""}}, text="mine")
    copied = "(SELECT value FROM replan_channels WHERE thread_id = 'other')"
    await changed(saver, f"UPDATE replan_channels SET value = {copied} WHERE thread_id = 't'")  # noqa: S608 - ours
    assert (await saver.aget_tuple(PLACE)).checkpoint["channel_values"] == {"text": "mine"}


@pytest.mark.parametrize("what", ["versions = 'x'", "versions = '[]'", "checkpoint = metadata"])
async def test_a_checkpoint_that_cannot_be_read_says_so(saver, what):
    await put(saver, text=WORD)
    await changed(saver, f"UPDATE replan_checkpoints SET {what}")  # noqa: S608 - ours
    with pytest.raises(StorageError, match="A record cannot be read"):
        await saver.aget_tuple(PLACE)


async def test_a_value_that_cannot_be_stored_is_refused_before_anything_is_written(saver):
    with pytest.raises(StorageError, match="cannot be kept there"):
        await put(saver, large=2**70)
    assert await saver.aget_tuple(PLACE) is None


async def test_what_is_written_for_a_thread_that_another_took_is_refused(saver):
    async with saver.lock("t") as owner:
        at = await put(saver, text="mine")
        await saver.aput_writes(at, [("text", "mine")], "task")
        await changed(saver, "UPDATE replan_threads SET epoch = epoch + 1")
        for write in (
            lambda: put(saver, text="late"),
            lambda: saver.aput_writes(at, [("text", "late")], "late task"),
            lambda: asyncio.to_thread(saver.put_writes, at, [("text", "late")], "late task"),
        ):
            # Whatever task it is in: LangGraph writes in the background.
            with pytest.raises(ThreadLostError):
                await write()
            with owner.at_work(), pytest.raises(ThreadLostError):
                await write()
        found = await saver.aget_tuple(PLACE)
        assert (found.config, found.pending_writes) == (at, [("task", "text", "mine")])
    # Nobody of this storage holds it now.
    await put(saver, text="later")


async def test_a_checkpoint_is_above_the_one_that_it_continues_from(saver):
    at = await put(saver)
    checkpoint = empty_checkpoint() | {"id": "0"}
    with pytest.raises(StorageError, match="is not above its parent"):
        await saver.aput(at, checkpoint, {}, {})


async def test_what_a_task_wrote_before_it_broke_off_is_left_out(saver):
    at = await put(saver)
    await saver.aput_writes(at, [("text", 1), (ERROR, RuntimeError("cancelled"))], "task")
    assert [each[1] for each in (await saver.aget_tuple(at)).pending_writes] == [ERROR]


async def test_writes_of_a_task_stay_and_answers_are_replaced(saver):
    at = await put(saver)
    for value in ("first", "second"):
        await saver.aput_writes(at, [("text", value)], "task")
        await saver.aput_writes(at, [(RESUME, [value])], "task")
    found = (await saver.aget_tuple(at)).pending_writes
    assert sorted(found) == sorted([("task", "text", "first"), ("task", RESUME, ["second"])])


async def test_cancelled_writes_are_whole_or_not_there(saver):
    draw, at = random.Random(5), await put(saver)  # noqa: S311 - no secret
    for batch in range(8):
        writing = [
            asyncio.ensure_future(saver.aput_writes(at, [("a", 1), ("b", 1)], f"{batch}/{each}"))
            for each in range(8)
        ]
        # The moment of the cancellation, not a wait for something.
        await asyncio.sleep(draw.random() * 0.004)
        for each in writing:
            each.cancel()
        await asyncio.gather(*writing, return_exceptions=True)
    await saver.at_rest()
    tasks = [task for task, *_ in (await saver.aget_tuple(at)).pending_writes]
    assert all(tasks.count(task) == 2 for task in tasks)


async def test_a_history_may_be_read_while_it_is_walked(saver):
    at = PLACE
    for number in range(3):
        at = await put(saver, at, number=number)
    found = [await saver.aget_tuple(each.config) async for each in saver.alist(PLACE)]
    assert [each.checkpoint["channel_values"]["number"] for each in found] == [2, 1, 0]


async def test_all_threads_are_listed_in_one_order(saver):
    for number in range(6):
        thread = {"thread_id": f"{number % 2}", "checkpoint_ns": "" if number < 4 else "inner"}
        at = await put(saver, {"configurable": thread}, {"run_id": f"{number % 3}"}, n=number)
        await saver.aput_writes(at, [("n", number)], "task")

    async def listed(*given, **options):
        found = [each async for each in saver.alist(*given, **options)]
        assert all(
            each.pending_writes[0][2] == each.checkpoint["channel_values"]["n"] for each in found
        )
        return [each.checkpoint["channel_values"]["n"] for each in found]

    assert await listed(None) == [5, 4, 3, 2, 1, 0]
    assert await listed(None, filter={"run_id": "1"}) == [4, 1]
    assert await listed(None, filter={"run_id": "1", "step": 1}) == []
    assert await listed({"configurable": {"thread_id": "1"}}, limit=2) == [5, 3]
    assert await listed({"configurable": {"thread_id": "1", "checkpoint_ns": ""}}) == [3, 1]


async def test_a_deleted_thread_leaves_no_row_and_its_runs_neither(saver):
    await put(saver, {"configurable": {"thread_id": "other", "checkpoint_ns": ""}}, text=WORD)
    before = {each: await rows(saver, each) for each in ("replan_checkpoints", "replan_channels")}
    at = await put(saver, text=WORD)
    await saver.aput_writes(at, [("text", WORD)], "task")
    for name in ("t", "other"):
        await changed(saver, "INSERT INTO replan_logs VALUES (?, ?)", f"logged {name}", name)
        await changed(
            saver,
            "INSERT INTO replan_runs VALUES (?, ?, ?, ?, ?, ?, 'running', '', '')",
            *(f"run {name}", name, b"", b"", b"", b""),
        )
        for run in (f"logged {name}", f"run {name}"):
            await changed(saver, "INSERT INTO replan_labels VALUES (?, 'a', 'b')", run)
            await changed(saver, "INSERT INTO replan_texts VALUES (?, 'a', NULL, ?)", run, b"")
            spent = "INSERT INTO replan_spent VALUES (?, 'run', 1, 1, 1, 0, 0, 0)"
            await changed(saver, spent, run)
            await changed(
                saver,
                "INSERT INTO replan_log VALUES (?, 1, 'k', 'note', '', NULL, NULL, NULL)",
                run,
            )
    async with saver.lock("other"):
        pass
    async with saver.lock("t") as owner:
        first = owner.epoch
    await saver.adelete_thread("t")
    assert {each: await rows(saver, each) for each in before} == before
    assert {
        str(row[0]).endswith("other") for each in OF_A_RUN for row in await rows(saver, each)
    } == {True}
    assert [row[0] for row in await rows(saver, "replan_threads")] == ["other"]
    async with saver.lock("t") as owner:
        assert owner.epoch != first


async def test_a_thread_that_is_worked_on_is_not_deleted(saver, monkeypatch):
    monkeypatch.setattr("replan.storage.holds.MOMENT", 0.01)
    await put(saver)
    async with saver.lock("t") as owner:
        for deletion in (
            partial(saver.adelete_thread, "t"),
            partial(asyncio.to_thread, saver.delete_thread, "t"),
            partial(saver.aprune, ["t"]),
            partial(saver.acopy_thread, "other", "t"),
        ):
            with pytest.raises(ThreadBusyError):
                await deletion()
        assert await saver.aget_tuple(PLACE) is not None
        with owner.at_work():
            await saver.adelete_thread("t")
    assert await saver.aget_tuple(PLACE) is None


class Counted(TypedDict, total=False):
    words: Annotated[
        list[str], Delta(lambda old, new: [*(old or []), *chain.from_iterable(new)], list)
    ]
    count: Annotated[int, operator.add]


def counting_graph(saver, nodes=2):
    """A graph that adds a word in its first node, and goes on through others."""
    graph = StateGraph(Counted)
    graph.add_node("n0", lambda state: {"words": [f"a{len(state['words'])}"]})
    graph.add_edge(START, "n0")
    for number in range(1, nodes):
        graph.add_node(f"n{number}", lambda _: {"count": 1})
        graph.add_edge(f"n{number - 1}", f"n{number}")
    return graph.compile(checkpointer=saver)


async def test_the_threads_of_graphs_work_in_synchronous_code_too(saver):
    graph = counting_graph(saver)

    def work():
        for turn in range(3):
            graph.invoke({"words": [f"u{turn}"]}, {"configurable": {"thread_id": "t"}})
        thread = {"configurable": {"thread_id": "t"}}
        return graph.get_state(thread).values, len([*graph.get_state_history(thread)])

    values, steps = await asyncio.to_thread(work)
    assert values == {"words": ["u0", "a1", "u1", "a3", "u2", "a5"], "count": 3}
    assert steps == 12
    await asyncio.to_thread(saver.delete_thread, "t")
    assert await saver.aget_tuple(PLACE) is None


async def test_synchronous_calls_do_not_block_the_loop(saver):
    if saver.database.where.startswith(":memory:"):
        saver.put_writes(await put(saver), [("text", 1)], "task")
        assert [each.pending_writes for each in saver.list(PLACE)] == [[("task", "text", 1)]]
        saver.delete_thread("t")
        assert saver.get_tuple(PLACE) is None
        return
    for call in (
        lambda: saver.get_tuple(PLACE),
        lambda: next(saver.list(PLACE)),
        lambda: saver.put(PLACE, empty_checkpoint(), {}, {}),
        lambda: saver.delete_thread("t"),
    ):
        with pytest.raises(asyncio.InvalidStateError, match="Synchronous calls"):
            call()


async def test_the_history_of_a_delta_channel_goes_back_to_its_last_whole_value(saver):
    graph, thread = counting_graph(saver), {"configurable": {"thread_id": "t"}}
    for turn in range(14):
        await graph.ainvoke({"words": [f"u{turn}"]}, thread)
    at = (await saver.aget_tuple(thread)).config
    found = await saver.aget_delta_channel_history(config=at, channels=["words", "count", "none"])
    of_base = await super(type(saver), saver).aget_delta_channel_history(
        config=at, channels=["words", "count", "none"]
    )
    assert found == of_base
    assert 0 < len(found["words"]["writes"]) < 28
    assert found["count"]["seed"] == 13
    assert found["none"] == {"writes": []}
    assert await saver.aget_delta_channel_history(config=at, channels=[]) == {}
    missing = await saver.aget_delta_channel_history(
        config={"configurable": {"thread_id": "-"}}, channels=["a"]
    )
    assert missing == {"a": {"writes": []}}


async def test_a_fork_has_no_words_of_the_other_branch(saver):
    graph, thread = counting_graph(saver), {"configurable": {"thread_id": "t"}}
    for turn in range(4):
        await graph.ainvoke({"words": [f"u{turn}"]}, thread)
    history = [each async for each in graph.aget_state_history(thread)]
    older = next(
        each for each in history if len(each.values.get("words", [])) == 4 and not each.next
    )
    await graph.aupdate_state(older.config, {"words": ["fork"]}, as_node="n1")
    state = (await graph.aget_state(thread)).values["words"]
    assert state == ["u0", "a1", "u1", "a3", "fork"]


@_kinds("sqlite")
async def test_a_late_turn_reads_as_many_checkpoints_as_an_early_one(saver):
    """To go back to a whole value, no checkpoint is read but the newest."""
    graph, thread = counting_graph(saver, nodes=4), {"configurable": {"thread_id": "t"}}
    read = []

    class Counting(type(saver.serde)):
        def loads_typed(self, data):
            value = super().loads_typed(data)
            read.append(isinstance(value, dict) and "versions_seen" in value)
            return value

    saver.serde = Counting(allowed_msgpack_modules=None)
    counts = []
    for turn in range(40):
        read.clear()
        await graph.ainvoke({"words": [f"u{turn}"]}, thread)
        counts.append(sum(read))
    assert set(counts[1:]) == {1}


async def test_pruning_keeps_what_the_newest_checkpoint_is_made_of(saver):
    graph, thread = counting_graph(saver), {"configurable": {"thread_id": "t"}}
    for turn in range(14):
        await graph.ainvoke({"words": [f"u{turn}"]}, thread)
    before, many = await graph.aget_state(thread), len(await rows(saver, "replan_checkpoints"))
    await saver.aprune(["t"])
    after = await graph.aget_state(thread)
    assert (after.values, after.config) == (before.values, before.config)
    assert 1 < len(await rows(saver, "replan_checkpoints")) < many / 2
    assert len(await rows(saver, "replan_channels")) < many
    assert (await graph.ainvoke({"words": ["on"]}, thread))["count"] == 15
    with pytest.raises(ValueError, match="Unknown strategy"):
        await saver.aprune(["t"], strategy="all")


def of_run(run_id):
    return {"configurable": {"thread_id": "t"}, "metadata": {"run_id": run_id}}


async def test_a_run_that_is_taken_back_leaves_its_thread_as_it_was(saver):
    graph = counting_graph(saver)
    await graph.ainvoke({"words": ["u0"]}, of_run("first"))
    before = (await graph.aget_state(of_run(""))).values
    stored = {
        each: len(await rows(saver, each))
        for each in ("replan_checkpoints", "replan_channels", "replan_writes")
    }
    await graph.ainvoke({"words": ["u1"]}, of_run("second"))
    for _ in range(2):
        await saver.adelete_for_runs(["second"])
        assert (await graph.aget_state(of_run(""))).values == before
        assert {each: len(await rows(saver, each)) for each in stored} == stored
    assert (await graph.ainvoke({"words": ["u1"]}, of_run("third")))["count"] == 2


async def test_who_calls_synchronously_keeps_the_event_loop_of_its_thread(saver):
    def call():
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        saver.get_tuple(PLACE)
        try:
            return asyncio.get_event_loop() is loop
        finally:
            asyncio.set_event_loop(None)
            loop.close()

    assert await asyncio.to_thread(call)
