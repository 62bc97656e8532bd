"""A run that continues from an older checkpoint says so in its log.

The log says what happened, the checkpoint where the graph stands. Who goes back to an older
checkpoint, by a call, an edit or a rollback, leaves rows of the log behind that did happen, and
that this branch has not seen: from then on a result counts for it only if it answers for the same
work.
"""

from pydantic import JsonValue

from replan.log.rows import FORKED, NewRow, span
from replan.log.run_log import BEGAN
from replan.storage.checkpoint_rows import AT, NewCheckpoint, ThreadKey, newest_id
from replan.storage.database import Connection
from replan.storage.log_rows import SqlLogs


def note_fork(connection: Connection, logs: SqlLogs, new: NewCheckpoint) -> None:
    """Note that a checkpoint which is to be written continues from one that is not the newest."""
    if not new.log_id or new.parent_id is None:
        return
    newest = newest_id(connection, new.thread_key)
    # The same checkpoint again is one whose receipt was lost.
    if newest is not None and newest not in (new.parent_id, new.checkpoint_id):
        _note(connection, logs, new.thread_key, new.parent_id, new.checkpoint_id)


def note_rollback(connection: Connection, logs: SqlLogs, thread_key: ThreadKey) -> None:
    """Note that a thread was taken back to the checkpoint that is its newest one now."""
    newest = newest_id(connection, thread_key)
    if newest is not None and not thread_key.namespace:
        _note(connection, logs, thread_key, newest, "")


def note_removal(connection: Connection, logs: SqlLogs, run_id: str, checkpoint_id: str) -> None:
    """Note that a run was taken off its thread; what it did is on record if it begins again."""
    rows = logs.rows_of(connection, run_id)
    if rows.has(BEGAN):
        # The checkpoint at which its name began is gone.
        rows.supersede(*span(BEGAN))
        value: JsonValue = {"checkpoint": checkpoint_id, "row": 0}
        rows.append(NewRow(f"{FORKED}{checkpoint_id}", "forked", value))


def _note(
    connection: Connection,
    logs: SqlLogs,
    thread_key: ThreadKey,
    checkpoint_id: str,
    by: str,
) -> None:
    query = f"SELECT log_id, log_row FROM replan_checkpoints WHERE {AT} AND checkpoint_id = ?"
    rows = connection.query(query, [*thread_key, checkpoint_id])
    log_id, row = rows[0] if rows else ("", 0)
    if log_id:
        value = {"checkpoint": checkpoint_id, "row": row}
        key = f"{FORKED}{by or checkpoint_id}"
        logs.rows_of(connection, log_id).append(NewRow(key, "forked", value))
