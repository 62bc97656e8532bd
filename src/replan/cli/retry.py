"""`replan retry`: repeat a step of a stored run."""
# ruff: noqa: PLC0415 - the help of a command loads no framework

from typing import Annotated

import typer

from replan.base.errors import InputError
from replan.cli.shared import options
from replan.cli.shared.corrected import correct
from replan.cli.shared.process import as_command
from replan.cli.shared.site import Site, site_of


@as_command
@options.with_options("site", site_of)
def retry(
    run_id: options.Run,
    step: options.Step,
    *,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Do not ask before effects are repeated.")
    ] = False,
    timeout: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="The time for one attempt of the step from now on, such as 30s, 10m or 2h.",
        ),
    ] = None,
    limit: options.Limit = None,
    team: options.TeamFile = None,
    site: Site,
) -> int:
    """Repeat a step and all steps that depend on it, and continue the run.

    A run that waits, was stopped or was ended by a limit continues itself. A run that is over stays
    as it is, and a new run begins from its plan. The exit codes are those of `replan run`.
    """
    seconds = None if timeout is None else _seconds(timeout)
    return correct("retry", run_id, step, site, limit, team, allow_repeat=yes, timeout=seconds)


def _seconds(text: str) -> float:
    from replan.plan.option_table import DURATION

    seconds: float | None = DURATION.read(text.strip())
    if seconds is None:
        raise InputError(f"--timeout {text} is not a time. Write 500ms, 30s, 10m or 2h.")
    return seconds
