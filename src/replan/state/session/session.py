"""What a step sees of the session that it works for, and what it may change of it."""

import json
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from pydantic import Field, JsonValue

from replan.base.values import Value
from replan.state.session.context_fields import ValueReader

if TYPE_CHECKING:
    from replan.state.session.context import AgentContext

JOB = "job"
"""The key of the job in a session's `project_state`, and of its question."""

OWN_NAMES = frozenset(
    {"run", "plan", "memory_summary", "job", "job_secrets", "job_signature", "threads"}
)
"""The keys of `project_state` that Replan writes itself."""

MOST_BYTES_OF_A_STEP = 1_000_000
"""How much of the project state one step may write, as JSON."""


class Session(Value):
    """The session whose turn a step belongs to, as it was when the turn began.

    Each step has its own copy: what it changes in there changes nothing. It returns changes in
    `SpecialistResult.project_state`.

    Attributes:
        id: The session.
        stage: Its status before the turn, `AgentContext.current_stage`.
        project_state: The state of the work, by names, without those that Replan writes itself.
        metadata: What is known about the session, `AgentContext.session_metadata`.
    """

    id: str
    stage: str = "new"
    project_state: dict[str, JsonValue] = Field(default_factory=dict)
    metadata: dict[str, JsonValue] = Field(default_factory=dict)

    @classmethod
    def of(cls, context: "AgentContext") -> "Session":
        """What steps see of a context."""
        shown = {k: v for k, v in context.project_state.items() if k not in OWN_NAMES}
        return cls(
            id=context.session_id,
            stage=context.current_stage,
            project_state=shown,
            metadata=context.session_metadata,
        )

    def copied(self) -> "Session":
        """Return a copy for one step."""
        return deepcopy(self)


SEALED = "sealed:"
"""What a text begins with that only a turn of its session can read."""


class Seal(Protocol):
    """Closes what a session has, so that only agents with its key can read it."""

    def closed(self, value: JsonValue) -> str:
        """Return a text that begins with `SEALED`."""
        ...

    def opened(self, text: str) -> Any:
        """Return what was closed.

        Raises:
            ContextError: Another key closed it, or it was changed.
        """
        ...


def opened_note(note: Any, seal: Seal | None) -> dict[str, Any]:
    """What a run notes of a job that waits; empty if there is nothing that can be read here."""
    waits: dict[str, Any] = note or {}
    if isinstance(waits.get(JOB), str):
        return {} if seal is None else seal.opened(waits[JOB])
    return waits


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionWork:
    """What a session keeps of the work of a team without a host, whose one specialist goes on.

    Attributes:
        session_id: The session.
        state: The entries of its project state that are about this work.
        goes_on: Whether the user said nothing new, so that what is left is to be done.
        said: What the user said to begin, where no record of the run may have it in plain words.
        seal: Closes what a run of it records of secrets; None if there are none.
    """

    session_id: str
    state: Mapping[str, JsonValue]
    goes_on: bool
    seal: Seal | None
    said: str = ""


def check_project_state(
    changes: Mapping[str, JsonValue], own: frozenset[str] = frozenset()
) -> None:
    """Refuse changes of the project state that a step may not make, or that no store keeps.

    Args:
        changes: The new values by names.
        own: The names of Replan that a specialist of its own may write.

    Raises:
        ContextError: Names each bad entry.
    """
    if not changes:
        return
    reading, path = ValueReader(), ("project_state",)
    reading.value(dict[str, JsonValue], changes, path)
    size = len(json.dumps(changes).encode())
    if size > MOST_BYTES_OF_A_STEP:
        problem = f"one step may write {MOST_BYTES_OF_A_STEP:,} bytes of JSON"
        reading.refuse(path, f"{size:,} bytes", problem, "Write files, and name them here.")
    for name in changes.keys() & (OWN_NAMES - own):
        problem = "this entry is Replan's own"
        reading.refuse((*path, name), changes[name], problem, "Use another name.")
    reading.end()
