"""Threads as data: what they hold, where sub-threads stand in them, and what is written of them."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, strategies as st

from replan.errors import StaleThreadError, SubThreadPathError, ThreadError
from replan.state.pipeline.thread_rows import rows_of, thread_from
from replan.state.pipeline.threads import (
    Thread,
    ThreadMessage,
    chained,
    get_sub_thread_by_path,
    path_text,
    require_sub_thread,
)
from replan.storage.memory_threads import MemoryThreads

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def message(name: str, **fields: Any) -> ThreadMessage:
    return ThreadMessage(**{"id": name, "sender": "bot", "text": name, "timestamp": NOON, **fields})


def nested() -> tuple[Thread, Thread, Thread]:
    deep = Thread("deep", [message("z")], {"brief_status": {"phase": "running"}})
    middle = Thread("middle", [message("b"), message("c", meta={"_thread": deep})])
    main = Thread(
        "main", [message("a"), message("d", meta={"_thread": middle, "k": [1, {"x": 2}]})]
    )
    return main, middle, deep


def test_a_sub_thread_is_found_by_text_by_object_and_by_a_chain() -> None:
    main, middle, deep = nested()
    text = "messages.1.meta._thread"
    assert require_sub_thread(main, text) is middle
    assert require_sub_thread(main, {"message_index": 1}) is middle
    assert require_sub_thread(main, chained(text, 1)) is deep
    assert require_sub_thread(main, {"message_index": 1, "parent": {"message_index": 1}}) is deep
    assert path_text({"message_index": 1, "parent": text}) == f"{text}.messages.1.meta._thread"


@pytest.mark.parametrize(
    ("path", "part"),
    [
        ("messages.9.meta._thread", "messages.9"),
        ("messages.1.meta.outline", "messages.1.meta.outline"),
        ("messages.1.meta.k", "messages.1.meta.k"),
        ("messages.1.text", "messages.1.text"),
        ("messages.1.meta._thread.messages.7.meta._thread", "messages.1.meta._thread.messages.7"),
        ("messages.one.meta", "one"),
        ("messages.1", "1"),
        ("threads.1", "threads"),
        ("messages.1..x", ""),
        ({"message_index": -1}, "message_index"),
        ({"message_index": 1, "path": "x"}, "path"),
        (None, "None"),
    ],
)
def test_a_wrong_path_gives_none_or_an_error_that_names_its_part(path: Any, part: str) -> None:
    main, _, _ = nested()
    assert get_sub_thread_by_path(main, path) is None
    with pytest.raises(SubThreadPathError) as raised:
        require_sub_thread(main, path)
    assert raised.value.part == part
    assert raised.value.thread_id == "main"


def test_a_message_cannot_be_removed_while_a_sub_thread_runs() -> None:
    main, _, deep = nested()
    middle = require_sub_thread(main, "messages.1.meta._thread")
    with pytest.raises(ThreadError, match="cannot be removed while the sub-thread"):
        middle.remove("b")
    deep.set_status(phase="completed")
    middle.remove("b")
    assert [each.id for each in middle.messages] == ["c"]
    with pytest.raises(ThreadError, match="has a message 'c' already"):
        middle.add(message("c"))


def test_what_a_message_holds_cannot_be_changed_in_silence() -> None:
    main, _, _ = nested()
    held: Any = main.messages[1].meta
    with pytest.raises(TypeError):
        held["k"] = 1
    with pytest.raises(AttributeError):
        held["k"].append(1)
    with pytest.raises(ValueError, match=r"meta\.x is of type object"):
        message("x", meta={"x": object()})


STEPS = st.lists(
    st.tuples(st.sampled_from(["add", "nest", "text", "remove", "settings"]), st.integers(0, 5)),
    max_size=25,
)


@given(STEPS)
def test_what_is_stored_is_always_what_is_in_memory(steps: list[tuple[str, int]]) -> None:
    async def story() -> None:
        repository, main = MemoryThreads(), Thread("main")
        threads = [main]
        for number, (what, index) in enumerate(steps):
            own = threads[index % len(threads)]
            if what in ("add", "nest"):
                sub = Thread(f"t{number}") if what == "nest" else None
                own.add(message(f"m{number}", meta={"_thread": sub} if sub else {"n": number}))
                threads += [sub] if sub else []
            elif what == "settings":
                own.set_status(phase=f"p{number}")
            elif own.messages and what == "text":
                own.replace(own.messages[index % len(own.messages)].replace(text=str(number)))
            elif own.messages and not any(True for _ in own.sub_threads()):
                own.remove(own.messages[index % len(own.messages)].id)
            await repository.save_thread(main)
            stored = await repository.get_thread("main")
            assert stored is None or rows_of(stored) == rows_of(main)

    asyncio.run(story())


def test_rows_make_the_same_thread_again_and_a_damaged_row_is_named() -> None:
    main, _, _ = nested()
    rows = rows_of(main)
    assert rows_of(thread_from(rows)) == rows
    broken: Any = {**rows, "messages.0": {"id": "a"}}
    with pytest.raises(ThreadError, match=r"its row 'messages\.0' cannot be read"):
        thread_from(broken)
    for header in ("text", {"settings": {}}, {"id": "main", "settings": "none"}):
        with pytest.raises(ThreadError, match="its row cannot be read"):
            thread_from({**rows, "": header})


async def test_a_thread_that_somebody_else_stored_is_refused_and_stays() -> None:
    repository = MemoryThreads()
    first, _, _ = nested()
    await repository.save_thread(first)
    second = await repository.get_thread("main")
    assert second is not None
    await repository.update_thread_settings(second, {"by": "second"})
    first.add(message("lost"))
    with pytest.raises(StaleThreadError):
        await repository.save_thread(first)
    with pytest.raises(StaleThreadError):
        await repository.save_thread(Thread("main", [message("other")]))
    assert await repository.get_thread_settings("main") == {"by": "second"}
    assert await repository.get_thread_settings("nobody") == {}


async def test_of_runs_that_are_over_only_the_newest_keep_their_threads_in_memory() -> None:
    repository = MemoryThreads(most_closed=2)
    for number in range(4):
        await repository.save_thread(Thread(f"t{number}", [message("a")], run_id=f"r{number}"))
    for number in (0, 1, 0, 2):
        await repository.closed(f"r{number}")
    kept = [number for number in range(4) if await repository.get_thread(f"t{number}")]
    assert kept == [0, 2, 3]
