"""What became of what people asked of a run at work: each is told once."""

from typing import Any, Literal

from replan.log.events.emitter import Emitter
from replan.log.events.types import RunSteered
from replan.log.rows import Request
from replan.log.run_log import RunLog
from replan.ports.run_context import here
from replan.ports.steering import OUTCOME, TOO_LATE, facts_of, missed_warning


async def report_outcome(
    request: Request,
    status: Literal["taken", "refused"],
    emitter: Emitter,
    log: RunLog,
    **fields: Any,
) -> None:
    """Report once what became of a request, also if its node begins again."""
    about = {**facts_of(request), "status": status, **fields}
    announced = emitter.announce(RunSteered, **about)
    await log.note(request.run_id, f"{OUTCOME}{request.name}", about, announced)


async def report_missed(emitter: Emitter, log: RunLog) -> None:
    """Report what the run that ends here has not considered."""
    steering = here().steering
    for request in (*steering.waiting("edit"), *steering.waiting("message")) if steering else ():
        await report_outcome(request, "refused", emitter, log, reason=TOO_LATE)
        await emitter.warn(missed_warning(request))
