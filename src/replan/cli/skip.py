"""`replan skip`: skip a step of a stored run."""

from typing import Annotated

import typer

from replan.cli.shared.corrected import correct
from replan.cli.shared.options import (
    GraceOption,
    JsonLinesOption,
    LimitOption,
    LogFileOption,
    PlainOption,
    QuietOption,
    RunArgument,
    StorageOption,
    TeamFileOption,
    VerboseOption,
)
from replan.cli.shared.process import site


def skip(
    run_id: RunArgument,
    step: Annotated[int, typer.Argument(metavar="STEP", help="The number of the step.")],
    *,
    limit: LimitOption = None,
    team: TeamFileOption = None,
    grace: GraceOption = 10.0,
    storage: StorageOption = None,
    as_json: JsonLinesOption = False,
    plain: PlainOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    log_file: LogFileOption = None,
) -> None:
    """Skip an unfinished step; steps that wait for it continue without it.

    A run that waits, was stopped or was ended by a limit continues itself. A run that is over stays
    as it is, and a new run begins from its plan. The exit codes are those of `replan run`.
    """
    correct(
        "skip",
        run_id,
        step,
        lambda: site(
            storage=storage,
            grace=grace,
            as_json=as_json,
            plain=plain,
            quiet=quiet,
            verbose=verbose,
            log_file=log_file,
        ),
        limit=limit or [],
        team=team,
    )
