"""A runtime that works on no run here, and records what people ask of runs."""

from typing import NoReturn

from replan.base.errors import InputError
from replan.runs.run_at_work import Resources, RunJob
from replan.runs.runs_at_work import RunsAtWork
from replan.runs.service import Runtime


class RecordingRuns(RunsAtWork):
    """Puts answers, stops, edits and messages on record, and refuses all other work."""

    def __init__(self, resources: Resources, why: str) -> None:
        super().__init__(resources)
        self._why = why

    def check_can_work(self) -> NoReturn:
        """Refuse work."""
        raise InputError(self._why)

    async def start_or_join(self, job: RunJob, *, is_new: bool = False) -> None:
        """Leave a run whose answers are on record to whoever resumes it."""
        if is_new or not job.gives_way:
            self.check_can_work()


def recording_beside(runtime: Runtime, why: str) -> Runtime:
    """A runtime for the same runs that only records what is asked of them, and says why."""
    return Runtime(runtime.resources, RecordingRuns(runtime.resources, why))
