"""Runs and jobs that begin by themselves: their times and their work."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Self

from croniter import CroniterBadDateError, croniter
from pydantic import Field, TypeAdapter, ValidationError, field_validator, model_validator

from replan.base.declared.yaml_source import read_text, read_yaml
from replan.base.errors import ConfigurationError, DeclaredFileError, ReplanError
from replan.base.values import Value
from replan.log.labels import PRIORITY, QUEUE, TEAM, TENANT, checked_labels
from replan.runs.reads import is_worked_on
from replan.runs.service import Runtime
from replan.workers.queue import RUNS, checked_level, queue_of
from replan.workers.upkeep import Upkeep, UpkeepJobs

MADE_UP_FOR = timedelta(minutes=10)  # how long ago a time may be that still begins its run

# A worker that said that it begins a run, and has not for this long, is dead.
_BEGINS_WITHIN = timedelta(minutes=1)
_LOOK = 30.0  # seconds; a machine that was suspended wakes from a longer sleep too late
_MARGIN = 0.05
_FIELDS = 5
_NAME = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,39}$"

logger = logging.getLogger(__name__)


class Schedule(Value):
    """A run that begins by itself, or a job of upkeep."""

    # Its name; its runs are named `NAME-TIME`, those of a tenant `TENANT.NAME-TIME`.
    name: str = Field(pattern=_NAME)
    cron: str  # when: minute, hour, day of the month, month, day of the week; in UTC
    task: str = ""  # what its runs are to do
    # What is kept up instead: the summaries of threads, or the index of the knowledge.
    upkeep: Upkeep | None = None
    # The labels of its runs, such as `priority` and `tenant`.
    labels: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _does_one_thing(self) -> Self:
        if bool(self.task) == (self.upkeep is not None):
            raise ValueError("give either a task or upkeep: summaries or index")
        return self

    def run_id(self, at: datetime) -> str:
        """The name of its run of a time."""
        tenant = self.labels.get(TENANT, "")
        return f"{tenant}{'.' if tenant else ''}{self.name}-{at:%Y%m%dT%H%M}"

    @field_validator("cron")
    @classmethod
    def _is_cron(cls, cron: str) -> str:
        if len(cron.split()) != _FIELDS or not croniter.is_valid(cron):
            raise ValueError("write five fields, such as `0 7 * * 1-5`")
        try:
            croniter(cron).get_next()
        except CroniterBadDateError as error:
            raise ValueError("there is no such day in any year") from error
        return cron

    def before(self, now: datetime) -> datetime:
        return croniter(self.cron, now.astimezone(UTC)).get_prev(datetime)

    def after(self, now: datetime) -> datetime:
        return croniter(self.cron, now.astimezone(UTC)).get_next(datetime)


def read_schedules(path: Path) -> list[Schedule]:
    """Read a file of schedules: a list in YAML."""
    source = read_yaml(read_text(path, DeclaredFileError, "Check the path."))
    if source.mistakes:
        raise DeclaredFileError(path, source.mistakes)
    fix = "Write a list whose entries have name, cron, and task or upkeep."
    try:
        schedules = TypeAdapter(list[Schedule]).validate_python(source.value)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(["schedules", *map(str, first["loc"])])
        raise ConfigurationError(field, first["input"], first["msg"], fix) from error
    names = [schedule.name for schedule in schedules]
    for name in names:
        if names.count(name) > 1:
            raise ConfigurationError(
                "schedules", name, "Two schedules have this name.", "Change one."
            )
    for schedule in schedules:
        # What would be refused only when its time comes.
        labels = checked_labels(schedule.labels)
        checked_level(labels.get(PRIORITY, "0"))
        queue_of(labels.get(QUEUE, RUNS), "")
    return schedules


async def keep(schedules: Sequence[Schedule], queued: Runtime, upkeep: UpkeepJobs) -> None:
    """Begin the work of schedules at their times, until it is cancelled."""
    begun = dict[str, datetime]()
    while True:
        now = queued.resources.clock()
        begun.update(await begin_due(schedules, queued, begun, upkeep))
        wait = min(
            (schedule.after(now) - queued.resources.clock()).total_seconds()
            for schedule in schedules
        )
        await asyncio.sleep(min(max(wait, 0.0), _LOOK) + _MARGIN)


async def begin_due(
    schedules: Sequence[Schedule],
    queued: Runtime,  # puts the runs into the queue
    begun: Mapping[str, datetime],  # the times that are done, by the names of schedules
    upkeep: UpkeepJobs | None = None,  # puts the other jobs there
) -> dict[str, datetime]:
    """Begin the work of each schedule for its latest time, unless that time is long past."""
    now, more = queued.resources.clock(), dict[str, datetime]()
    for schedule in schedules:
        at = schedule.before(now)
        if at == begun.get(schedule.name) or now - at > MADE_UP_FOR:
            continue
        try:
            if schedule.upkeep is not None and upkeep is not None:
                # A second job finds nothing to do, so it does not matter whether one was there.
                await upkeep.put(schedule.upkeep, schedule.labels)
                is_done = True
            else:
                is_done = await _begin_run(schedule, at, queued)
        except ReplanError as error:
            # The next look does it.
            fields = {"schedule": schedule.name, "error": str(error)}
            logger.warning("schedule did not begin", extra=fields)
        else:
            more |= {schedule.name: at} if is_done else {}
    return more


async def _begin_run(schedule: Schedule, at: datetime, queued: Runtime) -> bool:
    """Begin a run, unless another worker does; return whether nothing is left to do."""
    run_id, resources, team = schedule.run_id(at), queued.resources, schedule.labels.get(TEAM, "")
    record = await resources.runs.get(run_id)
    if record is not None and record.labels.get(TEAM, team) != team:
        # A schedule of another team has this name.
        run_id = f"{run_id}-{team}"
        record = await resources.runs.get(run_id)
    if record is None and not await _is_claimed(run_id, at, queued):
        return False
    # One that is on record without its job was left there by a worker that died.
    is_over = record is not None and record.outcome != "running"
    if not is_over and (record is None or not await is_worked_on(run_id, resources)):
        await queued.start(schedule.task, run_id=run_id, labels=schedule.labels)
    return True


async def _is_claimed(run_id: str, at: datetime, queued: Runtime) -> bool:
    """Whether this worker begins a run: it claimed it first, or the first claimant died."""
    resources = queued.resources
    if resources.storage is None or resources.clock() - at > _BEGINS_WITHIN:
        return True
    claim_id = resources.new_id()
    return await resources.storage.log.note(run_id, "schedule", claim_id) == claim_id
