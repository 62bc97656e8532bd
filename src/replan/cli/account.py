"""What stands below the answer of a run: its files, and what it took."""

from collections.abc import Iterable
from pathlib import Path

from replan.cli.cells import counted, one_line
from replan.events.types import TaskCompleted
from replan.state.results import Artifact


def files(artifacts: Iterable[Artifact], workspace: Path) -> str:
    """A line for each file that was made."""
    return "".join(f"file: {_place(each, workspace)}\n" for each in artifacts)


def account(event: TaskCompleted, seconds: float) -> str:
    """The lines that end a run: its warnings; then outcome, model calls, tokens, time."""
    usage = event.usage
    warnings = "".join(f"warning: {one_line(each)}\n" for each in event.warnings)
    return (
        f"{warnings}{event.outcome}: {counted(usage.calls, 'model call')}, "
        f"{counted(usage.total_tokens, 'token')}, {seconds:.1f} s\n"
    )


def _place(artifact: Artifact, workspace: Path) -> str:
    title = f" ({one_line(artifact.title)})" if artifact.title else ""
    path = (workspace / artifact.path).resolve()
    here = Path.cwd()
    shown = path.relative_to(here) if path.is_relative_to(here) else path
    return f"{one_line(str(shown))}{title}"
