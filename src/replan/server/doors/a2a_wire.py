"""A2A in both directions: what its messages say, and runs as its tasks."""

import json
import re
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

from a2a.helpers.proto_helpers import new_data_part, new_text_part
from a2a.types.a2a_pb2 import (
    Artifact,
    Message,
    Part,
    Role,
    SendMessageConfiguration,
    Task,
    TaskState,
    TaskStatus,
)
from a2a.utils.errors import (
    A2AError,
    ContentTypeNotSupportedError,
    InternalError,
    InvalidParamsError,
    InvalidRequestError,
    TaskNotFoundError,
)
from google.protobuf.json_format import MessageToJson
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from pydantic import JsonValue, ValidationError

from replan.base.errors import ReplanError
from replan.log.report import RunReport
from replan.runs.asked.attached import block_of
from replan.runs.asked.pending import PendingQuestion
from replan.server.bodies import NAME, PlanBody, checked_file_name
from replan.server.exchange_texts import reply_text
from replan.server.problems import as_refusal
from replan.state.results import Artifact as Made

_LONGEST = 1_000_000
_EXACT = 2**53  # below it, every whole number is exact
_SERVER = 500


OUTPUT_MODES = ("text/plain", "application/json")
"""The forms of what a task gives."""


def check_supported(message: Message, configuration: SendMessageConfiguration) -> None:
    """Refuse what a message asks for and no task gives.

    Raises:
        A2AError: Names it.
    """
    if message.role == Role.ROLE_AGENT:
        raise InvalidParamsError("message.role: it is an agent's. Send a message of the user.")
    if message.reference_task_ids:
        fix = "Say what it needs to know in the message."
        raise InvalidParamsError(f"message.referenceTaskIds: a task sees no other one. {fix}")
    wanted = configuration.accepted_output_modes
    if wanted and not {*OUTPUT_MODES, "text/*", "application/*", "*/*"}.intersection(wanted):
        given = " and ".join(OUTPUT_MODES)
        raise ContentTypeNotSupportedError(f"acceptedOutputModes: a task gives {given} alone.")


def read_request(message: Message) -> HumanMessage:
    """Read a message as a request.

    Raises:
        A2AError: It says nothing, or has a part that a team cannot read.
    """
    blocks = [_content_block(part) for part in message.parts]
    if not blocks:
        raise InvalidParamsError("message.parts: it is empty. Give it a text.")
    if all(block["type"] == "text" for block in blocks):
        text = "\n\n".join(str(block["text"]) for block in blocks)
        if not 0 < len(text.strip()) <= _LONGEST:
            fix = f"Give it a text of {_LONGEST:,} characters at most."
            raise InvalidParamsError(f"message.parts: it is empty, or too long. {fix}")
        return HumanMessage(text)
    return HumanMessage(cast("Any", blocks))


def answer_in(message: Message) -> JsonValue:
    """What a message answers: a text, a decision, or answers by key.

    Raises:
        A2AError: It is not one answer.
    """
    values: list[JsonValue] = [_value(part) for part in message.parts]
    if len(values) != 1:
        raise InvalidParamsError("message.parts: an answer is one text, or one value. Send one.")
    return values[0]


def steering_in(message: Message) -> str | PlanBody:
    """What a message tells a run at work: a text for its host, or an edit of its plan.

    Raises:
        A2AError: It is neither.
    """
    answer = answer_in(message)
    if isinstance(answer, str):
        return answer
    try:
        return PlanBody.model_validate(answer)
    except ValidationError as error:
        fix = "Send a text for the host, or `plan` and the `version` that it was made from."
        text = f"message.parts: the task is at work, and this is no message to it. {fix}"
        raise InvalidParamsError(text) from error


def context_named(message: Message, made: str) -> str:
    """The context that a message names, or one that is made for it.

    Raises:
        InvalidParamsError: The name cannot be kept.
    """
    if not message.context_id:
        return made
    if not re.fullmatch(NAME, message.context_id):
        fix = "Begin with a letter or a digit; use letters, digits and . _ : ~ -, 100 at most."
        raise InvalidParamsError(f"message.contextId: no context can have this name. {fix}")
    return message.context_id


def as_a2a_error(error: ReplanError) -> A2AError:
    """An error of the library as one of A2A."""
    refusal = as_refusal(error)
    problem, text = refusal.problem, refusal.explained
    data = problem.model_dump(mode="json", include={"status", "code", "mistakes"})
    if refusal.retry_after is not None:
        data["retry_after"] = refusal.retry_after
    if problem.code == "unknown_run":
        return TaskNotFoundError("There is no such task here.")
    if problem.status >= _SERVER:
        return InternalError(text, data)
    kind = InvalidParamsError if problem.status == 422 else InvalidRequestError  # noqa: PLR2004 - mistakes of fields
    return kind(text, data)


