"""A turn of a job: the user's message, read once, its changes, and whether they lead anywhere."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from replan.base.texts.storable import storable_text
from replan.base.values import same
from replan.jobs.corrections import NOTHING, merge_values
from replan.jobs.extraction.port import Extracted, JobMessage
from replan.jobs.job import COMMAND, CONFIRMATION, Asked, IntermediateResult, Job, JobPhase
from replan.jobs.phases.collector import REOPENED
from replan.jobs.sayings import joined, say
from replan.jobs.spec.job_spec import JobSpec
from replan.jobs.spec.slot import ValidationIssue
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


@dataclass
class ProcessInput:
    """The messages of a turn of a job, what was found in them, and what came of it."""

    messages: Sequence[JobMessage]
    message: str  # what the user said since the assistant spoke last
    found: Extracted
    is_heard: bool = False  # whether the job has taken what was found
    confirmed: bool | None = None  # whether the user said yes or no to the plan that was shown
    progressed: bool = False  # whether something that it says got the job anywhere
    understood: tuple[str, ...] = ()  # the slots that it gave a value


def newest_user_text(messages: Sequence[JobMessage]) -> str:
    """The user's messages since the assistant's last one."""
    texts: list[str] = []
    for message in reversed(messages):
        if message.role == "assistant":
            break
        if message.role == "user" and message.content.strip():
            texts.append(message.content.strip())
    return "\n".join(reversed(texts))


def hear(spec: JobSpec, tracker: ProgressTracker, job: Job, turn: ProcessInput) -> Job:
    """Return the job with what was found in a message; unwanted values are left out, on record."""
    turn.is_heard, found, before = True, turn.found, job
    if found.command != job.command and spec.command(found.command) is not None:
        job, turn.progressed = with_command(spec, job, found.command), True
    is_begun = job.command != before.command
    switched = is_begun and bool(before.command)
    names = spec.slots_of(job.command)
    new_values = {name: value for name, value in found.values.items() if name in names}
    new_values = _without_repeated_secrets(spec, new_values)
    dropped = (*found.dropped, *(name for name in found.values if name not in names))
    merge = merge_values(spec, names, job.collected_info, new_values, job.language)
    turn.understood = tuple(name for name in names if name in new_values and name in merge.values)
    turn.progressed |= tracker.has_progressed(job, merge.values)
    is_changed = is_begun or not same(merge.values, before.collected_info)
    job = job.replace(
        collected_info=merge.values,
        validation_errors=merge.issues,
        remarks=(*job.remarks, *_reopened(spec, job, merge.changed, merge.reopened)),
        corrections=job.corrections + len(merge.changed) + switched,
        plan=None if is_changed else job.plan,
        confirmed="" if is_changed else job.confirmed,
    )
    if new_values or dropped or switched or found.trouble:
        job = job.noted("heard", found.trouble, slots=tuple(new_values), dropped=_short(dropped))
    # Only who was shown the values confirms them.
    was_shown = job.phase is JobPhase.EXECUTION and before.asked.names == (CONFIRMATION,)
    if was_shown and not (is_changed or merge.issues):
        turn.confirmed = found.confirmed
    return job


def _without_repeated_secrets(spec: JobSpec, values: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """The values without free texts that repeat the text of a secret slot."""
    secrets = [v for name, v in values.items() if spec.slot(name).secret and isinstance(v, str)]
    return {
        name: value
        for name, value in values.items()
        if spec.slot(name).secret
        or not spec.slot(name).is_free
        or not any(secret in str(value) for secret in secrets)
    }


def with_command(spec: JobSpec, job: Job, command: str) -> Job:
    """Return a job with another command; the values that the command uses, too, are kept."""
    wanted = spec.command(command)
    names = () if wanted is None else wanted.slots
    kept = {name: value for name, value in job.collected_info.items() if name in names}
    return job.replace(
        command=command, required_info=spec.needs_of(command), collected_info=kept, plan=None
    )


def _reopened(
    spec: JobSpec, job: Job, changed: Sequence[str], reopened: Sequence[str]
) -> tuple[ValidationIssue, ...]:
    if not reopened:
        return ()

    def called(names: Sequence[str]) -> str:
        return joined([spec.slot(name).called(job.language) for name in names], job.language)

    text = say("taken_back", job.language, name=called(changed), names=called(reopened))
    return (ValidationIssue(field=reopened[0], message=text, code=REOPENED),)


def _short(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(storable_text(name)[:60] for name in names[:20])
