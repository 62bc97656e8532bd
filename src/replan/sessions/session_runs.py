"""The runs of a session in a storage: what they are found by, and how they go."""

import sys

from replan.ports.session_store import SessionKey
from replan.ports.storage import Storage
from replan.sessions.carried import RUN
from replan.sessions.kept_turn import digest_of
from replan.state.context import AgentContext

TURN = "turn/"
"""The beginning of the key of a note: of what a turn of a session asks of a run that waits."""

_LONGEST = 200


def thread_of(key: SessionKey) -> str:
    """What is held while a turn of a session is taken."""
    return f"session/{digest_of(key)}"


def labels_of(key: SessionKey) -> dict[str, str]:
    """What the runs of a session are found by."""
    given = {"session": key.session_id, "tenant": key.tenant, "user": key.user}
    return {name: _label(value) for name, value in given.items() if value}


async def forget_run(storage: Storage, context: AgentContext, turn: str = "") -> None:
    """Remove the run that a context carries, unless a turn has begun to go on with it.

    The storage may have it at a later place; the next turn takes it up from the context.
    """
    run_id = run_in(context)
    if run_id and not (turn and await storage.journal.notes(run_id, f"{TURN}{turn}")):
        await storage.runs.remove(run_id)


async def remove_runs(storage: Storage, key: SessionKey) -> None:
    """Remove the runs of a session, with all that is kept of them."""
    labels = labels_of(key)
    for record in await storage.runs.recent(sys.maxsize, labels):
        # Others of this id belong to somebody else.
        if {name: record.labels.get(name) for name in ("session", "tenant", "user")} == {
            name: labels.get(name) for name in ("session", "tenant", "user")
        }:
            await storage.runs.remove(record.run_id)


def run_in(context: AgentContext) -> str:
    """The run that a context carries; empty if there is none."""
    written = context.project_state.get(RUN)
    return str(written.get("run_id", "")) if isinstance(written, dict) else ""


def _label(value: str) -> str:
    return value if len(value) <= _LONGEST and value.isprintable() else digest_of([value])
