"""The work of `replan retry` and `replan skip`: change one step, then continue the run."""
# ruff: noqa: PLC0415 - the help of a command loads no framework

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from replan.cli.shared.process import end_with

if TYPE_CHECKING:
    from replan.cli.shared.site import Site


def correct(
    action: Literal["retry", "skip"],
    run_id: str,
    step: int,
    site: Callable[[], Site],
    *,
    limit: list[str],
    team: Path | None,
    repeat_effects: bool = False,
) -> None:
    """Correct a step of a kept run, continue, and end with the exit code of `replan run`."""

    def corrected() -> int:
        from replan.cli.shared.carry_on import ResumeRequest, carry_on
        from replan.runs.continued.correcting import Correction
        from replan.user_files.order_signature import own_name
        from replan.user_files.orders import limits_of

        request = ResumeRequest(
            run=run_id,
            limits=limits_of(limit),
            changes={} if team is None else {"team": team},
            correction=Correction(action=action, step=step, by=own_name()),
            repeat_effects=repeat_effects,
        )
        return carry_on(request, site())

    end_with(corrected)
