"""The short form of the thousand cancellations: a few cuts in memory and in a SQLite file."""

import sqlite3
from contextlib import closing

import psycopg
import pytest

WRONG = (
    "tasks left",
    "transactions left",
    "recorded steps done again",
    "tries without a row",
    "not completed",
)


@pytest.fixture(scope="module")
def found(rows):
    return rows("cancellations", "--runs", "12", "--seed", "7")


def test_nothing_is_left_and_every_run_goes_on_to_its_end(found):
    places = [(row["storage"], row["by"]) for row in found]
    kinds = ("cancelled", "told to stop")
    assert places == [(storage, kind) for storage in ("memory", "SQLite") for kind in kinds]
    assert [row[name] for row in found for name in WRONG] == [0] * len(found) * len(WRONG)


def test_as_many_runs_as_wanted_were_really_cut_off(found):
    assert sum(row["cut before the end"] for row in found) == 24
    assert all(0 < row["cut before the end"] <= row["runs"] for row in found)


def test_a_file_with_an_open_transaction_is_noticed(script, tmp_path):
    file = tmp_path / "runs.db"
    benchmark = script("cancellations")
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("CREATE TABLE things (name)")
        assert not benchmark.is_locked(file)
        connection.execute("BEGIN IMMEDIATE")
        assert benchmark.is_locked(file)


def test_a_session_with_an_open_transaction_is_noticed(script, postgres_database):
    benchmark = script("cancellations")
    with psycopg.connect(postgres_database) as connection:
        assert not benchmark.is_in_transaction(postgres_database)
        connection.execute("SELECT 1")
        assert benchmark.is_in_transaction(postgres_database)
