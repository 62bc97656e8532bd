"""`replan retry`: have a step of a kept run done again."""
# ruff: noqa: PLC0415 - the help of a command loads no framework

from typing import Annotated

import typer

from replan.cli.options import (
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
from replan.cli.process import end_with, site


def retry(
    run_id: RunArgument,
    step: Annotated[int, typer.Argument(metavar="STEP", help="The number of the step.")],
    *,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Do not ask before an effect is had once more.")
    ] = False,
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
    """Do a step again, and all that follows from it; then go on with the run.

    A run that waits, was stopped or was ended by a limit goes on itself. One that is over stays as
    it is, and a new run goes on from its plan. Exit codes are those of `replan run`.
    """

    def corrected() -> int:
        from replan.cli.carry_on import Wish, carry_on
        from replan.cli.kept.orders import limits_of
        from replan.cli.kept.signature import own_name
        from replan.runs.correcting import Correction

        wish = Wish(
            run=run_id,
            limits=limits_of(limit or []),
            changes={} if team is None else {"team": team},
            correction=Correction(action="retry", step=step, by=own_name()),
            repeat_effects=yes,
        )
        told = site(
            storage=storage,
            grace=grace,
            as_json=as_json,
            plain=plain,
            quiet=quiet,
            verbose=verbose,
            log_file=log_file,
        )
        return carry_on(wish, told)

    end_with(corrected)
