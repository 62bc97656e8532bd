"""A SQLite file is made once, looked at before it is used, and left alone if it is not ours."""

import asyncio
import sqlite3
import stat
import subprocess
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.base import empty_checkpoint

import warm
from postgres import fresh_database
from replan import ConfigurationError, SpecialistResult, StorageError, open_storage
from replan.errors import ThreadBusyError
from replan.log.rows import Attempt

FRESH_STARTS = Path(__file__).with_name("fresh_starts.py")
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


async def made(path, **options):
    async with open_storage(path, **options) as storage:
        for number in range(30):
            await storage.log.note("r", str(number), "x" * 5_000)


async def refused(path, *, match, **options):
    before = path.read_bytes()
    with pytest.raises(StorageError, match=match) as caught:
        async with open_storage(path, **options):
            pytest.fail("it was opened")
    assert path.read_bytes() == before
    assert str(path) in str(caught.value)
    return caught.value


async def test_file_and_folders_are_for_this_user_alone(tmp_path):
    path = tmp_path / "new" / "folder" / "runs.sqlite"
    async with open_storage(f"sqlite:///{path}") as storage:
        await storage.log.note("r", "k", 1)
        for each in path.parent.iterdir():
            assert stat.S_IMODE(each.stat().st_mode) == 0o600
    for folder in (path.parent, path.parent.parent):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


async def test_a_path_may_begin_at_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    async with open_storage("~/runs.sqlite"):
        pass
    assert (tmp_path / "runs.sqlite").exists()


def dropped(path):
    """A database that had a table once."""
    sql(path, "CREATE TABLE t (x)", "DROP TABLE t")


def sql(path, *statements):
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


@pytest.mark.parametrize("make", [Path.touch, dropped])
async def test_what_holds_nothing_becomes_storage(tmp_path, make):
    path = tmp_path / "runs.sqlite"
    make(path)
    await made(path)
    async with open_storage(path) as storage:
        assert len(await storage.log.notes("r")) == 30


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda path: path.write_text("My own notes.\n" * 40), "not a SQLite database"),
        (lambda path: path.write_text("x"), "not a SQLite database"),
        (lambda path: sql(path, "CREATE TABLE theirs (x)"), "of another program"),
        (lambda path: sql(path, "PRAGMA application_id = 7"), "of another program"),
    ],
)
async def test_a_file_that_is_not_ours_is_left_alone(tmp_path, make, told):
    make(tmp_path / "theirs")
    await refused(tmp_path / "theirs", match=told)


def overwritten(path, at):
    damaged = bytearray(path.read_bytes())
    damaged[at : at + 4_000] = b"\xa5" * 4_000
    path.write_bytes(damaged)


@pytest.mark.parametrize(
    "damage",
    [
        *(lambda path, at=at: overwritten(path, at) for at in (0, 30, 5_000, 30_000)),
        lambda path: path.write_bytes(path.read_bytes()[:30_000]),
        lambda path: sql(path, "DELETE FROM replan_facts"),
        lambda path: sql(path, "DROP TABLE replan_log"),
    ],
)
async def test_a_damaged_file_is_left_alone(tmp_path, damage):
    path = tmp_path / "runs.sqlite"
    await made(path)
    damage(path)
    error = await refused(path, match=r"damaged|not a SQLite database|another program")
    assert "left as it was" in error.fix


async def read_all(storage, thread):
    await storage.checkpointer.aget_tuple(thread)
    await storage.log.results("r")
    await storage.log.ledger("r")
    await storage.log.events("r")


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE replan_checkpoints SET metadata = x'ff00aabb'",
        "UPDATE replan_checkpoints SET checkpoint = x'ff00aabb'",
        "UPDATE replan_checkpoints SET versions = '['",
        "UPDATE replan_channels SET value = x'c1ff'",
        "UPDATE replan_writes SET value = x'c1ff'",
        "UPDATE replan_channels SET value = substr(value, 1, 10) WHERE kind = 'msgpack+zlib'",
        "UPDATE replan_channels SET value = x'78ff' WHERE kind = 'msgpack+zlib'",
        "UPDATE replan_log SET value = x'ff00' WHERE key LIKE 'result/%'",
        "UPDATE replan_log SET value = '[]' WHERE key LIKE 'result/%'",
        "UPDATE replan_log SET value = '[null]' WHERE key LIKE 'end/%'",
        "UPDATE replan_log SET value = replace(value, 'done', 'nobody knows')",
        "UPDATE replan_log SET event = '{' WHERE seq = 1",
        "UPDATE replan_texts SET text = '{'",
        "DELETE FROM replan_texts",
    ],
)
async def test_a_damaged_record_is_told(tmp_path, damage):
    path = tmp_path / "runs.sqlite"
    await made(path)
    thread = {"configurable": {"thread_id": "t"}}
    async with open_storage(path) as storage:
        versions = {"channel": "1.0"}
        values = {"channel_values": {"channel": ["a" * 300]}, "channel_versions": versions}
        config = await storage.checkpointer.aput(
            {"configurable": {"thread_id": "t", "checkpoint_ns": ""}},
            {**empty_checkpoint(), **values},
            {},
            versions,
        )
        await storage.checkpointer.aput_writes(config, [("channel", 1)], "task")
        attempt = Attempt(run_id="r", step_id=1, specialist="a", number=1, key="k", started_at=NOON)
        long = SpecialistResult(result=AIMessage("long " * 400))
        await storage.log.finished(attempt, long, NOON)
        await storage.log.add_events("r", [{"type": "run_started"}])
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute(damage).rowcount
        connection.commit()
    async with open_storage(path) as storage:
        with pytest.raises(StorageError, match="cannot be read: it was damaged"):
            await read_all(storage, thread)


