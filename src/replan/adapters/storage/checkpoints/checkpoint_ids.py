"""Ids of checkpoints that grow on a thread, whatever the clocks of its hosts say.

The newest checkpoint is the one with the largest id, and LangGraph makes an id of the time. A host
whose clock is behind would so write checkpoints that nobody finds. LangGraph's own clock of ids
only goes forward; here it is set forward by every checkpoint that is read, before a run writes one.
"""

from replan.errors import StorageError
from replan.langgraph_inside.checkpoints import go_on_after, ids, newest_time

_TIMED = 6
"""The version of ids that begin with a time."""

_LATEST = 1 << 59
"""A time in the year 3409: an id beyond would leave no room for those of all other threads."""


def go_on_above(checkpoint_id: str) -> None:
    """Let every id that this process makes from now on be above this one."""
    try:
        found = ids.UUID(checkpoint_id)
    except ValueError:
        return
    if found.version == _TIMED and newest_time() < found.time < _LATEST:
        go_on_after(found.time)


def check_above(checkpoint_id: str, parent: str | None, where: str) -> None:
    """See that a checkpoint will be found as newer than the one that it goes on from."""
    if parent is not None and checkpoint_id <= parent:
        raise StorageError(
            where,
            f"The checkpoint {checkpoint_id} is not above {parent}, from which it goes on, so "
            "nobody would find it.",
            "Correct the clock of this host, then go on with the run on its thread.",
        )
