"""`replan edit`: edit the plan of a run at work."""
# ruff: noqa: PLC0415 - the help of a command loads no framework

from pathlib import Path
from typing import Annotated

import typer

from replan.cli.shared import options
from replan.cli.shared.process import as_command, location_from


@as_command
async def edit(
    run_id: options.Run,
    *,
    plan: Annotated[
        Path | None,
        typer.Option(
            dir_okay=False, exists=True, help="The edited document; by default your editor opens."
        ),
    ] = None,
    version: Annotated[
        int | None,
        typer.Option(min=1, help="The version of the plan that the document was made from."),
    ] = None,
    storage: options.Storage = None,
) -> int:
    """Edit the plan of a run in any process: steps that have not begun follow it.

    Steps at work end as usual, and the edit becomes a new version of the plan. The exit code is 0
    if the run has taken note of the edit, and 2 if the edit is refused.
    """
    from replan.cli.shared.steered import edited_document, steer
    from replan.cli.user_files.order_signature import user_name

    async with steer(run_id, location_from(storage)) as (runtime, run):
        text, made_from = await edited_document(await runtime.get(run.run_id), plan, version)
        await runtime.edit_plan(run.run_id, text, version=made_from, by=user_name())
        return await run.outcome()
