"""`replan ui`: a page that shows runs."""
# ruff: noqa: PLC0415 - the help of a command loads no framework

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from replan.cli.shared import options
from replan.cli.shared.process import as_command, needs_extra


@dataclass(frozen=True, kw_only=True)
class PageServing(options.Serving):
    """Where the page is served."""

    port: options.Port = 8322


@as_command
@options.with_options("serving", PageServing)
def ui(
    teams: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="TEAM.yaml",
            help="The teams whose runs the page can start; by default the default team.",
        ),
    ] = None,
    *,
    prefix: Annotated[
        str,
        typer.Option(
            "--prefix", metavar="PATH", help="The path under which a proxy serves the page."
        ),
    ] = "",
    serving: PageServing,
) -> None:
    """Show runs in a browser until Ctrl-C, live and afterwards, with all details."""
    from replan.cli.user_files.storage_location import own_folder

    with needs_extra("ui", "ui"):
        from replan.cli.page.htmx import script
        from replan.cli.page.served_pages import PageOptions, show

        script()
    secret = own_folder() / "ui.token"
    wanted = PageOptions(teams=teams or [], prefix=prefix, secret=secret, **serving.options)
    show(wanted, lambda text: typer.echo(text, err=True))
