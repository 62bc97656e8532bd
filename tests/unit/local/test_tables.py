"""The data analyst reads the folder it was given, and nothing else on the machine."""

import asyncio
import sys
import time

import pytest

from cases import cases_of
from replan.errors import ConfigurationError
from replan.plan.model import PlanStep
from replan.ports.run_context import Folders, using
from replan.state.results import ExecutionContext, ExecutionStatus
from replan_local import data_analyst

CASES = cases_of(__file__)

ATTACKS = CASES["attacks"]


@pytest.fixture
def secret(folder):
    path = folder.parent / "secret.csv"
    path.write_text("word\nswordfish\n")
    return path


@pytest.mark.parametrize("attack", ATTACKS)
async def test_a_query_can_neither_read_nor_write_anything_else(ask, folder, secret, attack):
    before = {path: path.read_bytes() for path in folder.iterdir()}
    sql = attack.format(folder=folder, secret=secret)
    result = await ask("x", sql=sql)
    assert result.status is ExecutionStatus.FAILED, result.text
    assert not result.retry
    assert "swordfish" not in result.error
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


async def test_a_condition_is_no_sql(ask):
    for condition in CASES["conditions"]:
        result = await ask("x", table="sightings.csv", by="site", where=condition)
        assert "is not a command" in result.error, condition


async def test_every_form_of_a_query_runs(ask):
    for sql in CASES["forms"]:
        result = await ask("x", sql=sql)
        assert result.status is ExecutionStatus.SUCCESS, result.error


def self_joined(levels: int) -> str:
    parts = (f"a{i} AS (FROM a{i - 1}, a{i - 1} b{i})" for i in range(1, levels))
    return f"WITH a0 AS (FROM sightings), {', '.join(parts)} FROM a{levels - 1}"


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        (f"SELECT {'1 + ' * 6_000}1", "at most 20,000"),
        ("SELECT * FROM " + "(SELECT * FROM " * 900 + "sightings" + ")" * 900, "at most 24"),
        (self_joined(30), "at most 24"),
        ("FROM duckdb_settings()", "duckdb_settings"),
        ("FROM duckdb_views", "duckdb_views"),
        ('SELECT * FROM "duckdb_views"()', "duckdb_views"),
        ("FROM query('FROM duckdb_' || 'settings()')", "query"),
        ("SELECT sql FROM sqlite_master", "sqlite_master"),
        ("SELECT view_definition FROM information_schema.views", "information_schema"),
        ("SELECT definition FROM pg_views", "pg_views"),
        ("SELECT current_setting('allowed_paths')", "current_setting"),
    ],
)
async def test_sql_of_a_step_is_small_and_looks_at_the_tables_only(ask, folder, sql, reason):
    result = await ask("x", sql=sql)
    assert result.status is ExecutionStatus.FAILED
    assert reason in result.error
    assert str(folder) not in result.error


async def test_a_cell_is_cut_in_the_database(ask, folder):
    # Not above: DuckDB complains at the end of a process that forked others.
    import duckdb  # noqa: PLC0415

    duckdb.sql("SELECT repeat('x', 100_000) AS word, range AS n FROM range(500)").write_parquet(
        str(folder / "bomb.parquet")
    )
    assert (folder / "bomb.parquet").stat().st_size < 500_000
    result = await ask("x", sql="SELECT * FROM bomb")
    assert result.status is ExecutionStatus.SUCCESS, result.error
    assert "x" * 501 not in result.text


async def test_a_query_takes_no_more_than_its_memory(ask):
    result = await ask("x", sql="SELECT list(r) FROM range(300_000_000) t(r)")
    assert result.status is ExecutionStatus.FAILED
    assert "Out of Memory" in result.error


async def test_times_with_a_zone_need_no_other_package(ask):
    sql = 'SELECT "at"::TIMESTAMPTZ AS moment FROM rings LIMIT 1'
    assert "2024-01-05 10:00:00+00" in (await ask("x", sql=sql)).text


