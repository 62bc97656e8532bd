"""A session between two calls: the values that a client keeps and hands over, and their updates.

A history grows by `{"append": [...]}`, or is replaced by `{"set": [...]}`. A text is replaced by
`{"set": text}`. An entry of a mapping is replaced by `{"set": value}`, or is None and removed: so
none of the values that an entry may have can be taken for an order.

The names are those of GTPlanner's stateless refactoring, from which the design comes.
"""

import logging
from collections.abc import Mapping, Sequence
from copy import deepcopy
from datetime import datetime
from typing import Annotated, Any, Literal, Self, cast

from pydantic import AfterValidator, BeforeValidator, Field, JsonValue

from replan.base.values import Value, same
from replan.state.session.context_fields import MOST_BYTES, MOST_VALUES, Path, ValueReader

HISTORIES = ("dialogue_history", "tool_execution_history")
MAPPINGS = ("project_state", "session_metadata")
TEXTS = ("current_stage",)


def applied(context: Value, updates: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a context that updates change, as they are afterwards.

    Raises:
        ContextError: Something is wrong with the updates.
    """
    reading, fields = ValueReader(), dict[str, Any]()
    for name, change in _entries(updates, (), reading):
        path: Path = (name,)
        if name in HISTORIES:
            fields[name] = _history(context, name, change, reading)
        elif name in MAPPINGS:
            fields[name] = _mapping(getattr(context, name), change, path, reading)
        elif name in TEXTS:
            fields[name] = _read_set(str, change, path, reading)
        else:
            reading.refuse(path, change, "no update changes this", "Leave it out.")
    reading.end()
    return fields


def updates_between(before: Value, after: Value) -> dict[str, JsonValue]:
    """What changes a context into another one of its session; empty where nothing does."""
    updates: dict[str, JsonValue] = {}
    for name in HISTORIES:
        old, new = getattr(before, name), getattr(after, name)
        if not _is_same_history(old, new):
            goes_on = len(new) > len(old) and _is_same_history(old, new[: len(old)])
            added = new[len(old) :] if goes_on else new
            updates[name] = {"append" if goes_on else "set": [entry.to_dict() for entry in added]}
    for name in TEXTS:
        old, new = getattr(before, name), getattr(after, name)
        if old != new:
            updates[name] = {"set": new}
    for name in MAPPINGS:
        if changes := _changes(getattr(before, name), getattr(after, name)):
            updates[name] = changes
    return updates


def _changes(
    before: Mapping[str, JsonValue], after: Mapping[str, JsonValue]
) -> dict[str, JsonValue]:
    """Return the updates of the entries that differ."""
    changes: dict[str, JsonValue] = {name: None for name in before if name not in after}
    for name, value in after.items():
        if name not in before or not same(before[name], value):
            changes[name] = {"set": deepcopy(value)}
    return changes


def _is_same_history(one: tuple[Value, ...], other: tuple[Value, ...]) -> bool:
    return len(one) == len(other) and all(
        a is b or a.model_dump_json() == b.model_dump_json()
        for a, b in zip(one, other, strict=True)
    )


def _history(context: Value, name: str, change: Any, reading: ValueReader) -> Any:
    kind = type(context).model_fields[name].annotation
    path: Path = (name,)
    if _is_update(change, "append"):
        added = reading.value(kind, change["append"], (*path, "append"))
        return (*getattr(context, name), *(added or ()))
    fix = 'Write {"append": [...]} or {"set": [...]}.'
    return _read_set(kind, change, path, reading, fix)


def _mapping(
    before: Mapping[str, JsonValue], change: Any, path: Path, reading: ValueReader
) -> dict[str, JsonValue]:
    after = dict(before)
    for name, each in _entries(change, path, reading):
        if each is None:
            after.pop(name, None)
        else:
            fix = 'Write {"set": value}, or null to remove it.'
            after[name] = _read_set(JsonValue, each, (*path, name), reading, fix)
    return after


def _read_set(
    kind: Any, change: Any, path: Path, reading: ValueReader, fix: str = 'Write {"set": ...}.'
) -> Any:
    if _is_update(change, "set"):
        return reading.value(kind, change["set"], (*path, "set"))
    reading.refuse(path, change, "it is not an update", fix)
    return None


def _is_update(change: Any, name: str) -> bool:
    return isinstance(change, Mapping) and [*cast("Mapping[object, Any]", change)] == [name]


def _entries(value: object, path: Path, reading: ValueReader) -> list[tuple[str, Any]]:
    """Return the entries of a mapping; those without a name are mistakes."""
    if isinstance(value, Mapping):
        # A name that JSON does not keep is refused with what it names.
        pairs = cast("Mapping[object, Any]", value).items()
        for name, entry in pairs:
            if not isinstance(name, str):
                reading.refuse((*path, repr(name)), entry, "it is not a name that JSON can hold")
        return [(name, entry) for name, entry in pairs if isinstance(name, str)]
    reading.refuse(path, value, "it is not a mapping", "Write a mapping with texts as keys.")
    return []


_log = logging.getLogger(__name__)

MOST_ENTRIES = 100_000
"""Entries of a history of a context. A session that lives long meets `MOST_VALUES` first."""

MOST_KEYS = 10_000
"""Keys of `project_state` and of `session_metadata`."""

FORMAT = 1
"""The format of a context as a dictionary. A newer one is refused."""

Stage = Literal["new", "question", "approval", "stopped", "done"]
"""The status of a session: nothing was asked yet; it waits for answers, or for a decision about a
plan or a tool call; its work was stopped or failed, and can continue; or the answer is given."""


def _iso(text: str) -> str:
    try:
        datetime.fromisoformat(text)
    except ValueError as error:
        raise ValueError("it is not a time in ISO 8601") from error
    return text


def _is_content(value: object) -> object:
    """Refuse values other than a text or content blocks, with one sentence for all kinds."""
    blocks = cast("Sequence[Any]", value) if isinstance(value, list | tuple) else ()
    if isinstance(value, str) or (blocks and all(map(_is_block, blocks))):
        return cast("object", value)
    raise ValueError("it is neither a text nor a list of content blocks, each with a type")


def _is_block(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(cast("Any", value).get("type"), str)


Content = Annotated[str | tuple[dict[str, JsonValue], ...], BeforeValidator(_is_content)]
"""A text, or LangChain's content blocks: texts, images, files."""

Time = Annotated[str, AfterValidator(_iso)]
"""A time as ISO 8601 writes it, such as `2026-03-01T12:00:00+00:00`."""


class Message(Value):
    """A message of a session.

    Attributes:
        role: Who said it: `user`, `assistant`, or `system` for instructions of the client, which
            models read as words of the user.
        content: A text, or LangChain's content blocks.
        timestamp: When it was said, as ISO text.
        metadata: Data of the client; no model sees it.
    """

    role: Literal["user", "assistant", "system"]
    content: Content
    timestamp: Time
    metadata: dict[str, JsonValue] = Field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the message as a plain dictionary."""
        return self.model_dump(mode="json")


class ToolExecution(Value):
    """A call of a tool.

    Attributes:
        id: The id of the call: the model's, where a model called the tool.
        tool_name: The tool.
        arguments: What it was called with.
        result: What the caller got.
        success: Whether it did what it should.
        error: Why it did not; None if it did.
        started_at: When it began, as ISO text; None where that is not known.
        duration: How many seconds it took; None where that is not known.
    """

    id: str
    tool_name: str
    arguments: dict[str, JsonValue] = Field(default_factory=dict)
    result: JsonValue = None
    success: bool = Field(strict=True)
    error: str | None = None
    started_at: Time | None = None
    duration: float | None = Field(default=None, strict=True, ge=0)

    def to_dict(self) -> dict[str, Any]:
        """Return the call as a plain dictionary."""
        return self.model_dump(mode="json")


class AgentContext(Value):
    """A session, as a client keeps it and passes it to a stateless agent.

    The agent uses these keys of `project_state`: `run`, a run that waits or was stopped; `plan`,
    the document of the newest plan; `memory_summary`, the summary of the history's beginning; `job`
    and `threads`, the state of a job and of a pipeline. Others, such as `research_findings`,
    `agent_design_document`, `confirmation_document` and `structured_requirements`, belong to the
    client and to the steps, which read them in `ExecutionContext.session` and change them by
    `SpecialistResult.project_state`.

    Attributes:
        session_id: The session.
        dialogue_history: The messages, the oldest first.
        current_stage: Its status (`Stage`), as the agent derived it; a client may have
            words of its own.
        project_state: The state of the work, by names.
        tool_execution_history: The tool calls, the oldest first.
        session_metadata: What is known about the session, such as `last_updated`.
    """

    session_id: str = Field(min_length=1)
    dialogue_history: tuple[Message, ...] = ()
    current_stage: str = "new"
    project_state: dict[str, JsonValue] = Field(default_factory=dict)
    tool_execution_history: tuple[ToolExecution, ...] = ()
    session_metadata: dict[str, JsonValue] = Field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the context as a plain dictionary, with the number of its format."""
        return {"format": FORMAT, **self.model_dump(mode="json")}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], *, most_bytes: int = MOST_BYTES) -> Self:
        """Create a context from a copy of a dictionary.

        Unknown keys are ignored, and missing ones get their defaults, except for the session's id.
        A history may have 100,000 entries, `project_state` and `session_metadata` 10,000 keys each,
        and all of it 500,000 values. Where less than a tenth of a bound is left, the log says so.

        Args:
            data: A dictionary from `to_dict`, or from another program.
            most_bytes: How large it may be, as JSON, approximately. A larger number raises the
                other bounds in proportion: give one for what a store of your own has.

        Raises:
            ContextError: Something is wrong; names every bad field. Of a newer format, only the
                number is read.
        """
        factor = max(1, most_bytes // MOST_BYTES)
        reading = ValueReader(most_bytes, most_values=factor * MOST_VALUES)
        if isinstance(cast("object", data), Mapping):
            _check_format(data.get("format", FORMAT), reading)
            _check_counts(data, reading, factor)
        reading.end()
        context = reading.value(cls, data)
        reading.end()
        if reading.is_nearly_full or _has_many(context, factor):
            _log.warning(
                "a session is nearly as large as one that is read; leave out its oldest entries",
                extra={"session": context.session_id},
            )
        return context

    def apply(self, updates: Mapping[str, Any]) -> Self:
        """Return the context after updates; this one is not changed.

        Args:
            updates: What `AgentResult.context_updates` has. A history takes `{"append": [...]}` or
                `{"set": [...]}`, `current_stage` takes `{"set": text}`. In `project_state` and
                `session_metadata`, each changed entry is `{"set": value}`, or None for one that is
                removed.

        Raises:
            ContextError: Something is wrong with the updates; names every bad field.
        """
        return self.replace(**applied(self, updates))

    def updates_to(self, after: "AgentContext") -> dict[str, JsonValue]:
        """Return the updates that turn this context into another one of the same session.

        They contain only what changed; `apply` with them returns the other context.

        Raises:
            ContextError: It is the context of another session.
        """
        if self.session_id != after.session_id:
            problem, fix = "it belongs to another session", f"Use {self.session_id}."
            reading = ValueReader()
            reading.refuse(("session_id",), after.session_id, problem, fix)
            reading.end()
        return updates_between(self, after)


class AgentResult(Value):
    """The outcome of a call of an agent.

    Attributes:
        success: Whether there is an answer, or a question to the user; False if the call failed.
        response: The answer, or the question.
        context_updates: What changed in the context, for `AgentContext.apply`.
        metadata: The status of the run: `outcome`, `stage`, `usage`, open `questions`, `approval`,
            whether the answer is `degraded`, and the `failures`.
        error: Why the call failed; None if it did not.
        tool_execution_results: The tool calls of this turn.
    """

    success: bool
    response: str
    context_updates: dict[str, JsonValue] = Field(default_factory=dict)
    metadata: dict[str, JsonValue] = Field(default_factory=dict)
    error: str | None = None
    tool_execution_results: tuple[ToolExecution, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a plain dictionary."""
        return self.model_dump(mode="json")


def _check_format(number: object, reading: ValueReader) -> None:
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        reading.refuse(("format",), number, "it is not the number of a format", f"Write {FORMAT}.")
    elif number > FORMAT:
        problem = f"it is newer than {FORMAT}, the newest format that this version reads"
        reading.refuse(("format",), number, problem, "Use the version of Replan that wrote it.")


def _check_counts(data: Mapping[str, Any], reading: ValueReader, factor: int) -> None:
    """Refuse what has too many entries before any of them is read."""
    bounds = [
        *((name, MOST_ENTRIES, "entries", "Leave out the oldest.") for name in HISTORIES),
        *((name, MOST_KEYS, "keys", "Keep them in one list.") for name in MAPPINGS),
    ]
    for name, bound, what, fix in bounds:
        most = factor * bound
        value = data.get(name)
        if isinstance(value, Mapping | list | tuple):
            count = len(cast("Sequence[Any]", value))
            if count > most:
                problem = f"it has {count:,} {what}; at most {most:,} are read"
                reading.refuse((name,), f"{count:,} {what}", problem, fix)


def checked_session(context: AgentContext, session_id: str) -> AgentContext:
    """Return what a store gave for a session.

    Raises:
        ContextError: It is the context of another session.
    """
    if context.session_id != session_id:
        reading = ValueReader()
        problem = f"the store was asked for the session '{session_id}'"
        fix = "Let the store return the context of the session that it is asked for."
        reading.refuse(("session_id",), context.session_id, problem, fix)
        reading.end()
    return context


def _has_many(context: AgentContext, factor: int) -> bool:
    """Whether a history has more than nine tenths of the entries that are read."""
    most = factor * MOST_ENTRIES
    return any(len(getattr(context, name)) * 10 > most * 9 for name in HISTORIES)
