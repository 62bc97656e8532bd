"""Remove runs that are kept."""

import asyncio
import sys

import typer

from replan.cli.cells import one_line
from replan.cli.holding import holding
from replan.cli.keeping import Place, found, opened, short
from replan.errors import InputError
from replan.ports.runs import RunRecord


def remove_runs(prefixes: list[str], place: Place, *, yes: bool) -> int:
    """Remove runs, after the person has agreed.

    Raises:
        UsageError: A run is not there, is at work, or nobody can be asked.
        StorageError: They cannot be removed.
    """
    return asyncio.run(_removed(prefixes, place, yes=yes))


async def _removed(prefixes: list[str], place: Place, *, yes: bool) -> int:
    async with opened(place) as storage:
        # All are found before the first is removed.
        records = {
            record.run_id: record
            for record in [await found(storage.runs, prefix) for prefix in prefixes]
        }
        if not yes and not _agreed(list(records.values())):
            typer.echo("Nothing was removed.")
            return 0
        for run_id in records:
            with holding(run_id):
                await storage.runs.remove(run_id)
            typer.echo(f"removed {short(run_id)}")
    return 0


def _agreed(records: list[RunRecord]) -> bool:
    if not sys.stdin.isatty():
        raise InputError("What is removed is gone. Say that you mean it with --yes.")
    for record in records:
        typer.echo(f"{short(record.run_id)}  {record.outcome}  {one_line(record.title)}")
    what = "this run" if len(records) == 1 else f"these {len(records)} runs"
    return typer.confirm(f"Remove {what}, with all that is kept?")
