"""The place of each value that is encrypted, so that it is read nowhere else.

These places are part of the storage format: if one is written in another way, all values that
were stored there become unreadable.
"""

from collections.abc import Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig

from replan.adapters.storage.faults import Part, Place
from replan.langgraph_inside.checkpoints import WRITES_IDX_MAP


def of_note(run_id: str, key: str) -> Place:
    return ("replan_notes", run_id, key, "value")


def of_result(run_id: str, key: str) -> Place:
    return ("replan_results", run_id, key, "result")


def of_attempt(attempt: Any) -> Place:
    return ("replan_attempts", attempt.run_id, attempt.key, attempt.number, "error")


def of_run(run_id: str, column: str) -> Place:
    return ("replan_runs", run_id, column)


def of_event(run_id: str, batch: str, number: int) -> Place:
    """An event, by its number among those that were written with it, from 1."""
    return ("replan_events", run_id, batch, number, "event")


def of_text(run_id: str, ref: str) -> Place:
    return ("replan_texts", run_id, ref, "text")


def of_request(run_id: str, name: str) -> Place:
    return ("replan_requests", run_id, name, "value")


def of_thread_row(thread_id: str, path: str) -> Place:
    return ("replan_thread_rows", thread_id, path, "value")


def of_item(namespace: str, key: str) -> Place:
    return ("replan_items", namespace, key, "value")


def of_session(key: Sequence[str], column: str) -> Place:
    return ("replan_sessions", *key, column)


def of_turn(key: Sequence[str], number: int) -> Place:
    return ("replan_turns", *key, number, "result")


def of_message(key: Sequence[str], history: str, turn: int, place: int) -> Place:
    """What a turn appended to a history, by its number among what the turn appended."""
    return ("replan_messages", *key, history, turn, place, "value")


def of_part(key: Sequence[str], name: str, turn: int) -> Place:
    """A part of a context, with its name as it is in its row."""
    return ("replan_parts", *key, name, turn, "value")


def of_checkpoint(thread_id: str, namespace: str, checkpoint_id: str, parent: str | None) -> Place:
    return ("checkpoints", thread_id, namespace, checkpoint_id, parent, "checkpoint")


def of_blob(thread_id: str, namespace: str, channel: str, version: Part) -> Place:
    """The value of a channel in PostgreSQL, which all checkpoints with this version of it share."""
    return ("checkpoint_blobs", thread_id, namespace, channel, version, "blob")


def of_write(table: str, thread_id: str, namespace: str, checkpoint_id: str, *row: Part) -> Place:
    """What a task wrote into a channel; the row continues with task, number and channel."""
    return (table, thread_id, namespace, checkpoint_id, *row, "value")


def of_writes(table: str, config: RunnableConfig, task_id: str, channels: list[str]) -> list[Place]:
    given: dict[str, Any] = config.get("configurable", {})
    checkpoint = (str(given[each]) for each in ("thread_id", "checkpoint_ns", "checkpoint_id"))
    thread_id, namespace, checkpoint_id = checkpoint
    return [
        of_write(
            table,
            thread_id,
            namespace,
            checkpoint_id,
            task_id,
            WRITES_IDX_MAP.get(channel, number),
            channel,
        )
        for number, channel in enumerate(channels)
    ]
