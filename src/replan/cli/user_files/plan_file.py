"""Write the plan of a run into a file: what is finished, also of a run that was cut off."""

from collections.abc import Sequence
from pathlib import Path

from replan.base.errors import InputError, ReplanError
from replan.base.texts.files import replace_file
from replan.cli.user_files.storage_location import now
from replan.log.events.types import Event, PlanEvent, SpecialistCompleted, StepsInvalidated
from replan.plan.model import TaskPlan
from replan.runs.reports import with_results
from replan.state.results import ExecutionStatus, SpecialistResult


class PlanFile:
    """The plan's document on disk; it is whole at every moment."""

    def __init__(self, path: Path | None, origin: str = "") -> None:
        """Prepare; without a path nothing is ever written."""
        self.path = path
        self._plan: TaskPlan | None = None
        self._results = dict[str, SpecialistResult]()  # those that came since it was made
        self._origin = origin  # the run that has the whole results
        self._written = ""
        if path is not None and not path.resolve().parent.is_dir():
            raise InputError(
                f"The plan cannot be written to '{path}': there is no such folder. Create it first."
            )

    def follow(self, event: Event) -> None:
        """Take what an event says about the plan; a new state of the plan is written at once."""
        results = self._results.values()
        match event:
            case PlanEvent(plan=TaskPlan() as plan):
                self._plan = plan
                is_open = {step.id for step in plan.open_steps()}
                # What one of several specialists has done well counts in a later round, too.
                kept = [result for result in results if result.status is ExecutionStatus.SUCCESS]
                self._results = {result.key: result for result in kept if result.step_id in is_open}
                self.write()
            case StepsInvalidated():
                again = {rerun.step for rerun in event.reruns}
                self._results = {
                    result.key: result for result in results if result.step_id not in again
                }
            case SpecialistCompleted() if event.result is not None:
                self._results[event.result.key] = event.result
                self._origin = event.run_id
            case _:
                pass

    def recall(self, plan: TaskPlan, results: Sequence[SpecialistResult], run_id: str) -> None:
        """Take over the plan of a run that goes on, and its results."""
        self._plan, self._results = plan, {result.key: result for result in results}
        self._origin = run_id if results else self._origin
        self.write()

    def write(self) -> None:
        """Write the current plan, with everything finished since it was made."""
        if self.path is None or self._plan is None:
            return
        plan = with_results(self._plan, self._results.values(), self._origin, now())
        if plan.content == self._written:
            return
        try:
            replace_file(self.path.resolve(), plan.content.encode("utf-8", "replace"))
        except OSError as error:
            raise ReplanError(f"The plan cannot be written: {error}.") from error
        self._written = plan.content
