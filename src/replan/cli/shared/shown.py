"""What a user of the terminal was shown last of what a run asks, in the storage of the run.

An answer without a key is about that and about nothing that is asked since.
"""

from collections.abc import Sequence
from typing import cast

from replan.ports.storage import Storage
from replan.state.person.answers import Shown, shown_in
from replan.state.questions import Question
from replan.user_files.order_signature import user_name

_PLACE = ("replan", "terminal", "shown")


async def note_shown(storage: Storage, run_id: str, asks: Sequence[Question]) -> None:
    """Note that this user is shown what a run asks."""
    if asks:
        shown = {**shown_in(asks)}
        await storage.store.aput((*_PLACE, _user()), run_id, shown, index=False)


async def shown_last(storage: Storage, run_id: str) -> Shown | None:
    """What this user was shown last of a run; None if nothing of it was shown here."""
    item = await storage.store.aget((*_PLACE, _user()), run_id)
    return cast("Shown", item.value) if item is not None else None


def _user() -> str:
    # A dot divides the names of a place in some stores.
    return user_name().replace(".", "_") or "somebody"
