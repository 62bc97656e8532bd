"""Ids of checkpoints that grow on a thread, whatever the clocks of its hosts say.

The newest checkpoint is the one with the largest id, and LangGraph makes an id of the time. A host
whose clock is behind would so write checkpoints that nobody finds. LangGraph's own clock of ids
only goes forward; here it is set forward by every checkpoint that is read, before a run writes one.
"""

from langgraph.checkpoint.base import id as langgraphs

from replan.errors import StorageError

_TIMED = 6
"""The version of ids that begin with a time."""

_NEWEST = "_last_v6_timestamp"
"""Where LangGraph has the newest time that it made an id of; nothing public sets it."""

_LATEST = 1 << 59
"""A time in the year 3409: an id beyond would leave no room for those of all other threads."""


def go_on_above(checkpoint_id: str) -> None:
    """Let every id that this process makes from now on be above this one."""
    try:
        found = langgraphs.UUID(checkpoint_id)
    except ValueError:
        return
    if found.version == _TIMED and (getattr(langgraphs, _NEWEST) or 0) < found.time < _LATEST:
        setattr(langgraphs, _NEWEST, found.time)


def check_above(checkpoint_id: str, parent: str | None, where: str) -> None:
    """See that a checkpoint will be found as newer than the one that it goes on from.

    Raises:
        StorageError: It would not.
    """
    if parent is not None and checkpoint_id <= parent:
        raise StorageError(
            where,
            f"The checkpoint {checkpoint_id} is not above {parent}, from which it goes on, so "
            "nobody would find it.",
            "Correct the clock of this host, then go on with the run on its thread.",
        )
