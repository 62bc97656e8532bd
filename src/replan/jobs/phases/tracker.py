"""Whether a job gets anywhere, by the same idea of progress as a plan."""

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from replan.jobs.corrections import NOTHING
from replan.jobs.job import COMMAND, CONFIRMATION, Asked, IntermediateResult, Job, JobPhase
from replan.plan.statuses import gains


@dataclass(frozen=True)
class ProgressTracker:
    """Keeps a job from marking time."""

    max_asks: int  # how often something may be asked for in a row without progress

    def has_progressed(self, job: Job, new_info: Mapping[str, JsonValue]) -> bool:
        """Whether a required slot gets a new value that is not empty."""
        held = [(name, job.collected_info.get(name)) for name in job.required_info]
        new = [
            (name, new_info[name])
            for name in job.required_info
            if new_info.get(name) not in NOTHING
        ]
        return gains(held, new)

    def record_progress(self, job: Job, step: str, result: IntermediateResult) -> Job:
        """Return the job with what an action gave."""
        results = (*job.intermediate_results, result)
        return job.replace(intermediate_results=results).noted("acted", step)

    def is_stuck(self, job: Job, *, progressed: bool) -> bool:
        """Whether the last question had no effect: no progress, and no correction."""
        asked = job.asked
        return not progressed and asked.count > 0 and asked.corrections == job.corrections

    def asking(self, job: Job, names: tuple[str, ...], *, progressed: bool) -> Asked:
        """Count a question; questions without an effect add up, even if they differ."""
        count = job.asked.count if self.is_stuck(job, progressed=progressed) else 0
        return Asked(names=names, count=count + 1, corrections=job.corrections)

    def detect_loop(self, job: Job) -> bool:
        """Whether the number of questions without an effect reached its maximum."""
        return job.asked.count >= self.max_asks

    def suggest_next_action(self, job: Job) -> str:
        """What should happen next, in a few words, for operators."""
        if job.is_over:
            return "nothing: the job is over"
        if not job.command:
            return f"ask for the {COMMAND}"
        if job.missing_info:
            return f"ask for {', '.join(job.missing_info)}"
        if job.phase is JobPhase.EXECUTION and job.asked.names == (CONFIRMATION,):
            return f"ask for the {CONFIRMATION}"
        return f"continue with {job.command}"
