"""`replan skip`: skip a step of a stored run."""

from replan.cli.shared.corrected import correct
from replan.cli.shared.options import LimitOption, RunArgument, StepArgument, TeamFileOption
from replan.cli.shared.site_options import GivenSite, with_site


@with_site()
def skip(
    run_id: RunArgument,
    step: StepArgument,
    *,
    limit: LimitOption = None,
    team: TeamFileOption = None,
    site: GivenSite,
) -> None:
    """Skip an unfinished step; steps that wait for it continue without it.

    A run that waits, was stopped or was ended by a limit continues itself. A run that is over stays
    as it is, and a new run begins from its plan. The exit codes are those of `replan run`.
    """
    correct("skip", run_id, step, site, limit=limit or [], team=team)
