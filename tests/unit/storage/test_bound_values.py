"""With a key, each value holds only at the place that it was written for."""

from datetime import UTC, datetime
from itertools import pairwise

import pytest
from langchain_core.messages import AIMessage
from sqlalchemy import MetaData, inspect, select, text, update

from replan import AgentContext, Message, StorageError, ToolExecution, open_storage
from replan.ports.journal import Attempt
from replan.ports.run_book import KeptText, Request, RunRecord
from replan.ports.session_store import SessionKey, SessionTurn
from replan.state.pipeline.threads import Thread, ThreadMessage
from replan.state.results import SpecialistResult
from stored_tables import changing

KEY = "a key"
NOW = datetime(2026, 11, 22, tzinfo=UTC)


async def two_runs(where):
    """Two runs and two threads, with two values for each column."""
    async with open_storage(where, key=KEY) as storage:
        for run in ("mine", "yours"):
            await storage.journal.note(run, "decision/1", run)
            await storage.store.aput(("facts", run), "k", {"text": run})
            await a_session(storage.sessions, run)
            thread = Thread(run, settings={"run": run})
            thread.add(ThreadMessage(id=run, sender="bot", text=run, timestamp=NOW))
            await storage.threads.save_thread(thread)
            attempt = Attempt(
                run_id=run, step_id=1, specialist="a", number=1, key="k", started_at=NOW
            )
            await storage.journal.ended(attempt, "failed", NOW, run)
            result = SpecialistResult(result=AIMessage(run))
            await storage.journal.finished(attempt.replace(number=2), result, NOW)
            record = RunRecord(
                run_id=run, thread_id=run, title=run, order=run, started_at=NOW, updated_at=NOW
            )
            await storage.runs.begin(record)
            kept = [KeptText(ref, f"{run} {ref}", NOW) for ref in ("1", "2")]
            await storage.runs.add_events(run, [f"{run} 1", f"{run} 2"], kept)
            for name in (f"{run} 1", f"{run} 2"):
                request = Request(run_id=run, name=name, kind="stop", at=NOW, by=name)
                await storage.runs.add_request(request)
            saver = storage.checkpointer
            for thread, parent, name in ((run, None, "1"), (run, "1", "2")):
                config = {
                    "configurable": {
                        "thread_id": thread,
                        "checkpoint_ns": "",
                        "checkpoint_id": parent,
                    }
                }
                versions = {"large": f"{name}.0", "short": f"{name}.0"}
                checkpoint = {
                    "v": 4,
                    "id": name,
                    "ts": "2026-11-22T00:00:00+00:00",
                    "channel_values": {"large": [run, name], "short": 7},
                    "channel_versions": versions,
                    "versions_seen": {},
                }
                written = await saver.aput(config, checkpoint, {}, versions)
                await saver.aput_writes(written, [("a", run), ("b", name)], f"task {name}")


async def a_session(sessions, user):
    """Two turns of a session, with all that a turn may hold."""
    key, before = SessionKey("", user, "s"), AgentContext(session_id="s")
    for number in range(2):
        said = Message(role="user", content=f"{user} {number}", timestamp=NOW.isoformat())
        tool = ToolExecution(id=f"{user} {number}", tool_name="t", success=True)
        after = before.replace(
            dialogue_history=(*before.dialogue_history, said),
            project_state={"plan": f"{user} {number}"},
            tool_execution_history=(*before.tool_execution_history, tool),
        )
        turn = SessionTurn(
            turn_id=str(number),
            at=NOW,
            given="digest",
            title=f"{user} {number}",
            stage=f"{user} {number}",
            updates=before.updates_to(after),
            result={"response": f"{user} {number}"},
        )
        await sessions.append(key, turn, number)
        before = after


async def all_read(where):
    async with open_storage(where, key=KEY) as storage:
        return await read(storage)


