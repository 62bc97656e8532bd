"""The phase that a job should be in by its values, and what is reset on the way back."""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from replan.jobs.job import Job, JobPhase

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class PhaseRule:
    """A condition under which a job belongs in a phase.

    Attributes:
        target_phase: The phase.
        condition: Whether the job belongs there.
        priority: Of several rules that hold, the one with the largest number decides.
        reason: Why, in words.
    """

    target_phase: JobPhase
    condition: Callable[[Job], bool]
    priority: int
    reason: str


def is_complete(job: Job) -> bool:
    """Whether a job has all that its command needs.

    Until there is a plan, the collected information is judged; then each item of the plan.
    """
    if not job.command:
        return False
    if job.plan is None:
        return not job.missing_info
    if job.plan.command != job.command or not job.plan.items:
        return False
    return all(
        item.get(name) not in (None, "", [], {})
        for item in job.plan.items
        for name in job.required_info
    )


DEFAULT_RULES = (
    PhaseRule(
        target_phase=JobPhase.INTENT_RECOGNITION,
        condition=lambda job: not job.command,
        priority=100,
        reason="the command is not recognised, so the intent must be recognised again",
    ),
    PhaseRule(
        target_phase=JobPhase.INFORMATION_COLLECTION,
        condition=lambda job: bool(job.command) and not is_complete(job),
        priority=90,
        reason="information is missing, so more must be collected",
    ),
    PhaseRule(
        target_phase=JobPhase.INFORMATION_COLLECTION,
        condition=lambda job: bool(job.validation_errors),
        priority=85,
        reason="the validation failed, so information must be collected again or corrected",
    ),
    PhaseRule(
        target_phase=JobPhase.PLAN_GENERATION,
        condition=lambda job: is_complete(job) and (job.plan is None or not job.plan.id),
        priority=80,
        reason="the information is complete, and the plan has no id yet",
    ),
)
"""The rules of every job without rules of its own."""


class PhaseCorrector:
    """Corrects the phase of a job by its rules, which are immutable."""

    def __init__(self, rules: Iterable[PhaseRule] = DEFAULT_RULES) -> None:
        """Sort the rules; of two with one priority the first one counts."""
        self.rules = tuple(sorted(rules, key=lambda rule: -rule.priority))

    def correct_phase(self, job: Job) -> tuple[JobPhase, bool]:
        """The phase that a job should be in, and whether that is a change.

        The first rule that holds decides. A job that is over stays as it is.
        """
        rule = self._deciding(job)
        if rule is None or rule.target_phase is job.phase:
            return job.phase, False
        facts = {"from": job.phase, "to": rule.target_phase, "reason": rule.reason}
        _log.info("the phase of a job was corrected", extra=facts)
        return rule.target_phase, True

    def validate_phase_prerequisites(self, job: Job, target: JobPhase) -> tuple[bool, list[str]]:
        """Whether a job may be in a phase, and everything that is missing for it."""
        issues: list[str] = []
        if target in _WITH_COMMAND and not job.command:
            issues.append("the command is not recognised")
        if target is JobPhase.PLAN_GENERATION and not is_complete(job):
            issues.append("the information of the plan is incomplete")
        if target is JobPhase.EXECUTION and (job.plan is None or not job.plan.id):
            issues.append("the execution plan is missing")
        return not issues, issues

    def get_rollback_reason(self, job: Job, suggested: JobPhase) -> str:
        """Why a job goes back to a phase: the reason of the rule that decides; else empty."""
        rule = self._deciding(job)
        return rule.reason if rule is not None and rule.target_phase is suggested else ""

    def corrected(self, job: Job) -> Job:
        """Return the job in the phase that it should be in, reset if that is on the way back."""
        phase, is_changed = self.correct_phase(job)
        if not is_changed:
            return job
        reason = self.get_rollback_reason(job, phase)
        is_back = phase.comes_before(job.phase)
        job = job.replace(phase=phase).noted("corrected", reason)
        return reset(job, phase) if is_back else job

    def _deciding(self, job: Job) -> PhaseRule | None:
        if job.is_over:
            return None
        return next((rule for rule in self.rules if rule.condition(job)), None)


def reset(job: Job, target: JobPhase) -> Job:
    """Return a job as it is after it went back to a phase: nothing stale is left in it.

    Back to the intent, all that hangs on the command goes. Back to the collection, the values go
    that the errors name, and their texts are kept for the next question. Back to the plan, its id
    goes.
    """
    match target:
        case JobPhase.INTENT_RECOGNITION:
            cleared = job.replace(
                command="",
                plan=None,
                confirmed="",
                required_info=(),
                collected_info={},
                validation_errors=(),
                remarks=(),
            )
        case JobPhase.INFORMATION_COLLECTION:
            wrong = {issue.field for issue in job.validation_errors}
            kept = {name: value for name, value in job.collected_info.items() if name not in wrong}
            cleared = job.replace(
                plan=None,
                collected_info=kept,
                validation_errors=(),
                remarks=(*job.remarks, *job.validation_errors),
            )
        case JobPhase.PLAN_GENERATION:
            plan = None if job.plan is None else job.plan.replace(id="")
            cleared = job.replace(plan=plan, validation_errors=())
        case _:
            return job
    _log.info("a job was reset", extra={"target_phase": target, "job_id": job.id})
    return cleared.noted("reset", target)


_WITH_COMMAND = (
    JobPhase.INFORMATION_COLLECTION,
    JobPhase.PLAN_GENERATION,
    JobPhase.EXECUTION,
)
