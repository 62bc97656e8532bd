"""`replan resume`: continue a run that is kept."""
# ruff: noqa: PLC0415 - the help of a command loads no framework

from pathlib import Path
from typing import Annotated

import typer

from replan.cli.shared.options import (
    DirectoryOption,
    LimitOption,
    OutOption,
    PlanOutOption,
    RunArgument,
    TeamFileOption,
)
from replan.cli.shared.process import end_with
from replan.cli.shared.site_options import GivenSite, with_site


@with_site()
def resume(
    run_id: RunArgument,
    *,
    answer: Annotated[
        list[str] | None,
        typer.Option(
            "--answer",
            "-a",
            metavar="[KEY=]TEXT",
            help="The answer to the open question; KEY=TEXT if several are open.",
        ),
    ] = None,
    plan: Annotated[
        Path | None,
        typer.Option(
            dir_okay=False,
            exists=True,
            help="The plan that waits for your approval, as you changed it.",
        ),
    ] = None,
    limit: LimitOption = None,
    team: TeamFileOption = None,
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="Another model for the host.")
    ] = None,
    base_url: Annotated[str | None, typer.Option(help="Another server for models.")] = None,
    directory: DirectoryOption = None,
    out: OutOption = None,
    plan_out: PlanOutOption = None,
    site: GivenSite,
) -> None:
    """Continue a run that was stopped, killed, waits for an answer or was ended by a limit.

    What is finished stays finished. Exit codes are those of `replan run`.
    """

    def resumed() -> int:
        from replan.cli.kept.orders import limits_of
        from replan.cli.shared.carry_on import Wish, carry_on

        others = {
            "team": team,
            "model": model,
            "base_url": base_url,
            "directory": directory,
            "out": out,
            "plan_out": plan_out,
        }
        wish = Wish(
            run=run_id,
            answers=answer or [],
            plan=plan,
            limits=limits_of(limit or []),
            changes={name: value for name, value in others.items() if value is not None},
        )
        return carry_on(wish, site())

    end_with(resumed)
