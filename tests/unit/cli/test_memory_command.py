"""`replan memory` lists, exports and forgets the facts of a user."""

import asyncio
import getpass
import json
from datetime import UTC, datetime

import pytest
from typer.testing import CliRunner

from replan import open_storage
from replan.cli.main import app
from replan.memory import Fact
from replan.memory.facts import facts_of

AT = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def place(tmp_path):
    """A storage with facts of this user, and one of Eva's in another tenant."""
    where = tmp_path / "facts.db"

    async def fill():
        async with open_storage(where) as storage:
            own = facts_of(storage.store, getpass.getuser())
            for number, text in enumerate(["I like tea.", "Parcels\x1b[31m leave\non Friday."]):
                await own.remember(Fact(id=f"a{number}", text=text, at=AT))
            await facts_of(storage.store, "eva", "north").remember(Fact(id="b", text="!", at=AT))

    asyncio.run(fill())
    return where


def memory(place, *words):
    return CliRunner().invoke(app, ["memory", *map(str, words), "--storage", str(place)])


def test_facts_are_listed_in_harmless_lines_or_as_json(place):
    done = memory(place, "list")
    assert done.exit_code == 0
    assert [line.split("  ")[0].strip() for line in done.stdout.splitlines()] == ["a1", "a0"]
    assert "Parcels\ufffd[31m leave on Friday." in done.stdout
    lines = memory(place, "list", "--json").stdout.splitlines()
    assert [json.loads(line)["text"] for line in lines][1] == "I like tea."
    assert "a1" not in memory(place, "list", "--query", "tea").stdout
    assert memory(place, "list", "--query", "zebra").stdout.startswith("No fact has these words.")
    assert "b " in memory(place, "list", "--user", "eva", "--tenant", "north").stdout
    none = memory(place, "list", "--user", "eva")
    assert none.stdout == "Nothing is remembered of the user 'eva' here.\n"
    assert memory(place, "list", "--user", "").exit_code == 2


def test_an_export_is_one_file_that_takes_no_other_ones_place(place, tmp_path):
    file = tmp_path / "own.json"
    assert memory(place, "export", "-o", file).stdout == f"wrote 2 facts to {file}\n"
    assert file.stat().st_mode & 0o077 == 0
    told = json.loads(file.read_text())
    assert (told["user"], told["tenant"]) == (getpass.getuser(), "")
    assert [each["id"] for each in told["facts"]] == ["a1", "a0"]
    before = file.read_bytes()
    refused = memory(place, "export", "-o", file)
    assert refused.exit_code == 2
    assert "exists already" in refused.stderr
    assert file.read_bytes() == before
    assert json.loads(memory(place, "export").stdout) == told


def test_a_name_that_is_no_text_is_written_as_json_escapes_it(place, tmp_path):
    file = tmp_path / "odd.json"
    assert memory(place, "export", "-o", file, "--user", "\udcff").exit_code == 0
    assert json.loads(file.read_text())["user"] == "\udcff"


def test_what_is_forgotten_is_asked_about_and_unknown_ids_are_refused(place):
    for words, said in (
        (["forget"], "Name the ids of facts, or give --all."),
        (["forget", "a0", "--all"], "Name the ids of facts, or give --all."),
        (["forget", "a0", "b", "--yes"], "has no fact b."),
        (["forget", "a0"], "--yes"),
    ):
        refused = memory(place, *words)
        assert refused.exit_code == 2
        assert said in refused.stderr
    assert len(memory(place, "list").stdout.splitlines()) == 2
    assert memory(place, "forget", "a0", "a0", "--yes").stdout == "forgot 1 fact\n"
    assert memory(place, "forget", "--all", "--yes").stdout == "forgot 1 fact\n"
    assert memory(place, "list", "--user", "eva", "--tenant", "north").stdout.startswith("b ")
