"""Choose how a run is reported: live on a terminal, as lines, or as JSON."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TextIO

from replan.views.live.reporters import AnswerReporter, JsonReporter, LineReporter, Lines, Reporter

POOR_TERMINALS = ("dumb", "unknown")


@dataclass(frozen=True, kw_only=True)
class Manner:
    """The form of output: JSON precedes quiet, quiet precedes verbose; plain is as in a pipe."""

    as_json: bool = False
    plain: bool = False
    quiet: bool = False
    verbose: bool = False


def reporter(
    manner: Manner,
    output: TextIO,
    errors: TextIO,
    *,
    workspace: Path,
    terminal: str,
    clock: Callable[[], datetime],
) -> Reporter:
    """Choose by the options and by the output."""
    if manner.as_json:
        return JsonReporter(output)
    is_rich = output.isatty() and not manner.plain and terminal not in POOR_TERMINALS
    if is_rich and not manner.quiet:
        from replan.views.live.live_plan import LiveReporter  # noqa: PLC0415 - only a terminal needs it

        return LiveReporter(output, workspace=workspace, clock=clock, verbose=manner.verbose)
    lines = Lines(workspace=workspace, quiet=manner.quiet, verbose=manner.verbose)
    return (AnswerReporter if is_rich else LineReporter)(lines, output, errors)
