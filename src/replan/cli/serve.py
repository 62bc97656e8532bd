"""`replan serve`: teams behind HTTP."""
# ruff: noqa: PLC0415 - the help of a command loads no framework

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from replan.cli.shared import options
from replan.cli.shared.process import as_command, location_from, needs_extra


@as_command
def serve(
    teams: Annotated[
        list[Path] | None,
        typer.Argument(metavar="TEAM.yaml", help="The team files; by default the default team."),
    ] = None,
    *,
    host: options.Host = "127.0.0.1",
    port: options.Port = 8321,
    name: Annotated[
        list[str] | None,
        typer.Option(
            "--allowed-host",
            metavar="HOST",
            help="A host name under which clients reach the server; repeatable.",
        ),
    ] = None,
    tokens: Annotated[
        Path | None,
        typer.Option(
            "--tokens",
            metavar="FILE",
            help="The file of tokens; else REPLAN_TOKEN, or a token that is generated and printed.",
        ),
    ] = None,
    grace: options.GraceAtEnd = 10.0,
    queue: Annotated[
        bool,
        typer.Option("--queue", help="Leave the runs to workers; needs PostgreSQL."),
    ] = False,
    storage: options.Storage = None,
) -> None:
    """Serve teams over HTTP until Ctrl-C or SIGTERM: start, follow, answer and stop runs."""
    with needs_extra("serve", "server"):
        from replan.server.serving import ServeOptions, serve as serve_teams
    if queue:
        with needs_extra("serve --queue", "queue"):
            import_module("replan.workers.queue")
    kept = location_from(storage)
    wanted = ServeOptions(
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
        queue=queue,
    )
    serve_teams(wanted, lambda text: typer.echo(text, err=True))
