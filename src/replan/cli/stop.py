"""`replan stop`: stop a run, whichever process works on it."""
# ruff: noqa: PLC0415 - the help of a command loads no framework

import typer

from replan.cli.shared import options
from replan.cli.shared.process import as_command, location_from


@as_command
async def stop(run_id: options.Run, *, storage: options.Storage = None) -> None:
    """Stop a run in any process: running steps may end, and the run can continue later."""
    from replan.assembly.graphs import viewer
    from replan.assembly.runtime import open_runtime
    from replan.user_files.order_signature import user_name
    from replan.user_files.storage_location import find_run, open_existing_location, short

    async with open_existing_location(location_from(storage)) as kept:
        record = await find_run(kept.runs, run_id)
        async with open_runtime(viewer(kept), storage=kept) as runtime:
            await runtime.stop(record.run_id, by=user_name())
            report = await runtime.get(record.run_id)
    how = "is asked to stop" if report.outcome == "running" else f"is not at work: {report.outcome}"
    typer.echo(f"run {short(record.run_id)} {how}")
