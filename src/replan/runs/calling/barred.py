"""Runs that must not go on here, though they are not over: exported, or cancelled for good."""

from datetime import datetime
from typing import Literal

from pydantic import JsonValue

from replan.base.errors import InputError
from replan.base.values import fields_in
from replan.log.run_log import RunLog

Bar = Literal["exported", "cancelled"]
"""Why a run must not go on: it may go on elsewhere, or a client ended it by its protocol."""

BARRED = "barred/"
"""The prefix of the notes in the log of a run that keep it from going on."""


async def bar(log: RunLog, run_id: str, why: Bar, *, at: datetime, by: str = "") -> None:
    """Keep a run from going on."""
    value: JsonValue = {"at": f"{at:%Y-%m-%d %H:%M %Z}".strip(), "by": by}
    await log.note(run_id, f"{BARRED}{why}", value)


async def bar_on(log: RunLog, run_id: str) -> Bar | None:
    """Why a run must not go on; None if it may."""
    notes = await log.notes(run_id, BARRED)
    if f"{BARRED}cancelled" in notes:
        return "cancelled"
    return "exported" if notes else None


async def check_not_barred(log: RunLog, run_id: str) -> None:
    """Check that a run may go on here.

    Raises:
        InputError: It was exported, or cancelled for good.
    """
    why = await bar_on(log, run_id)
    if why is None:
        return
    noted = fields_in((await log.notes(run_id, BARRED))[f"{BARRED}{why}"])
    by = f" by {noted['by']}" if noted["by"] else ""
    if why == "cancelled":
        raise InputError(
            f"The run '{run_id}' was cancelled{by} ({noted['at']}), which is final. Begin a new "
            "run; it can be given the plan of this one, in which finished steps stay finished."
        )
    raise InputError(
        f"The run '{run_id}' was exported ({noted['at']}), so it may go on elsewhere, and would be "
        f"done twice. If it does not, `await runtime.take_back('{run_id}')` lets it go on here."
    )


async def lift(log: RunLog, run_id: str) -> None:
    """Let a run go on here that was exported.

    Raises:
        InputError: It was cancelled for good.
    """
    if await bar_on(log, run_id) == "cancelled":
        await check_not_barred(log, run_id)
    await log.strike(run_id, BARRED)
