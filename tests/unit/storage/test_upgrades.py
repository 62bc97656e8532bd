"""Storage of an older format is upgraded where it stands: whole, or not at all."""

import pytest
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from sqlalchemy import inspect, text
from sqlalchemy.exc import DBAPIError

from old_storage import FORMATS, KINDS, changing, lay_out, picture
from postgres import fresh_database
from replan import StorageError, open_storage
from replan.adapters.storage.tables import formats
from replan.adapters.storage.tables.migrations import MIGRATIONS
from replan.ports.session_store import SessionKey
from upgrade_kills import killed, moments_of, open_it, widen, widen_it

OLDER = [number for number in FORMATS if number < formats.FORMAT]
ENDS = [OLDER[0], OLDER[-1]]
STRIDE = 5
"""Of so many moments of an upgrade, one is killed at: they are all in one transaction."""


@pytest.fixture
def fresh(where, request, tmp_path):
    """A second place of the same kind."""
    if where.startswith("postgresql"):
        with fresh_database(request.getfixturevalue("postgres_dsn")) as address:
            yield address
    else:
        yield str(tmp_path / "fresh.sqlite")


async def opened(where, **options):
    async with open_storage(where, **options) as storage:
        return [record.run_id for record in await storage.runs.recent(9)]


def test_there_is_a_sample_of_every_format_that_can_be_upgraded():
    assert list(range(1, formats.FORMAT)) == OLDER


@pytest.mark.parametrize("kind", KINDS)
async def test_a_session_of_an_older_version_is_read(kind, where):
    lay_out(8, kind, where)
    async with open_storage(where, key=KINDS[kind]) as storage:
        kept = await storage.sessions.load(SessionKey("", "anna", "sample"))
        page = await storage.sessions.history(SessionKey("", "anna", "sample"), None, 9)
    assert kept is not None
    assert (kept.version, kept.newest) == (3, 3)
    assert [each.content for each in page.messages] == ["Turn 0", "Turn 2"]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_thread_of_an_older_version_is_read(kind, where):
    lay_out(9, kind, where)
    async with open_storage(where, key=KINDS[kind]) as storage:
        thread = await storage.threads.get_thread("sample")
    assert thread is not None
    ((path, inner),) = thread.sub_threads()
    texts = [each.text for each in (*thread.messages, *inner.messages)]
    assert (path, texts) == ("messages.0.meta._thread", ["Outside.", "Inside."])


@pytest.mark.parametrize("number", OLDER)
async def test_upgraded_storage_has_the_schema_of_new_storage_and_keeps_it(number, where, fresh):
    lay_out(number, "plain", where)
    assert len(await opened(where)) == 4
    await opened(fresh)
    old, new = picture(where), picture(fresh)
    await opened(where)
    assert picture(where) == old
    assert old["schema"] == new["schema"]
    assert old["rows"].get("user_version") == new["rows"].get("user_version")
    names = [[row.split(",")[0] for row in each["rows"]["replan_facts"]] for each in (old, new)]
    assert names[0] == names[1]


@pytest.mark.parametrize("number", ENDS)
async def test_a_wrong_key_upgrades_nothing(number, where):
    lay_out(number, "encrypted", where)
    before = picture(where)
    for key in (None, "wrong"):
        with pytest.raises(StorageError, match="key"):
            await opened(where, key=key)
    assert picture(where) == before
    assert len(await opened(where, key=KINDS["encrypted"])) == 4


@pytest.mark.parametrize("number", ENDS)
async def test_old_storage_that_lacks_a_table_is_left_as_it_was(number, where):
    lay_out(number, "plain", where)
    with changing(where) as connection:
        connection.exec_driver_sql("DROP TABLE replan_results")
    before = picture(where)
    with pytest.raises(StorageError, match="damaged"):
        await opened(where)
    assert picture(where) == before


@pytest.mark.parametrize(
    ("number", "work"),
    [(OLDER[0], open_it), (OLDER[-1], open_it), (OLDER[-1], widen_it)],
    ids=["opening the oldest", "opening the newest", "a migration of all kinds"],
)
def test_a_process_killed_while_it_upgrades_leaves_the_old_format_whole(number, work, where, fresh):
    lay_out(number, "plain", where)
    lay_out(number, "plain", fresh)
    last = moments_of(work, fresh)
    before, upgraded = picture(where), picture(fresh)
    assert before != upgraded
    assert last >= 3
    # Before the first change, on the way, before the commit; then after it.
    for at in sorted({1, *range(2, last, STRIDE), last - 1}):
        assert killed(work, where, None, at)
        assert picture(where) == before, at
    assert killed(work, where, None, last)
    assert picture(where) == upgraded


@pytest.mark.parametrize("number", ENDS)
def test_a_migration_that_fails_leaves_the_old_format_whole(number, where):
    def failing(connection):
        widen(connection)
        connection.exec_driver_sql("SELECT no_such_column FROM replan_runs")

    lay_out(number, "plain", where)
    before = picture(where)
    with pytest.raises(DBAPIError), changing(where) as connection:
        formats.upgrade(connection, where, (*MIGRATIONS, failing))
    assert picture(where) == before


@pytest.mark.parametrize("at", [1, 9, 15])
async def test_a_process_killed_while_it_makes_storage_leaves_none(at, where):
    assert killed(open_it, where, None, at)
    with changing(where) as connection:
        assert inspect(connection).get_table_names() == []
    assert await opened(where) == []


async def test_langgraphs_own_upgrade_that_was_cut_off_is_done_again(empty_database):
    """As a process leaves it that is killed between a change and the record of it."""
    lay_out(1, "plain", empty_database)
    with changing(empty_database) as connection:
        connection.execute(text("DELETE FROM checkpoint_migrations WHERE v > 5"))
    assert len(await opened(empty_database)) == 4
    with changing(empty_database) as connection:
        query = text("SELECT max(v) FROM checkpoint_migrations")
        assert connection.scalar(query) == len(AsyncPostgresSaver.MIGRATIONS) - 1


async def test_a_newer_version_is_named(where):
    await opened(where)
    with changing(where) as connection:
        name = {"name": "release", "value": b"7.8.9"}
        connection.execute(text("UPDATE replan_facts SET value = :value WHERE name = :name"), name)
        if connection.dialect.name == "sqlite":
            connection.execute(text("PRAGMA user_version = 99"))
        else:
            newer = {"name": "version", "value": b"99"}
            connection.execute(
                text("UPDATE replan_facts SET value = :value WHERE name = :name"), newer
            )
    before = picture(where)
    with pytest.raises(StorageError, match=r"newer version of Replan \(7\.8\.9, format 99"):
        await opened(where)
    assert picture(where) == before


@pytest.mark.parametrize("lost", [["salt", "token", "version"], ["version"], ["salt"]])
async def test_rows_without_what_storage_keeps_about_itself_are_left_alone(lost, empty_database):
    """A new salt would make all that is encrypted there unreadable forever."""
    lay_out(1, "plain", empty_database)
    with changing(empty_database) as connection:
        statement = text("DELETE FROM replan_facts WHERE name = ANY(:lost)")
        connection.execute(statement, {"lost": lost})
    before = picture(empty_database)
    with pytest.raises(StorageError, match="damaged"):
        await opened(empty_database)
    assert picture(empty_database) == before
