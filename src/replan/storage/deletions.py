"""What is removed with a run or a thread, in the transaction that is open on a connection."""

from collections.abc import Sequence

from replan.storage.database import Connection, Row
from replan.storage.schema import OF_A_RUN

_OF_CHECKPOINTS = ("replan_checkpoints", "replan_channels", "replan_writes")


def delete_thread(connection: Connection, thread_id: str) -> None:
    """Remove a thread, the runs on it, and all that is recorded of them."""
    runs = connection.query(
        "SELECT run_id FROM replan_runs WHERE thread_id = ?"
        " UNION SELECT run_id FROM replan_logs WHERE thread_id = ?",
        [thread_id, thread_id],
    )
    delete_runs(connection, runs)
    delete_checkpoints(connection, thread_id)
    connection.change("DELETE FROM replan_threads WHERE thread_id = ?", [thread_id])


def delete_runs(connection: Connection, run_ids: Sequence[Row]) -> None:
    """Remove all that is recorded of runs, but their checkpoints; each id is a row of its own."""
    if run_ids:
        for table in OF_A_RUN:
            connection.change_many(f"DELETE FROM {table} WHERE run_id = ?", run_ids)


def delete_checkpoints(connection: Connection, thread_id: str) -> None:
    """Remove the checkpoints of a thread."""
    for table in _OF_CHECKPOINTS:
        connection.change(f"DELETE FROM {table} WHERE thread_id = ?", [thread_id])
