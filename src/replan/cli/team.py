"""`replan team`: versions of a team, for workers."""
# ruff: noqa: PLC0415 - the help of a command loads no framework

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from replan.cli.shared import options
from replan.cli.shared.process import as_command, location_from, needs_extra

team = typer.Typer(help="Publish versions of a team, for workers.", no_args_is_help=True)


@team.command()
@as_command
def publish(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", exists=True, dir_okay=False, help="The team file.")
    ],
    *,
    storage: options.Storage = None,
) -> None:
    """Publish the version of a team in a file, so that workers may do its runs."""
    with needs_extra("team publish", "queue"):
        from replan.workers.open_worker import publish as record
    typer.echo(record(file, str(location_from(storage).where)))


@team.callback()
def versions() -> None:
    """Publish versions of a team, for workers."""
