"""Write the plan of a run into a file: what is finished, also of a run that was cut off."""

import os
from pathlib import Path

from replan.errors import InputError, ReplanError
from replan.events.types import Event
from replan.plan.model import TaskPlan
from replan.runs.log.plan_so_far import PlanSoFar
from replan.user_files.place import now


class PlanFile:
    """The plan's document on disk; it is whole at every moment."""

    def __init__(self, path: Path | None, origin: str = "") -> None:
        """Prepare; without a path nothing is ever written."""
        self.path = path
        self._so_far = PlanSoFar(origin)
        self._written = ""
        if path is not None and not path.resolve().parent.is_dir():
            raise InputError(
                f"The plan cannot be written to '{path}': there is no such folder. Create it first."
            )

    def follow(self, event: Event) -> None:
        """Take what an event says about the plan; a new state of the plan is written at once."""
        if self._so_far.follow(event):
            self.write()

    def plan(self) -> TaskPlan | None:
        """The newest plan, sealed, with everything finished since; None if there is none yet."""
        return self._so_far.plan(now())

    def write(self) -> None:
        """Write the current plan."""
        plan = self.plan()
        if self.path is None or plan is None or plan.content == self._written:
            return
        try:
            replace_file(self.path, plan.content.encode("utf-8", "replace"))
        except OSError as error:
            raise ReplanError(f"The plan cannot be written: {error}.") from error
        self._written = plan.content


def replace_file(path: Path, content: bytes) -> None:
    """Put a whole new file in place of an old one, or raise and leave the old one as it is."""
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
