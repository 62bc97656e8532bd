"""`replan rm`: remove stored runs."""
# ruff: noqa: PLC0415 - the help of a command loads no framework

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from replan.cli.shared import options
from replan.cli.shared.process import as_command, confirm, location_from
from replan.views.cells import one_line

if TYPE_CHECKING:
    from replan.ports.run_book import RunRecord


@as_command
async def rm(
    run_ids: Annotated[list[str], typer.Argument(metavar="RUN...", help="The ids of the runs.")],
    *,
    yes: options.Yes = False,
    storage: options.Storage = None,
) -> None:
    """Remove runs with all their records. A run that is not over can then not continue."""
    from replan.user_files.storage_location import (
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
        if not yes and not _confirm(list(records.values())):
            typer.echo("Nothing was removed.")
            return
        for run_id, record in records.items():
            await check_idle(kept, record)
            await kept.runs.remove(run_id)
            typer.echo(f"removed {short(run_id)}")


def _confirm(records: list[RunRecord]) -> bool:
    from replan.user_files.storage_location import short

    what = "this run" if len(records) == 1 else f"these {len(records)} runs"
    lines = [
        f"{short(record.run_id)}  {record.outcome}  {one_line(record.title)}" for record in records
    ]
    refusal = "Removed runs cannot be restored. Confirm it with --yes."
    return confirm(f"Remove {what} with all their records?", lines, refusal)
