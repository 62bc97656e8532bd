"""With a key, each value of our own columns holds only at the place that it was written for.

What LangGraph's serializer encrypts is not bound: `test_saver.py` says what that leaves.
"""

import random
from datetime import UTC, datetime
from itertools import permutations

import pytest
from langchain_core.messages import AIMessage

from replan import StorageError, open_storage
from replan.log.rows import Attempt, KeptText, Request
from replan.ports.run_book import RunRecord
from replan.ports.session_store import SessionKey, SessionTurn
from replan.sessions import AgentContext, Message, ToolExecution
from replan.state.pipeline.threads import Thread, ThreadMessage
from replan.state.results import SpecialistResult
from stored_tables import changing, columns_of, rows_of, tables_in

KEY = "a key"
MOST = 2  # copies of values of a column, drawn from all that there could be
DRAW = random.Random(20261130)  # noqa: S311 - no secret
NOW = datetime(2026, 11, 22, tzinfo=UTC)


async def two_runs(where):
    """Two runs and two threads, with two values for each column."""
    async with open_storage(where, key=KEY) as storage:
        for run in ("mine", "yours"):
            await storage.log.note(run, "decision/1", run)
            await storage.store.aput(("facts", run), "k", {"text": run})
            await a_session(storage.sessions, run)
            thread = Thread(run, settings={"run": run})
            thread.add(ThreadMessage(id=run, sender="bot", text=run, timestamp=NOW))
            await storage.threads.save_thread(thread)
            attempt = Attempt(
                run_id=run, step_id=1, specialist="a", number=1, key="k", started_at=NOW
            )
            await storage.log.ended(attempt, "failed", NOW, run)
            result = SpecialistResult(result=AIMessage(run))
            await storage.log.finished(attempt.replace(number=2), result, NOW)
            record = RunRecord(
                run_id=run, thread_id=run, title=run, order=run, started_at=NOW, updated_at=NOW
            )
            await storage.runs.begin(record)
            kept = [KeptText(ref, f"{run} {ref}", NOW) for ref in ("1", "2")]
            await storage.log.add_events(run, [f"{run} 1", f"{run} 2"], kept)
            for name in (f"{run} 1", f"{run} 2"):
                request = Request(run_id=run, name=name, kind="stop", at=NOW, by=name)
                await storage.log.add_request(request)
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
        log, runs = storage.log, storage.runs
        thread = {"configurable": {"thread_id": run, "checkpoint_ns": ""}}
        found += [
            await log.rows(run),
            await log.notes(run),
            [each.error for each in await log.ledger(run)],
            {key: each.text for key, each in (await log.results(run)).items()},
            await runs.get(run),
            [each.event for each in await log.events(run)],
            await storage.checkpointer.aget_tuple(thread),
            [each async for each in storage.checkpointer.alist(thread)],
            await storage.checkpointer.aget_delta_channel_history(
                config=thread, channels=["a", "b", "large"]
            ),
            await log.requests([run]),
            [await log.text(run, ref) for ref in ("1", "2")],
            await storage.store.asearch(("facts", run)),
            [await storage.sessions.load(SessionKey("", run, "s"), each) for each in (None, 1)],
            await storage.sessions.recent("", run, 9),
            [await storage.sessions.turn(SessionKey("", run, "s"), each) for each in "01"],
            await storage.threads.get_thread(run),
        ]
    return found


_NOT_BOUND = {"replan_facts", "replan_checkpoints", "replan_channels", "replan_writes"}
_KEYS = {
    "replan_runs": ["run_id"],
    "replan_log": ["run_id", "number"],
    "replan_texts": ["run_id", "ref"],
    "replan_items": ["id"],
    "replan_sessions": ["tenant", "user_id", "session_id"],
    "replan_turns": ["tenant", "user_id", "session_id", "number"],
    "replan_parts": ["tenant", "user_id", "session_id", "name", "turn"],
    "replan_thread_rows": ["thread_id", "path"],
}


def sealed_columns(connection):
    """The columns that hold values which are bound to their place."""
    return [
        (table, column)
        for table in tables_in(connection)
        if table not in _NOT_BOUND
        for column, kind in columns_of(connection, table).items()
        if kind.upper() in ("BLOB", "BYTEA")
    ]


def put(where, table, column, row, value):
    """Write a value into a column of a row."""
    conditions = " AND ".join(f"{each} = ?" for each in _KEYS[table])
    statement = f"UPDATE {table} SET {column} = ? WHERE {conditions}"  # noqa: S608 - ours
    with changing(where) as connection:
        assert connection.change(statement, [value, *(row[each] for each in _KEYS[table])]) == 1


async def test_what_is_bound_reads_as_it_was_written(where):
    await two_runs(where)
    found = await all_read(where)
    assert found[1] == {"decision/1": "mine"}
    assert found[5] == ["mine 1", "mine 2"]
    assert found[6].checkpoint["channel_values"] == {"large": ["mine", "2"], "short": 7}
    assert found[6].pending_writes == [("task 2", "a", "mine"), ("task 2", "b", "2")]
    assert found[8]["large"]["seed"] == ["mine", "1"]
    assert found[8]["a"]["writes"] == [("task 1", "a", "mine")]


async def test_a_value_that_was_copied_to_another_place_is_refused_and_says_where(where):
    await two_runs(where)
    with changing(where) as connection:
        columns = sealed_columns(connection)
        rows = {table: rows_of(connection, table) for table, _ in columns}
    assert len(columns) == 14
    for table, column in columns:
        # Where a column may be empty, each value also comes into an empty one.
        pairs = [(to, other) for to, other in permutations(rows[table], 2) if other[column]]
        assert pairs, column
        for to, other in DRAW.sample(pairs, min(MOST, len(pairs))):
            put(where, table, column, to, other[column])
            # Read as a new process does, which remembers nothing.
            with pytest.raises(StorageError, match=f"record of {table} at .*cannot be read"):
                await all_read(where)
            put(where, table, column, to, to[column])
    await all_read(where)


async def test_a_value_of_a_log_that_was_emptied_is_refused(where):
    """What was answered is not taken for nothing; a row that is missing is the limit."""
    await two_runs(where)
    with changing(where) as connection:
        rows = [row for row in rows_of(connection, "replan_log") if row["value"]]
    async with open_storage(where, key=KEY) as storage:
        for row in DRAW.sample(rows, MOST):
            put(where, "replan_log", "value", row, None)
            with pytest.raises(StorageError, match=r"record of replan_log at .*cannot be read"):
                await read(storage)
            put(where, "replan_log", "value", row, row["value"])


async def test_a_value_that_is_nothing_is_a_value(where):
    async with open_storage(where, key=KEY) as storage:
        assert await storage.log.note("r", "answer/1", None) is None
        assert await storage.log.notes("r") == {"answer/1": None}
        assert [each.value for each in await storage.log.rows("r")] == [None]