async def test_damage_that_shows_only_later_ends_the_work_loudly(tmp_path):
    path = tmp_path / "runs.sqlite"
    await made(path)
    async with open_storage(path, patience=0.2) as storage:
        with path.open("r+b") as file:
            file.seek(4096)
            file.write(b"\xa5" * (path.stat().st_size - 4096))
        with pytest.raises(StorageError, match="damaged"):
            await storage.log.notes("r")


async def test_another_key_none_or_one_too_many_is_told(tmp_path):
    sealed, plain = tmp_path / "sealed", tmp_path / "plain"
    await made(sealed, key="right")
    await made(plain)
    await refused(sealed, match="another key", key="wrong")
    await refused(sealed, match="no key was given")
    await refused(plain, match="It is not encrypted", key="right")
    async with open_storage(sealed, key=b"right") as storage:
        assert len(await storage.log.notes("r")) == 30


async def test_an_empty_key_is_refused(tmp_path):
    with pytest.raises(ConfigurationError, match="is empty"):
        async with open_storage(tmp_path / "x", key=""):
            pytest.fail("it was opened")
    assert not (tmp_path / "x").exists()


async def test_a_folder_cannot_be_storage(tmp_path):
    with pytest.raises(StorageError, match="Is a directory"):
        async with open_storage(tmp_path):
            pytest.fail("it was opened")


@pytest.mark.parametrize(
    "where",
    ["mysql://user:secret@host/db", "postgresql:secret", "sqlite:runs.db", "sqlite://runs.db"],
)
async def test_what_begins_as_an_address_and_is_none_is_refused(where, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigurationError, match="Give a path, `sqlite:///path`") as caught:
        async with open_storage(where):
            pytest.fail("it was opened")
    assert where.partition(":")[0] in str(caught.value)
    assert "secret" not in str(caught.value)
    assert [*tmp_path.iterdir()] == []


def start_at_once(places):
    done = warm.run(FRESH_STARTS, "6", *places)
    assert not done.stderr, done.stderr
    assert done.returncode == 0


def test_many_processes_start_on_one_fresh_file(tmp_path):
    start_at_once(str(tmp_path / f"{number}.sqlite") for number in range(3))


def test_many_processes_start_on_one_fresh_database(postgres_dsn):
    with ExitStack() as stack:
        start_at_once([stack.enter_context(fresh_database(postgres_dsn)) for _ in range(2)])


async def test_a_journal_without_its_file_is_no_file(tmp_path):
    path = tmp_path / "runs.sqlite"
    (tmp_path / "runs.sqlite-journal").write_bytes(b"x" * 600)
    await made(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def busy_under(name, storage):
    """Hold a thread in storage, and try to hold it in the storage of another name."""
    async with storage.checkpointer.lock("t"), open_storage(name) as other:
        with pytest.raises(ThreadBusyError):
            async with other.checkpointer.lock("t"):
                pytest.fail("it is held twice")


async def test_a_thread_is_held_under_every_name_of_a_file(tmp_path, monkeypatch):
    (tmp_path / "link.sqlite").symlink_to(tmp_path / "runs.sqlite")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    async with open_storage("runs.sqlite") as storage:
        await busy_under("link.sqlite", storage)
        monkeypatch.chdir(tmp_path / "elsewhere")
        await busy_under(tmp_path / "runs.sqlite", storage)
    assert list((tmp_path / "elsewhere").iterdir()) == []


async def test_a_file_with_two_names_is_refused_until_one_is_left(tmp_path):
    first, second = tmp_path / "runs.sqlite", tmp_path / "link.sqlite"
    async with open_storage(first):
        pass
    second.hardlink_to(first)
    for path in (first, second):
        before = first.read_bytes()
        with pytest.raises(StorageError, match=r"2 names \(hard links\).*left as it was"):
            async with open_storage(path):
                pytest.fail("it was opened")
        assert first.read_bytes() == before
    second.unlink()
    async with open_storage(first) as storage, storage.checkpointer.lock("t"):
        pass


async def test_a_link_that_leads_to_itself_is_told(tmp_path):
    (tmp_path / "runs.sqlite").symlink_to(tmp_path / "runs.sqlite")
    with pytest.raises(StorageError, match="symbolic links"):
        async with open_storage(tmp_path / "runs.sqlite"):
            pytest.fail("it was opened")


MAKER = """
import sys
from pathlib import Path
from replan.storage.databases import sqlite_file

for number in range(1_000):
    path = Path(sys.argv[1]) / str(number)
    print(path, flush=True)
    sqlite_file.make_private(path)
    lock = sqlite_file.lock_of(path)
    sqlite_file.prepare(path, lambda: {"salt": b"s" * 16, "token": b""})
    lock.close()
"""


@pytest.mark.parametrize("files", [1, 3, 9, 14])
def test_a_process_killed_while_it_makes_a_file_leaves_one_that_can_be_used(tmp_path, files):
    with warm.Process(["-c", MAKER, tmp_path], stdout=subprocess.PIPE) as maker:
        for _ in range(files):
            maker.stdout.readline()
        maker.kill()
    asyncio.run(made(tmp_path / str(files - 1)))
