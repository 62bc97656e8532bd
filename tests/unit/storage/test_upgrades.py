"""Storage of another format is upgraded where it stands, or refused: whole, or not at all."""

from datetime import UTC, datetime

import pytest

from kills import Life, lived
from postgres import fresh_database
from replan import Host, Specialist, StorageError, Team, build_graph, open_storage, run
from replan.ports.run_book import RunRecord
from replan.storage.databases import schema
from replan.testing import ScriptedModel, always
from storage_kills import open_it, widen, widen_it
from stored_tables import changing, picture, tables_in

STATEMENTS = 8
"""So many statements does the upgrade have."""


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


async def with_a_run(where, key=None):
    """Storage with a run that is over."""
    async with open_storage(where, key=key) as storage:
        with ScriptedModel({"feedback": always("---\nverdict: complete\n---\nDone.")}) as model:
            cook = Specialist(name="cook", intended_use="Cooks.", run=lambda context: "Cut.")
            graph = build_graph(Team(Host(model=model), [cook]), storage=storage)
            config = {"configurable": {"thread_id": "t"}}
            await run(graph, {"plan": "- [ ] 1. Cut @cook\n"}, config=config, run_id="r")
        started = datetime(2026, 11, 28, tzinfo=UTC)
        record = RunRecord(run_id="r", thread_id="t", started_at=started, updated_at=started)
        await storage.runs.begin(record)


async def test_a_process_killed_while_it_upgrades_leaves_the_old_format_whole(
    where, fresh, tmp_path
):
    for place in (where, fresh):
        await with_a_run(place)
    last = lived(widen_it, Life(tmp_path, fresh))
    before, upgraded = picture(where), picture(fresh)
    assert {name for name, rows in before["rows"].items() if rows} >= {
        "replan_log",
        "replan_checkpoints",
        "replan_writes",
        "replan_runs",
    }
    assert upgraded["schema"].keys() - before["schema"].keys() >= {"replan_extra"}
    assert [row["extra"] for row in upgraded["rows"]["replan_runs"]] == ["t"]
    states = []
    for at in range(1, last + 1):
        assert lived(widen_it, Life(tmp_path, where, at)) is None
        now = picture(where)
        states.append("old" if now == before else "new")
        if states[-1] == "new":
            assert now["schema"] == upgraded["schema"]
            break
    # Before each change and before the commit it is old; after that, nothing changes it any more.
    assert states == ["old"] * (len(states) - 1) + ["new"]
    assert len(states) > STATEMENTS
    widened = picture(where)
    assert lived(widen_it, Life(tmp_path, where)) == 0
    assert picture(where) == widened
    with pytest.raises(StorageError, match="format 2; this one knows format 1"):
        await opened(where)


@pytest.mark.parametrize("key", [None, "a key"])
async def test_an_upgrade_keeps_what_was_recorded(key, where, monkeypatch):
    await with_a_run(where, key=key)
    monkeypatch.setattr(schema, "MIGRATIONS", (widen,))
    monkeypatch.setattr(schema, "FORMAT", 2)
    for _ in range(2):
        async with open_storage(where, key=key) as storage:
            assert [each.text for each in (await storage.log.results("r")).values()] == ["Cut."]
            thread = {"configurable": {"thread_id": "t"}}
            assert await storage.checkpointer.aget_tuple(thread) is not None


async def test_a_migration_that_fails_leaves_the_old_format_whole(where, monkeypatch):
    def failing(connection):
        widen(connection)
        connection.query("SELECT no_such_column FROM replan_runs")

    await with_a_run(where)
    before = picture(where)
    monkeypatch.setattr(schema, "MIGRATIONS", (failing,))
    monkeypatch.setattr(schema, "FORMAT", 2)
    with pytest.raises(StorageError, match="no_such_column"):
        await opened(where)
    assert picture(where) == before


@pytest.mark.parametrize("at", [1, 9, 30])
async def test_a_process_killed_while_it_makes_storage_leaves_none(at, where, tmp_path):
    assert lived(open_it, Life(tmp_path, where, at)) is None
    with changing(where) as connection:
        assert tables_in(connection) == []
    assert await opened(where) == []


def set_fact(connection, name, value):
    assert connection.change("UPDATE replan_facts SET value = ? WHERE name = ?", [value, name])


async def test_a_newer_version_is_named(where):
    await opened(where)
    with changing(where) as connection:
        set_fact(connection, "release", b"7.8.9")
        if connection.is_postgres:
            set_fact(connection, "version", b"99")
        else:
            connection.change("PRAGMA user_version = 99")
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
            connection.change("DELETE FROM replan_facts WHERE name = 'schema'")
    before = picture(where)
    with pytest.raises(StorageError, match=r"before its first release.*name another place"):
        await opened(where)
    assert picture(where) == before


@pytest.mark.parametrize("lost", [["salt", "token", "version"], ["version"], ["salt"], ["all"]])
async def test_rows_without_what_storage_keeps_about_itself_are_left_alone(lost, empty_database):
    """A new salt would make all that is encrypted there unreadable forever."""
    await with_a_run(empty_database)
    with changing(empty_database) as connection:
        statement = "DELETE FROM replan_facts WHERE name = ANY(?) OR 'all' = ANY(?)"
        connection.change(statement, [lost, lost])
    before = picture(empty_database)
    with pytest.raises(StorageError, match="damaged"):
        await opened(empty_database)
    assert picture(empty_database) == before
