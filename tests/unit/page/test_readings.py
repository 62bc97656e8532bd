"""A page shows in the end what an event tells of, also if the event is on record first."""

from types import SimpleNamespace

from made_runs import NOON, at, event, whole
from replan.cli.page import read_runs as readings
from replan.cli.page.read_runs import Readings
from replan.cli.page.step_page import is_drawn_whole
from replan.ports.run_book import RunRecord

INVOKED = event(3, 10.0, "specialist_invoked", step_id=2, specialist="worker", attempt=1)
BEFORE = (event(1, 0.0, "run_started"), event(2, 0.0, "plan_created", version=1))
RUNNING = {"outcome": "running", "events": (*BEFORE, INVOKED), "last_seen_at": at(10)}


class Office:
    """A storage whose state is read before an attempt begins, and its events afterwards."""

    def __init__(self, monkeypatch):
        self.seconds, self.reads = 10.1, 0
        self.storage = SimpleNamespace(log=self, works_on=self.works_on)
        self.runtimes = {}
        monkeypatch.setattr(readings, "read_report", self.read_report)
        monkeypatch.setattr(readings, "viewer", lambda storage: None)

    def clock(self):
        return at(self.seconds)

    async def works_on(self, record):
        return True

    async def events(self, run_id, after):
        return [each for each in RUNNING["events"] if each.seq > after]

    async def requests(self, run_ids):
        return []

    async def read_report(self, graph, storage, record, now, known):
        self.reads += 1
        self.known = [each.seq for each in known]
        answer = "" if self.reads == 1 else "Read anew."
        return whole(**RUNNING, ledger=(), answer=answer)


async def test_a_reading_is_made_anew_until_its_newest_event_is_a_second_old(monkeypatch):
    office = Office(monkeypatch)
    read = Readings(office)
    record = RunRecord(
        run_id="r", thread_id="t", outcome="running", started_at=NOON, updated_at=NOON
    )
    first = await read.of(record)
    assert (first.run.answer, first.seq, first.settled) == ("", 3, 2)
    office.seconds = 10.6
    second = await read.of(record)
    # What was read is not read again, and what the page knows since then is drawn once more.
    assert office.known == [1, 2, 3]
    assert (second.run.answer, second.settled) == ("Read anew.", 2)
    for office.seconds in (11.1, 11.6, 12.1):
        last = await read.of(record)
    # Then only the clock goes on.
    assert (office.reads, last.settled, last.run.last_seen_at) == (3, 3, at(12.1))


def test_a_whole_view_is_drawn_for_what_is_new_and_once_more_where_no_mark_changes():
    for kind, again in {"plan_updated": False, "steps_invalidated": True}.items():
        happened = event(3, 3, kind)
        assert is_drawn_whole(happened, seen=2, settled=1)
        assert not is_drawn_whole(happened, seen=3, settled=2)
        assert is_drawn_whole(happened, seen=3, settled=3) is again
    assert not is_drawn_whole(event(3, 3, "model_completed"), seen=2, settled=1)
