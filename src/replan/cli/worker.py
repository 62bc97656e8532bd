"""`replan worker`: takes runs from the queue."""
# ruff: noqa: PLC0415 - the help of a command loads no framework

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from replan.cli.shared import options
from replan.cli.shared.process import as_command, location_from, needs_extra

TeamOption = Annotated[
    Path, typer.Option("--team", "-t", dir_okay=False, exists=True, help="The team file.")
]


@as_command
def worker(
    *,
    team: TeamOption,
    queues: Annotated[
        str, typer.Option("--queues", metavar="A,B", help="The queues, by their names.")
    ] = "runs",
    concurrency: Annotated[
        int, typer.Option("--concurrency", "-c", min=1, max=100, help="Runs at the same time.")
    ] = 4,
    schedules: Annotated[
        Path | None,
        typer.Option(
            "--schedules",
            dir_okay=False,
            exists=True,
            help="A file of runs that cron schedules start.",
        ),
    ] = None,
    grace: options.GraceAtEnd = 10.0,
    lease: Annotated[
        float,
        typer.Option(
            "--lease",
            min=1.0,
            help="Seconds without a sign of life until other workers take over its runs; "
            "the same for all workers.",
        ),
    ] = 30.0,
    metrics: Annotated[
        int | None,
        typer.Option(
            "--metrics",
            metavar="PORT",
            min=1,
            max=65535,
            help="Serve metrics for Prometheus at this port of 127.0.0.1.",
        ),
    ] = None,
    storage: options.Storage = None,
) -> None:
    """Work on the runs in the queue until Ctrl-C or SIGTERM; needs PostgreSQL."""
    with needs_extra("worker", "queue"):
        from replan.workers.open_worker import WorkerWanted, work
    wanted = WorkerWanted(
        team=team,
        queues=[name.strip() for name in queues.split(",")],
        concurrency=concurrency,
        grace=grace,
        lease=lease,
        schedules=schedules,
        metrics=metrics,
        **location_from(storage).storage_options,
    )
    work(wanted, lambda text: typer.echo(text, err=True))
