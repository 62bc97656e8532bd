"""Where the terminal stores its runs: by default a SQLite file of the user."""

from __future__ import annotations

import re
import shlex
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from platformdirs import user_data_path

from replan.base.errors import InputError, StorageError
from replan.cli.user_files.named import LAST, MEMORY

if TYPE_CHECKING:
    from replan.ports.run_book import RunBook, RunRecord
    from replan.ports.storage import Storage

_PASSWORD = re.compile(r"(?i)([?&])\w*password=[^&]*&?")
_TOLD = 3
SHORT = 8
"""Characters of a run's id that people are shown."""


@dataclass(frozen=True)
class StorageLocation:
    """Where runs are stored, and what that needs."""

    where: str = field(repr=False)  # `memory`, the path of a SQLite file, or a PostgreSQL address
    # What encrypts the texts there; none: nothing does.
    key: str | None = field(default=None, repr=False)
    # What a command line adds to name it again; empty where the shell or nothing names it. A
    # password is not in it.
    option: str = ""
    # Days for which prompts and other texts of events are kept; None: without end.
    keep_days: float | None = None

    @property
    def outlives(self) -> bool:
        """Whether a run that is stored there outlives the process."""
        return self.where != MEMORY

    @property
    def address(self) -> str:
        """The location as `open_storage` takes it."""
        return self.where if self.outlives else ":memory:"

    @property
    def storage_options(self) -> dict[str, Any]:
        """The location, its key, and how long texts are kept, as `open_storage` takes them.

        Raises:
            InputError: It is a file in a folder that does not exist.
        """
        _check_folder(self)
        return {"storage": self.address, "key": self.key, "keep_days": self.keep_days}

    @property
    def file(self) -> Path | None:
        """The SQLite file; None: it is another storage."""
        is_file = self.outlives and "://" not in self.where
        return Path(self.where).expanduser() if is_file else None


def location_of(option_value: str | None, environment: Mapping[str, str]) -> StorageLocation:
    """Choose by the option, then by `REPLAN_STORAGE`, then the file in the user's data folder."""
    where = option_value or environment.get("REPLAN_STORAGE") or str(_own_file())
    key = environment.get("REPLAN_STORAGE_KEY") or None
    option = f" --storage {shlex.quote(_without_password(option_value))}" if option_value else ""
    return StorageLocation(where, key, option, _days(environment.get("REPLAN_KEEP_DAYS", "")))


def _days(value: str) -> float | None:
    try:
        return float(value) if value.strip() else None
    except ValueError as error:
        raise InputError(
            f"REPLAN_KEEP_DAYS={value} is not a number of days. Set it to a number such as 30."
        ) from error


@asynccontextmanager
async def open_location(location: StorageLocation) -> AsyncGenerator[Storage]:
    """Open the storage at a location.

    Raises:
        InputError: It cannot be opened, or is a file in a folder that does not exist.
    """
    _check_folder(location)
    # It loads a framework, and who only names a location need not.
    from replan.storage.opening import open_storage  # noqa: PLC0415

    async with AsyncExitStack() as stack:
        try:
            storage = await stack.enter_async_context(
                open_storage(location.address, key=location.key, keep_days=location.keep_days)
            )
        except StorageError as error:
            raise InputError(str(error)) from error
        yield storage


@asynccontextmanager
async def open_existing_location(location: StorageLocation) -> AsyncGenerator[Storage]:
    """Open a location for reading: a named storage is not created.

    Raises:
        InputError: There is no such file.
    """
    _check_exists(location)
    async with open_location(location) as storage:
        yield storage


def short(run_id: str) -> str:
    """A run's id as people see it."""
    return run_id[:SHORT]


async def find_run(book: RunBook, prefix: str) -> RunRecord:
    """The only run whose id has this prefix; `last` is the one that began last."""
    if prefix == LAST:
        runs = await book.recent(1)
    else:
        runs = await book.find(prefix) if prefix else ()
    newest = () if runs else [short(run.run_id) for run in await book.recent(_TOLD)]
    run_id = only_id("run", prefix, [run.run_id for run in runs], newest)
    return next(run for run in runs if run.run_id == run_id)


def only_id(kind: str, prefix: str, ids: Sequence[str], newest: Sequence[str]) -> str:
    """The only id of some, or the one among them that is all of the prefix.

    Args:
        kind: What has the ids: `run` or `session`.
        prefix: How the id begins that is meant.
        ids: Those that begin so.
        newest: Those that are named where there is none.

    Raises:
        InputError: There is none, or more than one.
    """
    match [each for each in ids if each == prefix] or ids:
        case [one]:
            return one
        case []:
            command = {"run": "replan runs", "session": "replan sessions list"}[kind]
            all_ids = f"The newest: {', '.join(newest)}; `{command}` lists all."
            there = all_ids if newest else f"No {kind}s are stored."
            raise InputError(f"There is no {kind} '{prefix}'. {there}")
        case several:
            told = ", ".join(_distinct(several))
            problem = f"More than one {kind} begins with '{prefix}': {told}"
            raise InputError(f"{problem}. Write more of its characters.")


async def check_idle(storage: Storage, run: RunRecord) -> None:
    """Check that no process works on a run."""
    if await storage.works_on(run):
        raise InputError(
            f"Another process works on run {short(run.run_id)}. Wait until it ends, or stop it."
        )


def now() -> datetime:
    """The time, with its zone."""
    return datetime.now(UTC)


def _check_exists(location: StorageLocation) -> None:
    where = location.where.removeprefix("sqlite:///")
    path = Path(where).expanduser()
    if not location.outlives or "://" in where or path == _own_file() or path.exists():
        return
    fix = "Name an existing file; `replan run` creates one."
    raise InputError(f"There is no storage '{_without_password(location.where)}'. {fix}")


def _check_folder(location: StorageLocation) -> None:
    """Check that a named file can be made where it is named: a mistyped folder is not made."""
    where = location.where.removeprefix("sqlite:///")
    file = Path(where).expanduser()
    if not location.outlives or "://" in where or file == _own_file() or file.parent.is_dir():
        return
    fix = "Make it, or name a file in another one."
    raise InputError(f"There is no folder '{file.parent}' for the storage '{file.name}'. {fix}")


def _without_password(where: str) -> str:
    """An address for display: a path unchanged, a database without its password."""
    try:
        password = urlsplit(where).password
    except ValueError:
        return where
    where = where.replace(f":{password}@", "@") if password else where
    return _PASSWORD.sub(r"\1", where)


def own_folder() -> Path:
    """The folder of this user."""
    return user_data_path("replan", appauthor=False)


def _own_file() -> Path:
    return own_folder() / "runs.db"


def _distinct(ids: Sequence[str]) -> list[str]:
    """Ids cut to the length at which all of them differ, eight at least."""
    length = SHORT
    while len({each[:length] for each in ids}) < len(ids):
        length += 1
    return [each[:length] for each in ids[:10]]
