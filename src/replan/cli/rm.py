"""`replan rm`: remove stored runs."""
# ruff: noqa: PLC0415 - the help of a command loads no framework

from __future__ import annotations

from typing import Annotated

import typer

from replan.cli.shared import options
from replan.cli.shared.process import as_command, confirm_loss, location_from
from replan.views.cells import one_line


@as_command
async def rm(
    run_ids: Annotated[list[str], typer.Argument(metavar="RUN...", help="The ids of the runs.")],
    *,
    yes: options.Yes = False,
    storage: options.Storage = None,
) -> None:
    """Remove runs with all their records. A run that is not over can then not continue."""
    from replan.cli.user_files.storage_location import (
        check_idle,
        find_run,
        open_existing_location,
        short,
    )

    async with open_existing_location(location_from(storage)) as kept:
        # All are found before the first is removed.
        records = {
            record.run_id: record
            for record in [await find_run(kept.runs, prefix) for prefix in run_ids]
        }
        lines = [
            f"{short(run_id)}  {record.outcome}  {one_line(record.title)}"
            for run_id, record in records.items()
        ]
        if not yes and not confirm_loss("run", lines):
            typer.echo("Nothing was removed.")
            return
        for run_id, record in records.items():
            await check_idle(kept, record)
            await kept.runs.remove(run_id)
            typer.echo(f"removed {short(run_id)}")
