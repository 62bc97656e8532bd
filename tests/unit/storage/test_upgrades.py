"""Storage of another format is upgraded where it stands, or refused: whole, or not at all."""

from datetime import UTC, datetime

import pytest
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from sqlalchemy import inspect, text
from sqlalchemy.exc import DBAPIError

from postgres import fresh_database
from replan import Host, Specialist, StorageError, Team, build_graph, open_storage, run
from replan.adapters.storage.tables import formats
from replan.ports.run_book import RunRecord
from replan.testing import ScriptedModel, always
from storage_kills import killed, moments_of, open_it, widen, widen_it
from stored_tables import changing, picture

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


async def with_a_run(where):
    """Storage with a run that is over."""
    async with open_storage(where) as storage:
        with ScriptedModel({"feedback": always("---\nverdict: complete\n---\nDone.")}) as model:
            cook = Specialist(name="cook", intended_use="Cooks.", run=lambda context: "Cut.")
            graph = build_graph(Team(Host(model=model), [cook]), storage=storage)
            config = {"configurable": {"thread_id": "t"}}
            await run(graph, {"plan": "- [ ] 1. Cut @cook\n"}, config=config, run_id="r")
        started = datetime(2026, 11, 28, tzinfo=UTC)
        record = RunRecord(run_id="r", thread_id="t", started_at=started, updated_at=started)
        await storage.runs.begin(record)


async def test_a_process_killed_while_it_upgrades_leaves_the_old_format_whole(where, fresh):
    for place in (where, fresh):
        await with_a_run(place)
    last = moments_of(widen_it, fresh)
    before, upgraded = picture(where), picture(fresh)
    assert {name for name, rows in before["rows"].items() if rows} >= {"replan_results"}
    assert upgraded["schema"].keys() - before["schema"].keys() == {"replan_extra"}
    assert last >= 3
    # Before the first change, on the way, before the commit; then after it.
    for at in sorted({1, *range(2, last, STRIDE), last - 1}):
        assert killed(widen_it, where, None, at)
        assert picture(where) == before, at
    assert killed(widen_it, where, None, last)
    assert picture(where)["schema"] == upgraded["schema"]
    with pytest.raises(StorageError, match="format 2; this one knows format 1"):
        await opened(where)


async def test_a_migration_that_fails_leaves_the_old_format_whole(where):
    def failing(connection):
        widen(connection)
        connection.exec_driver_sql("SELECT no_such_column FROM replan_runs")

    await with_a_run(where)
    before = picture(where)
    with pytest.raises(DBAPIError), changing(where) as connection:
        formats.upgrade(connection, where, (failing,))
    assert picture(where) == before


@pytest.mark.parametrize("at", [1, 9, 15])
async def test_a_process_killed_while_it_makes_storage_leaves_none(at, where):
    assert killed(open_it, where, None, at)
    with changing(where) as connection:
        assert inspect(connection).get_table_names() == []
    assert await opened(where) == []


async def test_langgraphs_own_upgrade_that_was_cut_off_is_done_again(empty_database):
    """As a process leaves it that is killed between a change and the record of it."""
    await with_a_run(empty_database)
    with changing(empty_database) as connection:
        connection.execute(text("DELETE FROM checkpoint_migrations WHERE v > 5"))
    assert await opened(empty_database) == ["r"]
    with changing(empty_database) as connection:
        query = text("SELECT max(v) FROM checkpoint_migrations")
        assert connection.scalar(query) == len(AsyncPostgresSaver.MIGRATIONS) - 1


def set_fact(connection, name, value):
    statement = text("UPDATE replan_facts SET value = :value WHERE name = :name")
    connection.execute(statement, {"name": name, "value": value})


async def test_a_newer_version_is_named(where):
    await opened(where)
    with changing(where) as connection:
        set_fact(connection, "release", b"7.8.9")
        if connection.dialect.name == "sqlite":
            connection.execute(text("PRAGMA user_version = 99"))
        else:
            set_fact(connection, "version", b"99")
    before = picture(where)
    with pytest.raises(StorageError, match=r"newer version of Replan \(7\.8\.9, format 99"):
        await opened(where)
    assert picture(where) == before


@pytest.mark.parametrize("is_known", [True, False], ids=["another schema", "no schema"])
async def test_storage_from_before_the_first_release_is_refused_and_left_alone(is_known, where):
    await with_a_run(where)
    with changing(where) as connection:
        if is_known:
            set_fact(connection, "schema", b"another")
        else:
            connection.execute(text("DELETE FROM replan_facts WHERE name = 'schema'"))
    before = picture(where)
    with pytest.raises(StorageError, match=r"before its first release.*name another place"):
        await opened(where)
    assert picture(where) == before


@pytest.mark.parametrize("lost", [["salt", "token", "version"], ["version"], ["salt"], ["all"]])
async def test_rows_without_what_storage_keeps_about_itself_are_left_alone(lost, empty_database):
    """A new salt would make all that is encrypted there unreadable forever."""
    await with_a_run(empty_database)
    with changing(empty_database) as connection:
        statement = text("DELETE FROM replan_facts WHERE name = ANY(:lost) OR 'all' = ANY(:lost)")
        connection.execute(statement, {"lost": lost})
    before = picture(empty_database)
    with pytest.raises(StorageError, match="damaged"):
        await opened(empty_database)
    assert picture(empty_database) == before
