"""With a key, nothing that people, models or tools said stands in the database in the clear."""

import sqlite3
from contextlib import closing
from datetime import UTC, datetime

import psycopg
import pytest
from langchain_core.messages import AIMessage

from replan import Host, Specialist, StorageError, Team, build_graph, open_storage, run
from replan.ports.journal import Attempt
from replan.ports.run_book import RunRecord
from replan.state.results import SpecialistResult
from replan.testing import ScriptedModel, always

WORDS = (
    "Aardvark",
    "Buffalo",
    "Cormorant",
    "Dromedary",
    "Echidna",
    "Flamingo",
    "Gazelle",
    "Hyena",
    "Ibex",
)
COMPLETE = f"---\nverdict: complete\nfeedback: {WORDS[3]}.\n---\nThe {WORDS[4]}."
NOW = datetime(2026, 11, 21, tzinfo=UTC)


async def said(where, key):
    """A run, its row, its events and notes, each with a word of its own."""
    async with open_storage(where, key=key) as storage:
        with ScriptedModel({"feedback": always(COMPLETE)}) as model:
            team = [Specialist(name="a", intended_use="Works.", run=lambda context: WORDS[2])]
            config = Team(host=Host(model=model), specialists=team)
            graph = build_graph(config, storage=storage)
            given = {"messages": [("user", WORDS[0])], "plan": f"- [ ] 1. {WORDS[1]} @a\n"}
            await run(graph, given, config={"configurable": {"thread_id": "t"}}, run_id="r")
        record = RunRecord(
            run_id="r",
            thread_id="t",
            title=WORDS[5],
            order={"task": WORDS[6]},
            started_at=NOW,
            updated_at=NOW,
        )
        await storage.runs.begin(record)
        await storage.runs.add_events("r", [{"text": WORDS[7]}])
        await storage.journal.note("r", "answer/1", WORDS[7])
        await storage.store.aput(("facts",), "k", {"text": WORDS[8]})
        assert len(await storage.store.asearch(("facts",), query=WORDS[8])) == 1
        attempt = Attempt(run_id="r", step_id=9, specialist="a", number=1, key="k", started_at=NOW)
        await storage.journal.ended(attempt, "failed", NOW, WORDS[6])
        result = SpecialistResult(result=AIMessage(WORDS[5]))
        await storage.journal.finished(attempt.replace(number=2), result, NOW)


def contents(where):
    """All that stands in all tables, as bytes."""
    if not where.startswith("postgresql"):
        with closing(sqlite3.connect(where)) as connection:
            return "\n".join(connection.iterdump()).encode() + b"".join(
                value
                for (table,) in connection.execute(
                    "SELECT name FROM sqlite_master WHERE type = 'table'"
                ).fetchall()
                for row in connection.execute(f"SELECT * FROM {table}")  # noqa: S608 - ours
                for value in row
                if isinstance(value, bytes)
            )
    with psycopg.connect(where) as connection:
        names = connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
        ).fetchall()
        rows = [
            connection.execute(f'SELECT * FROM "{name}"').fetchall()  # noqa: S608 - ours
            for (name,) in names
        ]
    return b"".join(
        value if isinstance(value, bytes) else str(value).encode()
        for table in rows
        for row in table
        for value in row
    )


async def test_nothing_that_was_said_can_be_read_without_the_key(where):
    await said(where, "a key")
    found = contents(where)
    assert [word for word in WORDS if word.encode() in found] == []


async def test_without_a_key_all_of_it_can(where):
    """The search finds what is there, so that the test above can fail."""
    await said(where, None)
    found = contents(where)
    assert [word for word in WORDS if word.encode() not in found] == []


async def test_what_was_changed_without_the_key_is_noticed(where):
    await said(where, "a key")
    is_postgres = where.startswith("postgresql")
    with closing(psycopg.connect(where) if is_postgres else sqlite3.connect(where)) as connection:
        plain = r"'\x7b7d'" if is_postgres else "x'7b7d'"
        for column in (
            "notes SET value",
            "results SET result",
            "runs SET title",
            "items SET value",
        ):
            connection.execute(f"UPDATE replan_{column} = {plain}")
        connection.commit()
    async with open_storage(where, key="a key") as storage:
        for reading in (
            storage.journal.notes("r"),
            storage.journal.results("r"),
            storage.runs.get("r"),
            storage.store.aget(("facts",), "k"),
            storage.store.asearch(("facts",), query="x"),
        ):
            with pytest.raises(StorageError, match="cannot be read"):
                await reading


async def test_a_plain_checkpoint_is_not_taken_for_an_encrypted_one(tmp_path):
    where = str(tmp_path / "runs.sqlite")
    await said(where, "a key")
    with closing(sqlite3.connect(where)) as connection:
        connection.execute("UPDATE checkpoints SET type = 'msgpack', checkpoint = x'80'")
        connection.commit()
    async with open_storage(where, key="a key") as storage:
        with pytest.raises(StorageError, match="cannot be read"):
            await storage.checkpointer.aget_tuple(
                {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
            )
