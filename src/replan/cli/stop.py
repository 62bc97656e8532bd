"""`replan stop`: stop a run, whichever process works on it."""
# ruff: noqa: PLC0415 - the help of a command loads no framework

import typer

from replan.cli.shared import options
from replan.cli.shared.process import as_command, location_from


@as_command
async def stop(run_id: options.Run, *, storage: options.Storage = None) -> None:
    """Stop a run in any process: running steps may end, and the run can continue later."""
    from replan.cli.shared.steered import steer
    from replan.cli.user_files.order_signature import user_name
    from replan.cli.user_files.storage_location import short

    async with steer(run_id, location_from(storage)) as (runtime, run):
        await runtime.stop(run.run_id, by=user_name())
        outcome = (await runtime.get(run.run_id)).outcome
    how = "is asked to stop" if outcome == "running" else f"is not at work: {outcome}"
    typer.echo(f"run {short(run.run_id)} {how}")
