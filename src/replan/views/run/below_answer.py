"""What is below the answer of a run: its files, and what it took."""

from collections.abc import Container, Iterable
from pathlib import Path

from replan.log.events.types import TaskCompleted
from replan.log.report import RunReport
from replan.state.results import Artifact
from replan.state.usage import TokenCount
from replan.views.cells import amount, counted, one_line


def files(artifacts: Iterable[Artifact], workspace: Path) -> str:
    """A line for each file that was made."""
    return "".join(f"file: {_artifact_text(artifact, workspace)}\n" for artifact in artifacts)


def warnings(event: TaskCompleted, shown: Container[str] = ()) -> list[str]:
    """A line for each unexpected thing that no other line shows."""
    new = dict.fromkeys(warning for warning in event.warnings if warning not in shown)
    return [f"warning: {one_line(each)}" for each in new]


def account(report: RunReport) -> str:
    """The line that ends a run: outcome, model calls, tokens, time."""
    usage, failed = report.usage, report.anomalies.failed
    calls = f" in spite of {counted(failed, 'failed tool call')}" if failed else ""
    return (
        f"{report.outcome}{calls}: {counted(usage.calls, 'model call')}, "
        f"{counted(usage.total_tokens, 'token')}{money(usage, report.currency)}, "
        f"{report.worked:.1f} s\n"
    )


def money(used: TokenCount, currency: str = "") -> str:
    """What calls cost, after a comma; nothing where none of them has a price."""
    if not used.known_cost:
        return ""
    if used.cost is None:
        unpriced = counted(used.unpriced_calls, "call")
        return f", cost at least {amount(used.known_cost, currency)} ({unpriced} without a price)"
    return f", cost {amount(used.cost, currency)}"


def _artifact_text(artifact: Artifact, workspace: Path) -> str:
    title = f" ({one_line(artifact.title)})" if artifact.title else ""
    path = (workspace / artifact.path).resolve()
    here = Path.cwd()
    shown = path.relative_to(here) if path.is_relative_to(here) else path
    return f"{one_line(str(shown))}{title}"
