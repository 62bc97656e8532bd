"""`replan skip`: skip a step of a stored run."""

from replan.cli.shared import options
from replan.cli.shared.corrected import correct
from replan.cli.shared.process import as_command
from replan.cli.shared.site import Site, site_of


@as_command
@options.with_options("site", site_of)
def skip(
    run_id: options.Run,
    step: options.Step,
    *,
    limit: options.Limit = None,
    team: options.TeamFile = None,
    site: Site,
) -> int:
    """Skip an unfinished step; steps that wait for it continue without it.

    A run that waits, was stopped or was ended by a limit continues itself. A run that is over stays
    as it is, and a new run begins from its plan. The exit codes are those of `replan run`.
    """
    return correct("skip", run_id, step, site, limit, team)
