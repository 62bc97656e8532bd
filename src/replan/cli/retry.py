"""`replan retry`: repeat a step of a stored run."""

from typing import Annotated

import typer

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
    limit: options.Limit = None,
    team: options.TeamFile = None,
    site: Site,
) -> int:
    """Repeat a step and all steps that depend on it, and continue the run.

    A run that waits, was stopped or was ended by a limit continues itself. A run that is over stays
    as it is, and a new run begins from its plan. The exit codes are those of `replan run`.
    """
    return correct("retry", run_id, step, site, limit, team, allow_repeat=yes)