async def read(storage):
    """Read all that two runs left."""
    found = []
    for run in ("mine", "yours"):
        journal, runs = storage.journal, storage.runs
        thread = {"configurable": {"thread_id": run, "checkpoint_ns": ""}}
        found += [
            await journal.notes(run),
            [each.error for each in await journal.ledger(run)],
            {key: each.text for key, each in (await journal.results(run)).items()},
            await runs.get(run),
            [each.event for each in await runs.events(run)],
            await storage.checkpointer.aget_tuple(thread),
            [each async for each in storage.checkpointer.alist(thread)],
            await storage.checkpointer.aget_delta_channel_history(
                config=thread, channels=["a", "b", "large"]
            ),
            await runs.requests([run]),
            [await runs.text(run, ref) for ref in ("1", "2")],
            await storage.store.asearch(("facts", run)),
            [await storage.sessions.load(SessionKey("", run, "s"), each) for each in (None, 1)],
            await storage.sessions.recent("", run, 9),
            [await storage.sessions.turn(SessionKey("", run, "s"), each) for each in "01"],
            await storage.threads.get_thread(run),
        ]
    return found


def sealed_columns(connection):
    """The columns that hold encrypted values."""
    for table in inspect(connection).get_table_names():
        for column in inspect(connection).get_columns(table):
            is_binary = str(column["type"]) in ("BLOB", "BYTEA")
            if is_binary and table != "replan_facts" and column["name"] != "metadata":
                yield table, column["name"]


def rows_of(connection, table):
    metadata = MetaData()
    metadata.reflect(connection, only=[table])
    return metadata.tables[table], connection.execute(select(metadata.tables[table])).all()


async def test_what_is_bound_reads_as_it_was_written(where):
    await two_runs(where)
    found = await all_read(where)
    assert found[0] == {"decision/1": "mine"}
    assert found[4] == ["mine 1", "mine 2"]
    assert found[5].checkpoint["channel_values"] == {"large": ["mine", "2"], "short": 7}
    assert found[5].pending_writes == [("task 2", "a", "mine"), ("task 2", "b", "2")]
    assert found[7]["large"]["seed"] == ["mine", "1"]
    assert found[7]["a"]["writes"] == [("task 1", "a", "mine")]


async def test_a_value_that_was_copied_to_another_place_is_refused_and_says_where(where):
    await two_runs(where)
    async with open_storage(where, key=KEY) as storage:
        with changing(where) as connection:
            columns = [*sealed_columns(connection)]
        assert len(columns) == 17
        for name, column in columns:
            with changing(where) as connection:
                table, rows = rows_of(connection, name)
            assert len(rows) > 1
            kept = [column, *({"type"} & set(table.c.keys()))]
            for to, other in pairwise(rows):
                same = [each == getattr(to, each.name) for each in table.primary_key]
                copied, own = ({each: getattr(row, each) for each in kept} for row in (other, to))
                with changing(where) as connection:
                    connection.execute(update(table).where(*same).values(copied))
                with pytest.raises(StorageError, match=f"record of {name} at .*cannot be read"):
                    await read(storage)
                with changing(where) as connection:
                    connection.execute(update(table).where(*same).values(own))
        await read(storage)


async def test_the_parent_of_a_checkpoint_is_bound_in_a_file(tmp_path):
    where = str(tmp_path / "runs.sqlite")
    await two_runs(where)
    with changing(where) as connection:
        connection.execute(text("UPDATE checkpoints SET parent_checkpoint_id = NULL"))
    with pytest.raises(StorageError, match="record of checkpoints"):
        await all_read(where)


async def test_a_plain_value_in_a_checkpoint_of_postgres_is_refused(empty_database):
    await two_runs(empty_database)
    with changing(empty_database) as connection:
        change = """UPDATE checkpoints SET checkpoint =
            jsonb_set(checkpoint, '{channel_values}', '{"approved": true}')"""
        connection.exec_driver_sql(change)
    with pytest.raises(StorageError, match=r'record of checkpoints at .*"approved"'):
        await all_read(empty_database)
