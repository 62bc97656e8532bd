"""`replan resume`: continue a run that is kept."""
# ruff: noqa: PLC0415 - the help of a command loads no framework

from pathlib import Path
from typing import Annotated

import typer

from replan.cli.shared import options
from replan.cli.shared.process import as_command
from replan.cli.shared.site import Site, site_of


@as_command
@options.with_options("site", site_of)
@options.with_options("places", options.Places)
def resume(
    run_id: options.Run,
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
            help="Your edited version of the plan that waits for approval.",
        ),
    ] = None,
    limit: options.Limit = None,
    places: options.Places,
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="Another model for the host.")
    ] = None,
    base_url: Annotated[str | None, typer.Option(help="Another server for models.")] = None,
    site: Site,
) -> int:
    """Continue a run that was stopped or killed, waits for an answer, or reached a limit.

    Finished work is not repeated. Exit codes are those of `replan run`.
    """
    from replan.cli.shared.carry_on import ResumeRequest, carry_on
    from replan.cli.user_files.orders import read_limits

    others = {"model": model, "base_url": base_url, **vars(places)}
    request = ResumeRequest(
        run=run_id,
        answers=answer or [],
        plan=plan,
        limits=read_limits(limit or []),
        changes={name: value for name, value in others.items() if value is not None},
    )
    return carry_on(request, site)
