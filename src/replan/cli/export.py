"""`replan export`: write a run into one file, without secrets, which `show` opens elsewhere."""
# ruff: noqa: PLC0415 - the help of a command loads no framework

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from replan.cli.shared import options
from replan.cli.shared.process import as_command, location_from
from replan.cli.user_files.new_file import check_output, write_out


@as_command
async def export(
    run_id: options.Run,
    *,
    output: Annotated[
        Path | None, options.output_option("The file to write; without it, the run goes to a pipe.")
    ] = None,
    force: options.Force = False,
    storage: options.Storage = None,
) -> None:
    """Export a run as JSON, without secrets; `replan show FILE` opens it anywhere."""
    check_output(output)
    from replan.cli.user_files.storage_location import now
    from replan.cli.user_files.whole import all_texts, load_run
    from replan.runs.travel.exported_run import exported

    text = exported(await load_run(run_id, location_from(storage), all_texts), now())
    write_out(output, text, force=force)
