"""What can be shown of a run before the framework that reads its state is loaded."""

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from replan.runs.log.outline import plan_in
from replan.runs.log.run_event import event_in
from replan.storage.glimpse import Glimpse, glimpse

if TYPE_CHECKING:
    from replan.runs.course.whole_run import WholeRun

_OVER = ("completed", "partial", "failed")


def run_from_rows(name: str | None, path: Path) -> "WholeRun | None":
    """Return a finished run from its rows; None if they do not contain enough."""
    found = None if name == "" else glimpse(path, name)
    if found is None or found.run["outcome"] not in _OVER:
        return None
    events = tuple(event_in(found.run["run_id"], seq, kept) for seq, kept in found.events)
    if not events or events[-1].type != "task_completed" or (plan := plan_in(events)) is None:
        return None
    limits = [e for e in events if e.type == "limit_reached" and e.details.get("scope") == "run"]
    if limits and any(e.type == "run_resumed" for e in events[events.index(limits[0]) :]):
        # Its state knows whether the limit was raised.
        return None
    run = SimpleNamespace(
        **found.run,
        last_seen_at=found.run["updated_at"],
        labels=found.labels,
        plan=plan,
        limit_reached=limits[-1].details["limit"] if limits else "",
        spent=_spent(found),
        ledger=found.attempts,
        events=events,
    )
    return cast("WholeRun", run)


def _spent(found: Glimpse) -> dict[str, Any]:
    return {"run": SimpleNamespace(**found.charged)} if found.charged else {}
