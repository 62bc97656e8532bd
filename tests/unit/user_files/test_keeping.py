"""Where runs are kept, and how one is named."""

from datetime import UTC, datetime, timedelta

import pytest

from replan.cli.user_files.storage_location import (
    StorageLocation,
    find_run,
    location_of,
    open_location,
)
from replan.errors import ConfigurationError, InputError
from replan.ports.run_book import RunRecord

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def test_the_option_goes_before_the_environment_and_that_before_the_own_file(data_folder):
    environment = {"REPLAN_STORAGE": "theirs.db", "REPLAN_STORAGE_KEY": "k"}
    assert location_of("mine.db", environment) == StorageLocation(
        "mine.db", "k", " --storage mine.db"
    )
    assert location_of(None, environment) == StorageLocation("theirs.db", "k")
    own = location_of(None, {"REPLAN_STORAGE": "", "REPLAN_STORAGE_KEY": ""})
    assert own == StorageLocation(str(data_folder / "replan" / "runs.db"))
    assert own.outlives
    assert not location_of("memory", {}).outlives


@pytest.mark.parametrize(
    ("asked", "option"),
    [
        ("my runs.db", " --storage 'my runs.db'"),
        ("postgresql://me:secret@db/runs", " --storage postgresql://me@db/runs"),
        ("postgresql://[broken", " --storage 'postgresql://[broken'"),
        ("postgresql://h/db?password=p&user=u", " --storage 'postgresql://h/db?user=u'"),
        ("postgresql://h/db?user=u&sslPassword=p", " --storage 'postgresql://h/db?user=u&'"),
    ],
)
def test_a_command_names_the_place_again_without_its_password(asked, option):
    assert location_of(asked, {}).option == option


async def test_a_place_that_cannot_be_opened_is_wrong_use(tmp_path):
    with pytest.raises(ConfigurationError):
        async with open_location(StorageLocation("ftp://somewhere")):
            pass
    (tmp_path / "text.db").write_text("no database" * 100)
    with pytest.raises(InputError, match="not a SQLite database"):
        async with open_location(StorageLocation(str(tmp_path / "text.db"))):
            pass


async def test_a_run_is_found_by_the_beginning_of_its_id():
    ids = ["aaaaaaaa1111", "aaaaaaaa2222", "bb", "bbcc"]
    async with open_location(StorageLocation("memory")) as storage:
        for number, run_id in enumerate(ids):
            at = NOON + timedelta(minutes=number)
            record = RunRecord(run_id=run_id, thread_id=run_id, started_at=at, updated_at=at)
            await storage.runs.begin(record)
        assert (await find_run(storage.runs, "aaaaaaaa1")).run_id == "aaaaaaaa1111"
        assert (await find_run(storage.runs, "bb")).run_id == "bb", "a whole id is no beginning"
        assert (await find_run(storage.runs, "last")).run_id == "bbcc"
        for prefix in ("c", ""):
            with pytest.raises(InputError, match=f"There is no run '{prefix}'"):
                await find_run(storage.runs, prefix)
        with pytest.raises(InputError) as caught:
            await find_run(storage.runs, "aaaa")
        assert "aaaaaaaa2, aaaaaaaa1. Write more of its characters." in str(caught.value)


def test_a_place_tells_neither_its_key_nor_its_password_where_it_is_printed():
    location = location_of("postgresql://u:word@h/db", {"REPLAN_STORAGE_KEY": "a key"})
    assert "word" not in repr(location)
    assert "a key" not in repr(location)
