"""`replan ui`: a page that shows runs."""
# ruff: noqa: PLC0415 - the help of a command loads no framework

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from replan.cli.shared import options
from replan.cli.shared.process import as_command, location_from, needs_extra


@as_command
def ui(
    teams: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="TEAM.yaml",
            help="The teams whose runs the page can start; by default the default team.",
        ),
    ] = None,
    *,
    host: options.Host = "127.0.0.1",
    port: options.Port = 8322,
    name: Annotated[
        list[str] | None,
        typer.Option(
            "--allowed-host",
            metavar="HOST",
            help="A host name under which browsers reach the page; repeatable.",
        ),
    ] = None,
    prefix: Annotated[
        str,
        typer.Option(
            "--prefix", metavar="PATH", help="The path under which a proxy serves the page."
        ),
    ] = "",
    tokens: Annotated[
        Path | None,
        typer.Option(
            "--tokens",
            metavar="FILE",
            help="The file of tokens; else the token is REPLAN_TOKEN, or one of this user.",
        ),
    ] = None,
    grace: options.GraceAtEnd = 10.0,
    storage: options.Storage = None,
) -> None:
    """Show runs in a browser until Ctrl-C, live and afterwards, with all details."""
    from replan.user_files.storage_location import own_folder

    with needs_extra("ui", "ui"):
        from replan.ui.htmx import script
        from replan.ui.served_pages import PageOptions, show

        script()
    kept = location_from(storage)
    wanted = PageOptions(
        teams=teams or [],
        environment=os.environ,
        storage=kept.address,
        key=kept.key,
        keep_days=kept.keep_days,
        host=host,
        port=port,
        names=name or [],
        tokens=tokens,
        grace=grace,
        prefix=prefix,
        secret=own_folder() / "ui.token",
    )
    show(wanted, lambda text: typer.echo(text, err=True))
