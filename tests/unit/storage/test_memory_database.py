"""A database in memory goes with who has it."""

import gc
import sqlite3

import pytest

from replan.storage.memory import memory_database


async def test_a_database_that_nothing_refers_to_is_closed():
    """Else Python 3.13 warns of it wherever a runtime without storage ends."""
    database, connections = memory_database(), []
    await database.read(connections.append)
    (connection,) = connections
    assert connection.query("SELECT count(*) FROM replan_runs") == [(0,)]
    del database
    gc.collect()
    with pytest.raises(sqlite3.ProgrammingError, match="closed database"):
        connection.query("SELECT count(*) FROM replan_runs")
