"""`replan runs`: list the stored runs."""
# ruff: noqa: PLC0415 - the help of a command loads no framework

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, TextIO, get_args

import typer

from replan.base.errors import InputError
from replan.cli.shared import options
from replan.cli.shared.options import read_time
from replan.cli.shared.process import as_command, location_from
from replan.runs.usage import Usage
from replan.views.cells import columns, one_line, width_of

if TYPE_CHECKING:
    from replan.cli.user_files.storage_location import StorageLocation
    from replan.log.report import RunReport
    from replan.ports.run_book import RunOutcome, RunRecord
    from replan.ports.storage import Storage

_NONE = "No runs are stored here. `replan run` begins one.\n"
_NONE_OF_THESE = "No run here matches. `replan runs` lists all runs.\n"
_LOOKED_AT, _TOLD = 1_000, 20


@as_command
def runs(
    *,
    most: options.Most = 20,
    label: options.Label = None,
    outcome: Annotated[
        list[str] | None,
        typer.Option(
            "--outcome",
            help="List only runs with this outcome, such as failed or waiting; repeatable.",
        ),
    ] = None,
    since: options.Since = None,
    storage: options.Storage = None,
    as_json: options.JsonRows = False,
) -> None:
    """List the stored runs, newest first, with time and cost; all filters apply."""
    from replan.cli.shared.options import read_labels
    from replan.cli.user_files.storage_location import now

    wanted = RunFilter(
        most=most,
        labels=read_labels(label or []),
        outcomes=_outcomes(outcome or []),
        since=read_time(since, now()) if since else None,
    )
    list_runs(wanted, location_from(storage), sys.stdout, as_json=as_json)


@dataclass(frozen=True, kw_only=True)
class RunFilter:
    """Which runs are listed."""

    most: int
    labels: Mapping[str, str]
    outcomes: Collection[RunOutcome]  # empty: whatever it is
    since: datetime | None

    def takes(self, run: RunReport) -> bool:
        """Whether a run is listed."""
        has_labels = self.labels.items() <= run.labels.items()
        has_outcome = not self.outcomes or run.outcome in self.outcomes
        return has_labels and has_outcome and not (self.since and run.started_at < self.since)


def list_runs(
    wanted: RunFilter, location: StorageLocation, output: TextIO, *, as_json: bool
) -> None:
    """Write a table of the newest runs, or a line of JSON for each."""
    from replan.storage.report_rows import reports_in_file

    # In a file where all of them are over, their states are not needed. A label that no run has is
    # refused by who opens the storage.
    path = None if location.key else location.file
    rows = path and reports_in_file(path, wanted.takes, wanted.most)
    found = rows or asyncio.run(_find(wanted, location))
    if as_json:
        output.write("".join(f"{json.dumps(_record(run))}\n" for run in found))
    elif found:
        heading = ("run", "began", "took", "cost", "outcome", "steps", "team", "title")
        lines = columns([heading, *map(_run_cells, found)], width_of(output))
        output.write("".join(f"{line}\n" for line in lines))
    else:
        has_filters = wanted.labels or wanted.outcomes or wanted.since
        output.write(_NONE_OF_THESE if has_filters else _NONE)


async def _find(wanted: RunFilter, location: StorageLocation) -> list[RunReport]:
    from replan.assembly.graphs import viewer
    from replan.cli.user_files.storage_location import now, open_existing_location
    from replan.runs.reports import read_summary
    from replan.runs.statuses import page_of, records_of

    async with open_existing_location(location) as storage:
        graph, labels = viewer(storage), wanted.labels
        if labels and not await storage.runs.recent(1, labels):
            await _check_labels(labels, storage)

        async def listed(record: RunRecord) -> RunReport | None:
            run = await read_summary(graph, storage, record, now())
            return run if wanted.takes(run) else None

        records = records_of(
            storage.runs, labels=labels, statuses=wanted.outcomes, since=wanted.since
        )
        return (await page_of(records, wanted.most, listed, sys.maxsize))[0]


async def _check_labels(labels: Mapping[str, str], storage: Storage) -> None:
    """Refuse a label that no run has."""
    for name, value in labels.items():
        if not await storage.runs.recent(1, {name: value}):
            newest = await storage.runs.recent(_LOOKED_AT)
            known = dict.fromkeys(f"{n}={v}" for record in newest for n, v in record.labels.items())
            there = ", ".join(list(known)[:_TOLD]) or "none at all"
            raise InputError(f"No run has the label {name}={value}. The newest runs have: {there}.")


def _outcomes(names: list[str]) -> list[Any]:
    from replan.state.outcomes import RunOutcome

    known = get_args(RunOutcome)
    if unknown := [name for name in names if name not in known]:
        raise InputError(f"--outcome {unknown[0]} does not exist. Use one of: {', '.join(known)}.")
    return names


def _record(run: RunReport) -> dict[str, object]:
    from replan.plan.model import StepStatus

    done, total = run.progress
    fields = {"run_id", "started_at", "last_seen_at", "outcome", "team", "labels", "title"}
    return {
        **run.model_dump(mode="json", include={*fields, "origin"}),
        "seconds": run.seconds,
        "steps_done": done,
        "steps_failed": run.count(StepStatus.FAILED),
        "steps": total,
        "usage": Usage.of(run.calls, run.currency).model_dump(),
    }


def _run_cells(run: RunReport) -> tuple[str, ...]:
    from replan.cli.user_files.storage_location import short
    from replan.log.labels import TEAM
    from replan.plan.model import StepStatus
    from replan.views.cells import minute, seconds
    from replan.views.run.overview import money

    done, total = run.progress
    failed = run.count(StepStatus.FAILED)
    # The team has a column.
    labels = " ".join(f"{name}={value}" for name, value in run.labels.items() if name != TEAM)
    origin = f"  (from {short(run.origin)})" if run.origin else ""
    return (
        short(run.run_id),
        minute(run.started_at),
        f"{'at least ' if run.is_killed else ''}{seconds(run.seconds)}",
        money(run.calls, run.currency),
        run.outcome,
        f"{done}/{total}{f', {failed} failed' if failed else ''}" if run.plan else "-",
        one_line(run.team) or "-",
        one_line(f"{run.title}{labels and f'  [{labels}]'}{origin}"),
    )
