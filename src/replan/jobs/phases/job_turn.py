"""A turn of a job: the user's message, read once, and its changes."""

from collections.abc import Sequence
from datetime import date

from pydantic import JsonValue

from replan.base.texts.storable import storable_text
from replan.base.values import same
from replan.jobs.corrections import merge_values
from replan.jobs.extraction.port import Extracted, JobMessage, Wanted
from replan.jobs.job import CONFIRMATION, Job
from replan.jobs.phases.collector import REOPENED, InformationCollector
from replan.jobs.phases.tracker import ProgressTracker
from replan.jobs.sayings import joined, say
from replan.jobs.spec.job_spec import JobSpec
from replan.jobs.spec.slot import ValidationIssue


class ProcessInput:
    """The messages of a turn of a job. They are read once, and their values count once."""

    def __init__(
        self, collector: InformationCollector, messages: Sequence[JobMessage], today: date
    ) -> None:
        self.message = newest_user_text(messages)
        self.messages = messages
        self._collector, self._today = collector, today
        self._found: Extracted | None = None
        self.is_applied = False
        self.progressed = False  # whether something that it says got the job anywhere
        self.understood: tuple[str, ...] = ()  # the slots that it gave a value

    async def extracted(self, job: Job) -> Extracted:
        """What was found in it."""
        if self._found is None:
            self._found = Extracted()
            if self.message:
                wanted = Wanted(
                    spec=self._collector.spec,
                    job=job,
                    said=self.message,
                    messages=self.messages,
                    today=self._today,
                )
                self._found = await self._collector.extractor.extract(wanted)
        return self._found

    async def extracted_once(self, job: Job) -> Extracted:
        """What was found in it, the first time; then nothing."""
        if self.is_applied:
            return Extracted()
        found = await self.extracted(job)
        self.is_applied = True
        return found


def newest_user_text(messages: Sequence[JobMessage]) -> str:
    """The user's messages since the assistant's last one."""
    texts: list[str] = []
    for message in reversed(messages):
        if message.role == "assistant":
            break
        if message.role == "user" and message.content.strip():
            texts.append(message.content.strip())
    return "\n".join(reversed(texts))


async def apply_message(
    spec: JobSpec, tracker: ProgressTracker, job: Job, turn: ProcessInput
) -> tuple[Job, bool | None]:
    """Return the job after a message, and whether the user confirmed what the job showed.

    Unwanted values are recorded, and left out. It is None where the user said neither yes nor no.
    """
    found = await turn.extracted_once(job)
    before, switched = job, False
    if found.command and found.command != job.command and spec.command(found.command) is not None:
        job, switched = with_command(spec, job, found.command), True
    names = spec.slots_of(job.command)
    given = {name: each for name, each in found.values.items() if name in names}
    given = _without_repeated_secrets(spec, given)
    dropped = (*found.dropped, *(name for name in found.values if name not in names))
    merge = merge_values(spec, names, job.collected_info, given, job.language)
    turn.understood += tuple(name for name in names if name in given and name in merge.values)
    turn.progressed |= switched or tracker.has_progressed(job, merge.values)
    is_changed = switched or not same(merge.values, before.collected_info)
    job = job.replace(
        collected_info=merge.values,
        validation_errors=merge.issues,
        remarks=(*job.remarks, *_reopened(spec, job, merge.changed, merge.reopened)),
        corrections=job.corrections + len(merge.changed) + switched,
        plan=None if is_changed else job.plan,
        confirmed="" if is_changed else job.confirmed,
    )
    if given or dropped or switched or found.trouble:
        job = job.noted("heard", found.trouble, slots=tuple(given), dropped=_short(dropped))
    # Only who was shown the values confirms them.
    was_shown = before.asked.names == (CONFIRMATION,) and not (is_changed or merge.issues)
    return job, found.confirmed if was_shown else None


def _without_repeated_secrets(spec: JobSpec, given: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """The values without free texts that repeat the text of a secret slot."""
    secrets = [v for name, v in given.items() if spec.slot(name).secret and isinstance(v, str)]
    return {
        name: value
        for name, value in given.items()
        if spec.slot(name).secret
        or not spec.slot(name).is_free
        or not any(secret in str(value) for secret in secrets)
    }


def with_command(spec: JobSpec, job: Job, command: str) -> Job:
    """Return a job with another command; the values that the command uses, too, are kept."""
    wanted = spec.command(command)
    names = () if wanted is None else wanted.slots
    kept = {name: each for name, each in job.collected_info.items() if name in names}
    required = () if wanted is None else spec.in_order(wanted.needs)
    return job.replace(command=command, required_info=required, collected_info=kept, plan=None)


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
