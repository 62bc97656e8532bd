"""`replan serve`: teams behind HTTP."""
# ruff: noqa: PLC0415 - the help of a command loads no framework

from pathlib import Path
from typing import Annotated

import typer

from replan.cli.shared import options
from replan.cli.shared.process import as_command, needs_extra


@as_command
@options.with_options("serving", options.Serving)
def serve(
    teams: Annotated[
        list[Path] | None,
        typer.Argument(metavar="TEAM.yaml", help="The team files; by default the default team."),
    ] = None,
    *,
    queue: Annotated[
        bool,
        typer.Option("--queue", help="Leave the runs to workers; needs PostgreSQL."),
    ] = False,
    serving: options.Serving,
) -> None:
    """Serve teams over HTTP until Ctrl-C or SIGTERM: start, follow, answer and stop runs."""
    with needs_extra("serve", "server"):
        from replan.server.serving import ServeOptions, serve as serve_teams
    open_queue = None
    if queue:
        with needs_extra("serve --queue", "queue"):
            from replan.cli.shared.served_queue import open_served_queue as open_queue
    wanted = ServeOptions(teams=teams or [], open_queue=open_queue, **serving.options)
    serve_teams(wanted, lambda text: typer.echo(text, err=True))
