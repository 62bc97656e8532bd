"""The runs of a session in a storage: how they are found and removed."""

import hashlib
import json
import sys
from collections.abc import Mapping, Sequence

from replan.base.errors import InputError
from replan.log.labels import SESSION, TENANT, USER
from replan.ports.run_book import RunRecord
from replan.ports.session_store import SessionKey
from replan.ports.storage import Storage
from replan.sessions.carried_run import RUN
from replan.state.session.context import AgentContext

_NAMES = (SESSION, TENANT, USER)
_LONGEST = 200
_DIGITS = 32


def name_from(parts: Sequence[object]) -> str:
    """A name of fixed length for whatever names something."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:_DIGITS]


def name_of_turn(key: SessionKey, turn_id: str) -> str:
    """What a turn is called in a storage, and its run if it begins one."""
    return name_from([*key, turn_id])


def lock_name(key: SessionKey) -> str:
    """The name of the lock that is held while a turn of a session is taken."""
    return f"session/{name_from(key)}"


def labels_of(key: SessionKey) -> dict[str, str]:
    """What the runs of a session are found by."""
    names = zip(_NAMES, (key.session_id, key.tenant, key.user), strict=True)
    return {name: _label(value) for name, value in names if value}


async def own_record(storage: Storage, run_id: str, labels: Mapping[str, str]) -> RunRecord | None:
    """The entry of a run of a session; None if the storage does not have it."""
    record = await storage.runs.get(run_id)
    if record is not None and not _is_own(record, labels):
        problem = f"The run '{run_id}' of this session belongs to another session here."
        raise InputError(f"{problem} Give the context as it was, or start again.")
    return record


async def forget_run(
    storage: Storage, key: SessionKey, context: AgentContext, turn: str = ""
) -> None:
    """Remove the run that a context carries, unless a turn has begun to continue it.

    The storage may have it at a later place; the next turn takes it up from the context.
    """
    run_id = run_in(context)
    if not run_id or await own_record(storage, run_id, labels_of(key)) is None:
        return
    if not (turn and await storage.log.request(run_id, turn)):
        await storage.runs.remove(run_id)


async def remove_runs(storage: Storage, key: SessionKey) -> None:
    """Remove the runs of a session with all their records."""
    labels = labels_of(key)
    for record in await storage.runs.recent(sys.maxsize, labels):
        if _is_own(record, labels):
            await storage.runs.remove(record.run_id)


def run_in(context: AgentContext) -> str:
    """The run that a context carries; empty if there is none."""
    written = context.project_state.get(RUN)
    return str(written.get("run_id", "")) if isinstance(written, dict) else ""


def _is_own(record: RunRecord, labels: Mapping[str, str]) -> bool:
    # A session without a user has fewer labels than one of the same id that has one.
    return all(record.labels.get(name) == labels.get(name) for name in _NAMES)


def _label(value: str) -> str:
    return value if len(value) <= _LONGEST and value.isprintable() else name_from([value])
