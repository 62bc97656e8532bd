"""A book of runs in memory: it lives as long as the process."""

from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime

from pydantic import JsonValue

from replan.adapters.memory_journal import MemoryJournal
from replan.adapters.thread_holds import Holds
from replan.ports.journal import Spending
from replan.ports.run_book import (
    BY_NEED,
    NOT_OVER,
    KeptText,
    LoggedEvent,
    Request,
    RunOrder,
    RunOutcome,
    RunRecord,
)
from replan.ports.thread_repository import ThreadRepository


class MemoryRunBook:
    """Rows about runs, for graphs without a database."""

    def __init__(
        self,
        journal: MemoryJournal,
        holds: Holds,
        forget_thread: Callable[[str], Awaitable[None]],
        threads: ThreadRepository | None = None,
    ) -> None:
        self._journal = journal
        self._holds = holds
        self._forget_thread = forget_thread
        self._threads = threads
        self._records: dict[str, RunRecord] = {}
        self._events: dict[str, list[JsonValue]] = {}
        self._texts: dict[tuple[str, str], KeptText] = {}
        self._requests: dict[str, Request] = {}
        self._taken: set[str] = set()

    async def begin(self, record: RunRecord) -> None:
        known = self._records.setdefault(record.run_id, record)
        self._records[record.run_id] = known.replace(
            outcome=record.outcome, updated_at=record.updated_at
        )

    async def update(self, run_id: str, outcome: RunOutcome, at: datetime) -> None:
        if run_id in self._records:
            known = self._records[run_id]
            self._records[run_id] = known.replace(outcome=outcome, updated_at=at)

    async def get(self, run_id: str) -> RunRecord | None:
        return self._records.get(run_id)

    async def find(self, prefix: str) -> Sequence[RunRecord]:
        return [record for record in self._newest_first() if record.run_id.startswith(prefix)]

    async def recent(
        self,
        limit: int,
        labels: Mapping[str, str] | None = None,
        *,
        behind: RunRecord | None = None,
        outcomes: Collection[RunOutcome] = (),
        order: RunOrder = "began",
    ) -> Sequence[RunRecord]:
        wanted, records = (labels or {}).items(), await self._sorted_by(order)
        if behind is not None:
            ids = [each.run_id for each in records]
            records = records[ids.index(behind.run_id) + 1 :] if behind.run_id in ids else []
        records = [each for each in records if not outcomes or each.outcome in outcomes]
        return [each for each in records if wanted <= each.labels.items()][:limit]

    async def count_unfinished(self, label: str) -> Mapping[tuple[str, RunOutcome], int]:
        records = [each for each in self._records.values() if each.outcome in NOT_OVER]
        return Counter((each.labels.get(label, ""), each.outcome) for each in records)

    async def remove(self, run_id: str) -> None:
        if self._threads is not None:
            await self._threads.forget(run_id)
        record = self._records.get(run_id)
        if record is None:
            self._forget(run_id)
            return
        others = [other for other in self._records.values() if other.run_id != run_id]
        async with self._holds.holding(record.thread_id) as owner:
            if all(other.thread_id != record.thread_id for other in others):
                with owner.at_work():
                    await self._forget_thread(record.thread_id)
            self._forget(run_id)

    def _forget(self, run_id: str) -> None:
        self._journal.forget(run_id)
        self._events.pop(run_id, None)
        self._texts = {key: kept for key, kept in self._texts.items() if key[0] != run_id}
        self._records.pop(run_id, None)
        of_others = [each for each in self._requests.values() if each.run_id != run_id]
        self._requests = {each.name: each for each in of_others}

    async def add_events(
        self, run_id: str, events: Sequence[JsonValue], texts: Sequence[KeptText] = ()
    ) -> int:
        for each in texts:
            self._texts.setdefault((run_id, each.ref), each)
        known = self._events.setdefault(run_id, [])
        known.extend(events)
        return len(known) - len(events) + 1

    async def text(self, run_id: str, ref: str) -> str | None:
        kept = self._texts.get((run_id, ref))
        return None if kept is None else kept.text

    async def forget_texts(self, before: datetime) -> None:
        self._texts = {key: kept for key, kept in self._texts.items() if kept.at >= before}

    async def events(self, run_id: str, after: int = 0) -> Sequence[LoggedEvent]:
        known = self._events.get(run_id, [])[after:]
        return [LoggedEvent(seq=seq, event=event) for seq, event in enumerate(known, after + 1)]

    async def newest_events(
        self, run_ids: Collection[str], most: int
    ) -> Mapping[str, Sequence[LoggedEvent]]:
        lengths = {each: len(self._events.get(each, [])) for each in run_ids}
        return {
            each: await self.events(each, max(0, length - most)) for each, length in lengths.items()
        }

    async def add_request(self, request: Request) -> None:
        self._requests.setdefault(request.name, request)

    async def requests(self, run_ids: Collection[str], *, taken: bool = False) -> Sequence[Request]:
        own = [each for each in self._requests.values() if each.run_id in run_ids]
        found = [each for each in own if taken or each.name not in self._taken]
        return sorted(found, key=lambda request: (request.at, request.name))

    async def take_requests(self, requests: Collection[Request], at: datetime) -> None:
        self._taken.update(request.name for request in requests)

    async def _sorted_by(self, order: RunOrder) -> list[RunRecord]:
        records, now = self._newest_first(), datetime.now(UTC)  # noqa: TID251 - as a database's own
        match order:
            case "began":
                return records
            case "outcome":
                return sorted(records, key=lambda record: BY_NEED.index(record.outcome))
            case "took":
                return sorted(records, key=lambda record: record.started_at - _end_of(record, now))
            case amount:
                spent = {each.run_id: await self._journal.spent(each.run_id) for each in records}
                charged = {name: each.get("run", Spending()) for name, each in spent.items()}
                return sorted(records, key=lambda each: -getattr(charged[each.run_id], amount))

    def _newest_first(self) -> list[RunRecord]:
        by_id = sorted(self._records.values(), key=lambda record: record.run_id)
        return sorted(by_id, key=lambda record: record.started_at, reverse=True)


def _end_of(record: RunRecord, now: datetime) -> datetime:
    return now if record.outcome == "running" else record.updated_at
