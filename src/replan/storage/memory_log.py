"""The rows of logs in the memory of the process, for graphs without a storage."""

import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeVar

from replan.base.errors import StorageError
from replan.log.rows import (
    ATTEMPT,
    END,
    RESERVED,
    KeptText,
    LoggedEvent,
    LogRow,
    NewRow,
    Rows,
    Totals,
)
from replan.log.run_log import ACTED, BEGAN, NEXT, TOLD, RunLog
from replan.models.spending.deadline import TIMES

logger = logging.getLogger(__name__)

T = TypeVar("T")

_WHERE = "in memory"
_STAYS = (ATTEMPT, END, RESERVED, ACTED, BEGAN, TIMES, TOLD)
"""What stays of a run that is over: its limits may be raised, its name not be used again."""


class MemoryLogs:
    """The logs of the runs of this process.

    A run that is not over keeps all its rows, however long it waits for a person: they say what
    must not be done twice. There is room for `max_open` of them, so that runs that nobody will go
    on with cannot fill the memory. Beyond it the one that was used longest ago gives way, with a
    warning in the log; continuing it later is an error, not a second run of its work. Of the runs
    that are over, the newest `max_closed` keep their attempts and what they spent.
    """

    where = _WHERE
    take = 0
    outlives_process = False

    def __init__(self, *, max_open: int = 10_000, max_closed: int = 1_000) -> None:
        self._open: OrderedDict[str, _MemoryRows] = OrderedDict()
        self._closed: OrderedDict[str, _MemoryRows] = OrderedDict()
        self._given_up: set[str] = set()
        self._max_open = max_open
        self._max_closed = max_closed

    async def write(self, run_id: str, work: Callable[[Rows], T]) -> T:
        rows = self._rows(run_id)
        done = work(rows)
        if run_id in self._closed:
            if rows.newest_kind == "settled":
                # A call that was abandoned may answer when its run is over, which stays over.
                return done
            del self._closed[run_id]
        self._open[run_id] = rows
        self._open.move_to_end(run_id)
        if len(self._open) > self._max_open:
            self._give_way()
        return done

    async def read(self, run_ids: Collection[str], work: Callable[[Rows], T]) -> dict[str, T]:
        return {run_id: work(self._rows(run_id)) for run_id in run_ids}

    async def forget_texts(self, before: datetime) -> None:
        for rows in (*self._open.values(), *self._closed.values()):
            rows.forget_texts(before)

    async def closed(self, run_id: str) -> None:
        """Forget all of a run that is over but its attempts, and what it spent."""
        rows = self._open.pop(run_id, None)
        if rows is None:
            return
        rows.shrink()
        self._closed[run_id] = rows
        if len(self._closed) > self._max_closed:
            self._closed.popitem(last=False)

    def forget(self, run_id: str) -> None:
        """Forget a run."""
        self._open.pop(run_id, None)
        self._closed.pop(run_id, None)
        self._given_up.discard(run_id)

    def _rows(self, run_id: str) -> "_MemoryRows":
        if run_id in self._given_up:
            raise StorageError(
                _WHERE,
                f"Too many unfinished runs were begun after {run_id}, so the record of its steps "
                "was dropped.",
                "Begin a new run under another name; with `open_storage` no run is dropped.",
            )
        return self._open.get(run_id) or self._closed.get(run_id) or _MemoryRows()

    def _give_way(self) -> None:
        given_up, _ = self._open.popitem(last=False)
        self._given_up.add(given_up)
        logger.warning("forgot a run that is not over", extra={"run_id": given_up})


class _KeptRow(NamedTuple):
    """A row that counts."""

    number: int
    at: float  # the time of the system when it was written
    seq: int | None
    row: NewRow

    def shown(self) -> LogRow:
        at, row = datetime.fromtimestamp(self.at, UTC), self.row
        return LogRow(
            self.number,
            row.key,
            row.kind,
            counts=True,
            at=at,
            seq=self.seq,
            event=row.event,
            value=row.written,
        )


class _MemoryRows:
    """The rows of one run."""

    def __init__(self) -> None:
        self._newest = 0  # the number of the newest row, also of one that is gone
        self._by_key: dict[str, _KeptRow] = {}  # in the order in which they came
        self._events: list[LoggedEvent] = []
        self._totals: dict[str, Totals] = {}
        self._texts: dict[str, KeptText] = {}

    def append(self, row: NewRow, seq: int | None = None) -> bool:
        if row.key in self._by_key:
            return False
        self._newest += 1
        self._by_key[row.key] = _KeptRow(self._newest, time.time(), seq, row)
        if seq is not None:
            self._events.append(LoggedEvent(seq=seq, event=row.event))
        return True

    @property
    def newest_kind(self) -> str:
        """The kind of the newest row."""
        return next(reversed(self._by_key.values())).row.kind if self._by_key else ""

    def has(self, key: str) -> bool:
        return key in self._by_key

    def value(self, key: str) -> Any:
        return self._by_key[key].row.written

    def below(self, prefix: str) -> Sequence[tuple[str, Any]]:
        kept = self._by_key.items()
        return [(key, each.row.written) for key, each in kept if key.startswith(prefix)]

    def supersede(self, first: str, last: str) -> int:
        # Each call of a model is settled, which supersedes one row of all.
        is_one = last == f"{first}{NEXT}"
        keys = (first,) if is_one else tuple(self._by_key)
        gone = [key for key in keys if first <= key < last and key in self._by_key]
        for key in gone:
            # Nobody reads what counts no longer, where nothing outlives the process.
            del self._by_key[key]
        return len(gone)

    def newest_event(self) -> int:
        return self._events[-1].seq if self._events else 0

    def events(self, after: int) -> Sequence[LoggedEvent]:
        return self._events[after:]

    def recent_events(self, kinds: Sequence[str], among: int) -> Sequence[LoggedEvent]:
        newest = [*self._by_key.values()][-among:]
        return [
            LoggedEvent(seq=seq, event=row.event)
            for _, _, seq, row in newest
            if row.kind in kinds and seq is not None
        ]

    def every(self, after: int) -> Sequence[LogRow]:
        return [kept.shown() for kept in self._by_key.values() if kept.number > after]

    def totals(self) -> Mapping[str, Totals]:
        return dict(self._totals)

    def charge(self, scope: str, totals: Totals) -> None:
        self._totals[scope] = totals

    def keep_text(self, ref: str, text: str, at: datetime) -> None:
        self._texts.setdefault(ref, KeptText(ref, text, at))

    def text(self, ref: str) -> str | None:
        kept = self._texts.get(ref)
        return None if kept is None else kept.text

    def forget_texts(self, before: datetime) -> None:
        self._texts = {ref: kept for ref, kept in self._texts.items() if kept.at >= before}

    def shrink(self) -> None:
        """Keep the attempts, and what must not be done twice."""
        self._by_key = {key: row for key, row in self._by_key.items() if key.startswith(_STAYS)}
        self._events, self._texts = [], {}


def memory_log(*, max_open: int = 10_000, max_closed: int = 1_000) -> RunLog:
    """A log that goes with the process."""
    return RunLog(MemoryLogs(max_open=max_open, max_closed=max_closed))
