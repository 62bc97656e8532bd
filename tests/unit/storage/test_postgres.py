"""What only PostgreSQL brings: users, rights, a server that is not there, a format of its own."""

import builtins

import psycopg
import pytest

from replan import ConfigurationError, StorageError, open_storage
from replan.storage.databases.postgres import shown


async def refused(address, *, match, **options):
    with pytest.raises(StorageError, match=match) as caught:
        async with open_storage(address, patience=0.2, **options):
            pytest.fail("it was opened")
    return str(caught.value)


async def test_a_server_that_is_not_there_is_told_without_the_password():
    said = await refused(
        "postgresql://somebody:hunter2@127.0.0.1:1/runs", match="cannot be reached"
    )
    assert "postgresql://127.0.0.1:1/runs" in said
    assert "hunter2" not in said
    assert "somebody" not in said


async def test_a_database_that_is_not_there_is_told(empty_database):
    await refused(empty_database + "_not", match="has no such database")


async def test_a_user_who_is_not_there_is_told(empty_database):
    address = empty_database.replace("tester@", "nobody_of_the_kind@")
    said = await refused(address, match="refuses this user")
    assert "nobody_of_the_kind" not in said


async def test_a_user_without_rights_is_told(empty_database):
    with psycopg.connect(empty_database, autocommit=True) as connection:
        connection.execute("CREATE ROLE stranger LOGIN PASSWORD 'x'")
    try:
        address = empty_database.replace("tester@", "stranger:x@")
        await refused(address, match="refuses this user")
    finally:
        with psycopg.connect(empty_database, autocommit=True) as connection:
            connection.execute("DROP ROLE stranger")


async def test_without_the_driver_the_extra_is_named(monkeypatch):
    real = builtins.__import__

    def without_psycopg(name, *arguments, **named):
        if name == "replan.storage.advisory_holds":
            raise ImportError("No module named 'psycopg'")
        return real(name, *arguments, **named)

    monkeypatch.setattr(builtins, "__import__", without_psycopg)
    with pytest.raises(ConfigurationError, match=r"replan\[postgres\]"):
        async with open_storage("postgresql://127.0.0.1/runs"):
            pytest.fail("it was opened")


@pytest.mark.parametrize(
    ("address", "text"),
    [
        ("postgresql://u:p@host:5433/db?sslmode=require", "postgresql://host:5433/db"),
        ("postgresql://host/db", "postgresql://host/db"),
        ("postgresql:///db?host=/run/pg", "postgresql:///run/pg/db"),
    ],
)
def test_an_address_is_shown_without_user_and_password(address, text):
    assert shown(address) == text


@pytest.mark.parametrize("address", ["postgresql://u:secret@[h/db", "postgresql://u:secret@h/db?x"])
async def test_what_is_no_address_is_told_without_what_it_says(address):
    with pytest.raises(ConfigurationError, match="not an address of PostgreSQL") as caught:
        async with open_storage(address):
            pytest.fail("it was opened")
    assert "secret" not in f"{caught.value!r} {caught.value.__cause__!r}"
