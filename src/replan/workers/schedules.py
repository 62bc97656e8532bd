"""Runs that begin by themselves: when, and what they are to do."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from croniter import croniter
from pydantic import Field, TypeAdapter, ValidationError, field_validator

from replan.declared.files import text_of
from replan.declared.yaml_source import read_yaml
from replan.errors import ConfigurationError, TeamFileError
from replan.runs.service import Runtime
from replan.values import Value
from replan.workers.queue import Queue
from replan.workers.queued_runtime import QueuedWorks
from replan.workers.run_jobs import GivenBack

_FIELDS = 5
_NAME = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,39}$"


class Schedule(Value):
    """A run that begins by itself.

    Attributes:
        name: Its name; its runs are named `NAME-TIME`.
        cron: When: minute, hour, day of the month, month, day of the week; in UTC.
        task: What it is to do.
        labels: The labels of its runs, such as `priority`.
    """

    name: str = Field(pattern=_NAME)
    cron: str
    task: str = Field(min_length=1)
    labels: dict[str, str] = Field(default_factory=dict)

    @field_validator("cron")
    @classmethod
    def _is_cron(cls, given: str) -> str:
        if len(given.split()) != _FIELDS or not croniter.is_valid(given):
            raise ValueError("write five fields, such as `0 7 * * 1-5`")
        return given


def read_schedules(path: Path) -> list[Schedule]:
    """Read a file of schedules: a list in YAML.

    Raises:
        TeamFileError: It cannot be read.
        ConfigurationError: It has a mistake.
    """
    content = read_yaml(text_of(path, TeamFileError, "Check the path.")).value
    fix = "Write a list whose entries have name, cron and task."
    try:
        found = TypeAdapter(list[Schedule]).validate_python(content)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(["schedules", *map(str, first["loc"])])
        raise ConfigurationError(field, first["input"], first["msg"], fix) from error
    names = [each.name for each in found]
    for name in names:
        if names.count(name) > 1:
            raise ConfigurationError("schedules", name, "Two have this name.", "Change one.")
    return found


def entered(schedules: Sequence[Schedule], queue: Queue, runtime: Runtime, own: str) -> None:
    """Have the queue begin a run for each time of each schedule; of all workers, one does it."""
    works = QueuedWorks(runtime.bench, queue, own.rpartition(":")[2])
    queued = Runtime(runtime.bench, works)
    for schedule in schedules:
        _enter(schedule, queue, queued, own)


def _enter(schedule: Schedule, queue: Queue, queued: Runtime, own: str) -> None:
    kind = f"schedule:{schedule.name}"

    async def begun(timestamp: int, **_: Any) -> None:
        at = datetime.fromtimestamp(timestamp, UTC)
        run_id = f"{schedule.name}-{at:%Y%m%dT%H%M}"
        await queued.start(schedule.task, run_id=run_id, labels=schedule.labels)

    # The highest priority: it only puts a run into the queue.
    task = queue.app.task(name=kind, queue=own, priority=900_000_000, retry=GivenBack())(begun)
    queue.app.periodic(cron=schedule.cron, periodic_id=schedule.name)(task)
