"""Runs as tasks of A2A: their status, questions and artifacts, read from the storage."""

from collections.abc import Iterator
from typing import Any, cast

from a2a.helpers.proto_helpers import new_data_part, new_text_part
from a2a.types.a2a_pb2 import Artifact, Message, Part, Role, Task, TaskState, TaskStatus
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from replan.runs.looking import RunView
from replan.server.doors.conversations import reply_text
from replan.server.response_schemas import AskTold
from replan.state.results import Artifact as Made

CONTEXT = "context"
"""The label of a run with the context of A2A to which it belongs."""

ANSWER = "answer"
"""The artifact that is the answer of a run."""

_STATES = {
    "running": TaskState.TASK_STATE_WORKING,
    "waiting": TaskState.TASK_STATE_INPUT_REQUIRED,
    # It can be continued, but only on request.
    "interrupted": TaskState.TASK_STATE_INPUT_REQUIRED,
    "failed": TaskState.TASK_STATE_FAILED,
    "rejected": TaskState.TASK_STATE_REJECTED,
}
OVER = frozenset(
    {
        TaskState.TASK_STATE_COMPLETED,
        TaskState.TASK_STATE_FAILED,
        TaskState.TASK_STATE_REJECTED,
        TaskState.TASK_STATE_CANCELED,
    }
)
"""The states in which a task takes no more messages."""


def task_of(view: RunView, *, is_cancelled: bool = False, most: int | None = None) -> Task:
    """Tell a run as a task.

    Args:
        view: The run.
        is_cancelled: Whether a client cancelled the task.
        most: How many messages of its history are reported; None for all.
    """
    history = list(_history(view))
    kept = history if most is None else history[len(history) - min(most, len(history)) :]
    return Task(
        id=view.run_id,
        context_id=context_of(view),
        status=status_of(view, is_cancelled=is_cancelled),
        artifacts=artifacts_of(view),
        history=kept,
        metadata=cast("Any", {"replan": {"outcome": view.outcome}}),
    )


def context_of(view: RunView) -> str:
    """The context of a task; a run that began at another door has one of its own."""
    return view.record.labels.get(CONTEXT, view.run_id)


def status_of(view: RunView, *, is_cancelled: bool = False) -> TaskStatus:
    """Return the status of a task, and what it asks or why it ended."""
    state = _STATES.get(view.outcome, TaskState.TASK_STATE_COMPLETED)
    if view.is_queued and not view.state:
        # No worker has begun it yet.
        state = TaskState.TASK_STATE_SUBMITTED
    if is_cancelled and view.outcome in ("waiting", "interrupted"):
        state = TaskState.TASK_STATE_CANCELED
    status = TaskStatus(state=state)
    status.timestamp.FromDatetime(view.heard_at)
    parts = [] if state == TaskState.TASK_STATE_CANCELED else _parts(view)
    if parts:
        status.message.CopyFrom(message_of(view, parts, "status"))
    return status


def artifacts_of(view: RunView) -> list[Artifact]:
    """What a run made: its answer, as a text and, if the team has a type for it, as a value.

    The files that its steps left in the workspace are named, each in its own artifact.
    """
    answer = view.state.get("final_answer")
    if answer is None or view.outcome in ("running", "waiting", "interrupted"):
        return []
    parts = [new_text_part(answer.text)]
    output = view.state.get("output")
    if output is not None:
        parts.append(new_data_part(output))
    made = {
        each.path: each
        for result in view.state.get("current_specialist_results", {}).values()
        for each in result.artifacts
    }
    return [Artifact(artifact_id=ANSWER, name=ANSWER, parts=parts), *map(_file, made.values())]


def message_of(view: RunView, parts: list[Part], name: str) -> Message:
    """Make a message of a task's agent."""
    return Message(
        message_id=f"{view.run_id}-{name}",
        context_id=context_of(view),
        task_id=view.run_id,
        role=Role.ROLE_AGENT,
        parts=parts,
    )


def _file(made: Made) -> Artifact:
    """A file by its name; its content stays where the step was done."""
    metadata = {"file": made.path, "mediaType": made.media_type}
    return Artifact(
        artifact_id=f"file:{made.path}",
        name=made.path,
        description=made.title,
        parts=[new_data_part(metadata)],
    )


def _parts(view: RunView) -> list[Part]:
    match view.outcome:
        case "waiting":
            asked: list[Any] = [
                AskTold.of(each).model_dump(mode="json", exclude_defaults=True)
                for each in view.waiting
            ]
            return [new_text_part(reply_text(view)), new_data_part({"asks": asked})]
        case "interrupted":
            return [new_text_part(f"The run has stopped: {view.why}. Send a message to continue.")]
        case "failed" | "rejected":
            return [new_text_part(reply_text(view))]
        case _:
            return []


def _history(view: RunView) -> Iterator[Message]:
    messages: list[BaseMessage] = list(view.state.get("messages", ()))
    for number, each in enumerate(messages):
        if isinstance(each, HumanMessage | AIMessage) and each.text:
            is_user = isinstance(each, HumanMessage)
            message = message_of(view, [new_text_part(each.text)], f"message-{number}")
            message.role = Role.ROLE_USER if is_user else Role.ROLE_AGENT
            yield message
