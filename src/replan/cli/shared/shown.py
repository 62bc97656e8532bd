"""What a user of the terminal is shown of what a run asks, and what the user was shown last.

An answer without a key is about that and about nothing that is asked since.
"""

from collections.abc import Sequence
from typing import cast

from replan.cli.user_files.order_signature import user_name
from replan.cli.user_files.storage_location import short
from replan.log.report import RunReport
from replan.ports.storage import Storage
from replan.runs.reports import texts_of
from replan.state.person.answers import Shown, shown_in
from replan.state.questions import Question
from replan.views.run.evidence import Evidence, evidence_of, replies_before
from replan.views.run.open_asks import waiting_lines

_PLACE = ("replan", "terminal", "shown")


async def show_what_waits(report: RunReport, storage: Storage, resume: str) -> list[str]:
    """Return the lines about what a run asks, and note that this user is shown them."""
    asks = report.pending_questions
    if asks:
        shown = {**shown_in(asks)}
        await storage.store.aput((*_PLACE, _user()), report.run_id, shown, index=False)
    evidence_of_asks = await evidence_on_record(asks, report, storage)
    return waiting_lines(asks, evidence_of_asks, short(report.run_id), resume)


async def evidence_on_record(
    asks: Sequence[Question], report: RunReport, storage: Storage
) -> list[Evidence]:
    """What a person decides questions of a run on, with what models said before they asked."""
    texts = await texts_of(report.run_id, storage, replies_before(report))
    return [evidence_of(ask, report, texts) for ask in asks]


async def shown_last(storage: Storage, run_id: str) -> Shown | None:
    """What this user was shown last of a run; None if nothing of it was shown here."""
    item = await storage.store.aget((*_PLACE, _user()), run_id)
    return cast("Shown", item.value) if item is not None else None


def _user() -> str:
    # A dot divides the names of a place in some stores.
    return user_name().replace(".", "_") or "somebody"