@contextmanager
def raising_a2a_errors() -> Generator[None]:
    """Translate errors of Replan into those of the protocol."""
    try:
        yield
    except ReplanError as error:
        raise as_a2a_error(error) from error


def _content_block(part: Part) -> dict[str, Any]:
    match part.WhichOneof("content"):
        case "text":
            return {"type": "text", "text": part.text}
        case "data":
            return {"type": "text", "text": json.dumps(_data(part))}
        case "raw":
            name = _file_name(part.filename or "file")
            return block_of(name, part.raw, f"The file {name}", "Send less of it.")
        case _:
            text = "message.parts: an address is not fetched. Send the file itself as `raw`."
            raise ContentTypeNotSupportedError(text)


def _data(part: Part) -> JsonValue:
    """The value of a part: the protocol knows no whole numbers, so one that is whole counts so."""
    return json.loads(MessageToJson(part.data), parse_float=_number)


def _number(written: str) -> float:
    number = float(written)
    return int(number) if number.is_integer() and abs(number) < _EXACT else number


def _file_name(name: str) -> str:
    try:
        return checked_file_name(name)
    except ValueError as error:
        raise InvalidParamsError(f"message.parts: the filename: {error}.") from None


def _value(part: Part) -> JsonValue:
    match part.WhichOneof("content"):
        case "text":
            return part.text
        case "data":
            return _data(part)
        case _:
            text = "message.parts: a file is not an answer. Send a text or a value."
            raise ContentTypeNotSupportedError(text)


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


def task_of(view: RunReport, status: TaskStatus, messages: Sequence[BaseMessage]) -> Task:
    """Return a run as a task, with the messages of its conversation."""
    return Task(
        id=view.run_id,
        context_id=context_of(view),
        status=status,
        artifacts=artifacts_of(view),
        history=list(_history(view, messages)),
        metadata=cast("Any", {"replan": {"outcome": view.outcome, **_plan_at_work(view)}}),
    )


def _plan_at_work(view: RunReport) -> dict[str, JsonValue]:
    """The plan that a message can edit."""
    if view.plan is None or view.outcome != "running":
        return {}
    return {"plan": view.plan.content, "plan_version": view.plan.version}


def context_of(view: RunReport) -> str:
    """The context of a task; a run that began at another door has one of its own."""
    return view.labels.get(CONTEXT, view.run_id)


def status_of(view: RunReport, *, is_cancelled: bool) -> TaskStatus:
    """The status of a task, which a client may have cancelled: what it asks, or why it ended."""
    state = _STATES.get(view.outcome, TaskState.TASK_STATE_COMPLETED)
    if view.is_queued and not view.events:
        # No worker has begun it yet.
        state = TaskState.TASK_STATE_SUBMITTED
    if is_cancelled and view.outcome in ("waiting", "interrupted"):
        state = TaskState.TASK_STATE_CANCELED
    status = TaskStatus(state=state)
    status.timestamp.FromDatetime(view.last_seen_at)
    parts = [] if state == TaskState.TASK_STATE_CANCELED else _parts(view)
    if parts:
        status.message.CopyFrom(message_of(view, parts, "status"))
    return status


def artifacts_of(view: RunReport) -> list[Artifact]:
    """What a run made: its answer, as a text and, if the team has a type for it, as a value.

    The files that its steps left in the workspace are named, each in its own artifact.
    """
    if not view.answer or view.outcome in ("running", "waiting", "interrupted"):
        return []
    parts = [new_text_part(view.answer)]
    if view.output is not None:
        parts.append(new_data_part(view.output))
    return [Artifact(artifact_id=ANSWER, name=ANSWER, parts=parts), *map(_file, view.artifacts)]


def answer_of(piece: str) -> Artifact:
    """A piece of the answer."""
    return Artifact(artifact_id=ANSWER, parts=[new_text_part(piece)])


def message_of(view: RunReport, parts: list[Part], name: str) -> Message:
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


def _parts(view: RunReport) -> list[Part]:
    match view.outcome:
        case "waiting":
            requests: list[Any] = [
                PendingQuestion.of(question).model_dump(mode="json", exclude_defaults=True)
                for question in view.pending_questions
            ]
            return [new_text_part(reply_text(view)), new_data_part({"pending_questions": requests})]
        case "interrupted":
            return [
                new_text_part(
                    f"The run has stopped: {view.reason}. Send a message to continue: its "
                    "text is told to the host, and an empty one only continues."
                )
            ]
        case "failed" | "rejected":
            return [new_text_part(reply_text(view))]
        case _:
            return []


def _history(view: RunReport, messages: Sequence[BaseMessage]) -> Iterator[Message]:
    for number, other_message in enumerate(messages):
        if isinstance(other_message, HumanMessage | AIMessage) and other_message.text:
            is_user = isinstance(other_message, HumanMessage)
            message = message_of(view, [new_text_part(other_message.text)], f"message-{number}")
            message.role = Role.ROLE_USER if is_user else Role.ROLE_AGENT
            yield message
