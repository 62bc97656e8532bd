"""`replan runs`: list the runs that are kept."""
# ruff: noqa: PLC0415 - the help of a command loads no framework

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from replan.cli.options import LabelOption, StorageOption
from replan.cli.process import end_with, place
from replan.cli.views.cells import cut, one_line, padded

if TYPE_CHECKING:
    from replan.cli.kept.place import Place
    from replan.runs.looking import RunView

_NONE = "No run is kept here. `replan run` begins one.\n"
_NONE_OF_THESE = "No run that is kept here has these labels. `replan runs` lists all.\n"


def runs(
    *,
    most: Annotated[
        int, typer.Option("--most", "-n", min=1, help="How many, the newest first.")
    ] = 20,
    label: LabelOption = None,
    storage: StorageOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a line of JSON for each.")] = False,
) -> None:
    """List the runs that are kept, the newest first; with labels, those that have all of them."""

    def listed() -> int:
        from replan.cli.labels import labels_in

        wanted = labels_in(label or [])
        return list_runs(most, place(storage), sys.stdout, labels=wanted, as_json=as_json)

    end_with(listed)


def list_runs(
    most: int, place: Place, output: TextIO, *, labels: Mapping[str, str], as_json: bool
) -> int:
    """Write a table of the newest runs, or a line of JSON for each."""
    found = asyncio.run(_found(most, place, labels))
    if as_json:
        output.write("".join(f"{json.dumps(_record(run))}\n" for run in found))
    elif found:
        width = shutil.get_terminal_size((100, 24)).columns - 1 if output.isatty() else None
        output.write("".join(f"{line}\n" for line in _table(found, width)))
    else:
        output.write(_NONE_OF_THESE if labels else _NONE)
    return 0


async def _found(most: int, place: Place, labels: Mapping[str, str]) -> list[RunView]:
    from replan.assembly import viewer
    from replan.cli.kept.place import now, opened
    from replan.runs.looking import seen

    async with opened(place) as storage:
        graph = viewer(storage)
        records = await storage.runs.recent(most, labels)
        return [await seen(graph, storage, record, now()) for record in records]


def _record(run: RunView) -> dict[str, object]:
    done, total = run.progress
    record = run.record
    return {
        "run_id": record.run_id,
        "started_at": record.started_at.isoformat(),
        "updated_at": record.updated_at.isoformat(),
        "outcome": run.outcome,
        "labels": record.labels,
        "steps_done": done,
        "steps": total,
        "title": record.title,
    }


def _table(runs: list[RunView], width: int | None) -> list[str]:
    from replan.cli.kept.place import short

    rows = [("run", "began", "outcome", "steps", "title")]
    rows += [
        (
            short(run.record.run_id),
            when(run.record.started_at),
            run.outcome,
            "{}/{}".format(*run.progress) if run.plan else "-",
            one_line(run.record.title),
        )
        for run in runs
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    lines = [
        "  ".join([*(padded(cell, wide) for cell, wide in zip(row, widths, strict=False)), row[4]])
        for row in rows
    ]
    return [line.rstrip() if width is None else cut(line.rstrip(), width) for line in lines]


def when(moment: datetime) -> str:
    """A time as people here read it, to the minute."""
    return moment.astimezone().strftime("%Y-%m-%d %H:%M")
