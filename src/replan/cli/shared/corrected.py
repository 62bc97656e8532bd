"""The work of `replan retry` and `replan skip`: change one step, then continue the run."""
# ruff: noqa: PLC0415 - the help of a command loads no framework

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from pathlib import Path

    from replan.cli.shared.site import Site


def correct(
    action: Literal["retry", "skip"],
    run_id: str,
    step: int,
    site: Site,
    limit: list[str] | None,
    team: Path | None,
    *,
    allow_repeat: bool = False,
    timeout: float | None = None,
) -> int:
    """Correct a step of a kept run, continue, and return the exit code of `replan run`."""
    from replan.cli.shared.carry_on import ResumeRequest, carry_on
    from replan.cli.user_files.order_signature import user_name
    from replan.cli.user_files.orders import read_limits
    from replan.runs.continued.correcting import Correction

    request = ResumeRequest(
        run=run_id,
        limits=read_limits(limit or []),
        changes={} if team is None else {"team": team},
        correction=Correction(action=action, step=step, by=user_name(), timeout=timeout),
        allow_repeat=allow_repeat,
    )
    return carry_on(request, site)
