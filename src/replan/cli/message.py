"""`replan message`: tell the host of a run at work something."""
# ruff: noqa: PLC0415 - the help of a command loads no framework

from typing import Annotated

import typer

from replan.cli.shared import options
from replan.cli.shared.process import as_command, location_from


@as_command
async def message(
    run_id: options.Run,
    text: Annotated[str, typer.Argument(help="What the host should know.")],
    *,
    storage: options.Storage = None,
) -> int:
    """Tell the host of a run something, such as "also compare 2023"; it can revise the plan.

    Steps at work end as usual, then the host judges with the message. The exit code is 0 if the
    run has taken note of the message, and 2 if the message is refused.
    """
    from replan.cli.shared.steered import steer
    from replan.cli.user_files.order_signature import user_name

    async with steer(run_id, location_from(storage)) as (runtime, run):
        await runtime.send_message(run.run_id, text, by=user_name())
        return await run.outcome()
