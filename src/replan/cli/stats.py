"""`replan stats`: what the runs of a period took, and how they ended."""
# ruff: noqa: PLC0415 - the help of a command loads no framework

from __future__ import annotations

import json
import sys
from typing import Annotated, Literal

import typer

from replan.cli.shared import options
from replan.cli.shared.options import read_time
from replan.cli.shared.process import as_command, location_from

Axis = Literal["day", "team", "specialist", "tool", "model"]


@as_command
async def stats(
    *,
    by: Annotated[Axis, typer.Option("--by", help="What the runs are added up by.")] = "day",
    since: options.Since = "30d",
    storage: options.Storage = None,
    as_json: options.Json = False,
) -> None:
    """Add up runs, failures, time, tokens and cost by day, team, specialist, tool or model."""
    from replan.assembly.graphs import viewer
    from replan.cli.user_files.storage_location import now, open_existing_location
    from replan.log.period import added_up
    from replan.runs.statuses import MOST_RUNS, runs_since
    from replan.views.period_table import period_lines

    at = now()
    begins = read_time(since, at) if since else None
    async with open_existing_location(location_from(storage)) as opened:
        graph = viewer(opened)
        reports, has_more = await runs_since(begins, opened, lambda _: graph, at)
    sums = added_up(reports, by)
    if as_json:
        typer.echo(json.dumps([row.model_dump() for row in sums]))
        return
    sys.stdout.write("".join(f"{line}\n" for line in period_lines(sums, by)))
    if has_more:
        sys.stderr.write(f"These are the newest {MOST_RUNS:,} runs. Name a later --since.\n")
