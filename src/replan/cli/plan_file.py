"""Write the plan of a run into a file: what is finished, also of a run that was broken off."""

import os
from datetime import UTC, datetime
from pathlib import Path

from replan.errors import InputError, ReplanError
from replan.events.types import Event, PlanCreated, PlanUpdated, SpecialistCompleted
from replan.nodes.result_collector import settle_round
from replan.plan.markdown.seal import sealed
from replan.plan.model import TaskPlan
from replan.state.enhanced import EnhancedState
from replan.state.results import Assignment, ExecutionStatus, SpecialistResult


class PlanFile:
    """The plan's document on disk; it is whole at every moment."""

    def __init__(self, path: Path | None, origin: str = "") -> None:
        """Prepare; without a path nothing is ever written.

        Args:
            path: The file.
            origin: The run that has the whole results of the plan that was handed in.

        Raises:
            InputError: The file cannot be written where it is.
        """
        self.path = path
        self._plan: TaskPlan | None = None
        self._origin = origin
        self._results: dict[str, SpecialistResult] = {}
        self._written = ""
        if path is not None and not path.resolve().parent.is_dir():
            raise InputError(
                f"The plan cannot be written to '{path}': there is no such folder. Make it first."
            )

    def follow(self, event: Event) -> None:
        """Take what an event says of the plan; a new state of the plan is written at once."""
        if isinstance(event, PlanCreated | PlanUpdated):
            self._plan = event.plan
            is_open = {step.id for step in event.plan.open_steps()}
            # What one of several specialists has done well counts in a later round too.
            self._results = {
                key: result
                for key, result in self._results.items()
                if result.step_id in is_open and result.status is ExecutionStatus.SUCCESS
            }
            self.write()
        elif isinstance(event, SpecialistCompleted):
            self._results[event.result.key] = event.result
            self._origin = event.run_id

    def write(self) -> None:
        """Write the plan as it is now.

        Raises:
            ReplanError: The file cannot be written.
        """
        plan = self.plan()
        if self.path is None or plan is None or plan.content == self._written:
            return
        try:
            replace_file(self.path, plan.content.encode("utf-8", "replace"))
        except OSError as error:
            raise ReplanError(f"The plan cannot be written: {error}.") from error
        self._written = plan.content

    def plan(self) -> TaskPlan | None:
        """The newest plan, sealed, with what was finished since; none before there is one."""
        if self._plan is None:
            return None
        state: EnhancedState = {
            "current_round": 0,
            "current_specialist_results": {
                key: result.replace(round=0) for key, result in self._results.items()
            },
            "dispatched": [
                Assignment(step_id=step_id, specialist=name)
                for step_id, names in self._seats().items()
                for name in names
            ],
        }
        return sealed(settle_round(self._plan, state, datetime.now(UTC)), self._origin)

    def _seats(self) -> dict[int, list[str]]:
        """The specialists of each step that has results: those who answered, and those named."""
        seats: dict[int, list[str]] = {}
        for result in self._results.values():
            seats.setdefault(result.step_id, []).append(result.specialist_name)
        steps = (self._plan or TaskPlan()).by_id
        for step_id, names in seats.items():
            known = {name.casefold() for name in names}
            named = steps[step_id].specialists if step_id in steps else ()
            names += [name for name in named if name.casefold() not in known]
        return {step_id: names for step_id, names in seats.items() if step_id in steps}


def replace_file(path: Path, content: bytes) -> None:
    """Put a whole new file in the place of an old one, or leave the old one as it is.

    Raises:
        OSError: The file cannot be written.
    """
    target = path.resolve()
    beside = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with beside.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            beside.chmod(target.stat().st_mode)
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)
