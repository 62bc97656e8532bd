"""`replan diff`: two runs side by side."""
# ruff: noqa: PLC0415 - the help of a command loads no framework

from __future__ import annotations

import json
import shutil
import sys
from typing import Annotated

import typer

from replan.cli.shared import options
from replan.cli.shared.process import as_command, location_from

_RUN = typer.Argument(
    help="The id of a run or a prefix of it, `last`, or the file of an export.",
)
_WIDE = 100


@as_command
async def diff(
    run_a: Annotated[str, _RUN],
    run_b: Annotated[str, _RUN],
    *,
    storage: options.Storage = None,
    as_json: options.Json = False,
) -> None:
    """Compare two runs: outcome, time, tokens and cost, then plan, results and answer."""
    from replan.base.texts.signs import harmless
    from replan.cli.user_files.whole import load_run
    from replan.views.run.compared import compared, comparison_record

    location = location_from(storage)
    one, other = await load_run(run_a, location), await load_run(run_b, location)
    if as_json:
        typer.echo(json.dumps(comparison_record(one, other), default=str))
        return
    width = shutil.get_terminal_size((_WIDE, 24)).columns if sys.stdout.isatty() else _WIDE
    sys.stdout.write(harmless("".join(f"{line}\n" for line in compared(one, other, width))))