@pytest.mark.parametrize(
    "name", ["../secret.csv", "link.csv", "linked/secret.csv", "/etc/hosts.csv"]
)
async def test_no_file_name_leads_out_of_the_folder(ask, folder, secret, name):
    (folder / "link.csv").symlink_to(secret)
    (folder / "linked").symlink_to(secret.parent, target_is_directory=True)
    for result in (await ask(f'count from "{name}"'), await ask("x", table=name)):
        assert result.status is ExecutionStatus.FAILED
        assert "swordfish" not in result.error


async def test_only_tables_inside_the_folder_are_found(ask, folder, secret):
    (folder / "link.csv").symlink_to(secret)
    (folder / "inner.csv").symlink_to(folder / "sightings.csv")
    (folder / ".hidden.csv").write_text("a\n1\n")
    (folder / "notes.txt").write_text("a\n1\n")
    deep = folder / "a" / "b" / "c" / "d"
    deep.mkdir(parents=True)
    (deep / "deep.csv").write_text("a\n1\n")
    (folder / "a" / "sites.csv").write_text("a\n1\n")
    head, _, *lines = (await ask("list tables")).text.splitlines()
    names = "a/sites.csv, inner.csv, rings.json, sightings.csv, sites.parquet"
    assert head == f"The tables are: {names}."
    views = [line.partition("in SQL ")[2].partition(":")[0] for line in lines]
    assert views == ["sites", "inner", "rings", "sightings", "sites.parquet"]


async def test_a_name_that_two_folders_have_must_be_told_apart(ask, folder):
    for sub in ("a", "b"):
        (folder / sub).mkdir()
        (folder / sub / "same.csv").write_text("team,cost\nx,1\n")
    assert "Name one with its folder" in (await ask("total cost by team from same.csv")).error
    assert "| x | 1 |" in (await ask("total cost by team from b/same.csv")).text


BROKEN = {
    "broken.json": b'{"a": [1, 2',
    "broken.tsv": b"\xff\xfe\x00\x01,\n",
    "broken.parquet": b"PAR1 and no more",
    "broken.csv": b"",
}


async def test_a_broken_file_is_named_where_it_is_asked_for_and_in_the_list(ask, folder):
    for name, content in BROKEN.items():
        (folder / name).write_bytes(content)
        for command, parameters in (
            (f"count from {name}", {}),
            ("total seen by site from broken", {}),
            ("x", {"sql": "SELECT * FROM broken"}),
            ("x", {"table": name}),
        ):
            result = await ask(command, **parameters)
            assert result.status is ExecutionStatus.FAILED, result.text
            assert f"{name} cannot be read as a table" in result.error
        # Only what is asked for has to be read.
        assert "| 36 |" in (await ask("x", sql="SELECT sum(seen) FROM sightings -- broken")).text
        text = (await ask("list tables")).text
        assert f"- {name} cannot be read as a table" in text
        assert "- sites.parquet, in SQL sites: site (varchar), area (decimal(4,1))" in text
        (folder / name).unlink()


async def test_a_name_with_blanks_or_signs_is_found_as_it_stands(ask, folder):
    (folder / "a folder").mkdir()
    for name in ("Sales 2024.csv", "a folder/north, south.csv", "q (final).csv"):
        (folder / name).write_text("team,cost\nx,1\nx,2\n")
        for result in (
            await ask(f'total cost by team from "{name.upper()}"'),
            await ask("x", table=name, measures="total cost", by=["team"]),
        ):
            assert "| x | 3 |" in result.text, result.error


async def test_a_file_that_is_not_utf8_says_so(ask, folder):
    (folder / "german.csv").write_bytes("Straße;Menge\nNebenweg;2\n".encode("latin-1"))
    assert "not utf-8" in (await ask("count from german.csv")).error


async def test_a_cancelled_step_stops_its_query_at_once(folder):
    sql = "SELECT count(*) FROM range(10000000000) a, range(100000) b"
    step = PlanStep(id=1, description="x", parameters={"sql": sql})
    context = ExecutionContext(task_description="x", plan_step=step, parameters=step.parameters)
    started = time.monotonic()
    with pytest.raises(TimeoutError), using(folders=Folders(folder, folder)):
        await asyncio.wait_for(data_analyst.run(context, {}), timeout=0.3)
    assert time.monotonic() - started < 3


async def test_without_duckdb_the_step_says_what_to_install(ask, monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(ConfigurationError, match=r'pip install "replan\[local\]"'):
        await ask("list tables")
