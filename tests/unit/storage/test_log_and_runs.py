"""What every log and every list of runs must do, in memory, in SQLite and in PostgreSQL."""

import asyncio
import json
import random
from datetime import UTC, datetime, timedelta

from langchain_core.messages import AIMessage, AIMessageChunk

from replan.log.amounts import Bound, Charged, Refused, Reservation, Spending
from replan.log.rows import Attempt, KeptText, LedgerEntry, Request
from replan.log.run_log import RunRows
from replan.ports.run_book import RunRecord
from replan.state.results import Artifact, ExecutionStatus, SpecialistResult
from replan.state.usage import TokenCount
from replan.storage.memory_log import memory_log

NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
LATER = NOON + timedelta(seconds=3)
RUN = Bound(scope="run", calls=3)


def call(name, *, run="r", calls=1, tokens=0, cost=0.0):
    amount = Spending(calls=calls, tokens=tokens, cost=cost)
    return Reservation(id=name, run_id=run, amount=amount)


def attempt(key="k", number=1, run="r", step=1, at=NOON):
    return Attempt(run_id=run, step_id=step, specialist="a", number=number, key=key, started_at=at)


def record(name, *, thread="t", at=NOON, **fields):
    return RunRecord(run_id=name, thread_id=thread, started_at=at, updated_at=at, **fields)


async def test_reservations_are_made_up_to_the_bound(storage):
    log = storage.log
    for name in ("1", "2", "3"):
        assert await log.reserve(call(name), [RUN]) is None
    refused = await log.reserve(call("4"), [RUN])
    assert refused == Refused(scope="run", kind="calls")
    assert await log.spent("r") == {"run": Spending(calls=3)}


async def test_a_reservation_that_one_scope_refuses_charges_none(storage):
    log = storage.log
    bounds = [Bound(scope="run", calls=9), Bound(scope="step/1", tokens=10)]
    refused = await log.reserve(call("1", tokens=11), bounds)
    assert refused == Refused(scope="step/1", kind="tokens")
    assert set((await log.spent("r")).values()) <= {Spending()}


async def test_money_fits_up_to_the_last_bit(storage):
    log, bound = storage.log, Bound(scope="run", cost=0.3)
    for name in ("1", "2", "3"):
        assert await log.reserve(call(name, cost=0.1), [bound]) is None
    refused = await log.reserve(call("4", cost=0.1), [bound])
    assert refused is not None
    assert refused.kind == "cost"
    for name in ("1", "2", "3"):
        await log.settle(call(name, cost=0.1), Spending(calls=1))
    assert (await log.spent("r"))["run"] == Spending(calls=3)


async def test_the_same_reservation_again_is_the_same(storage):
    log, bound = storage.log, Bound(scope="run", calls=1)
    assert await log.reserve(call("1"), [bound]) is None
    assert await log.reserve(call("1"), [bound]) is None
    assert await log.spent("r") == {"run": Spending(calls=1)}


async def test_what_was_used_takes_the_place_of_what_was_reserved(storage):
    log, bounds = storage.log, [RUN, Bound(scope="specialist/a")]
    mine = call("1", tokens=500, cost=2.0)
    await log.reserve(mine, bounds)
    await log.reserve(call("2", tokens=7), bounds)
    used = Spending(calls=1, tokens=40, cost=0.25)
    await log.settle(mine, used)
    await log.settle(mine, used)
    await log.settle(call("never reserved"), used)
    left = Spending(calls=2, tokens=47, cost=0.25)
    assert await log.spent("r") == {"run": left, "specialist/a": left}
    # What is settled can be told from what is reserved.
    charged = Charged({"run": left, "specialist/a": left}, frozenset("2"))
    assert await log.charged("r") == charged
    await log.settle(call("2"), Spending())
    spent, still_open = await log.charged("r")
    assert ({each.calls for each in spent.values()}, still_open) == ({1}, frozenset())


async def test_reserving_and_settling_at_once_keeps_the_sums(storage):
    """Each call takes its turn at a random moment; what is left is the sum of what was used."""
    log, draw = storage.log, random.Random(7)  # noqa: S311 - no secret
    bounds = [Bound(scope=scope, tokens=10_000) for scope in ("step/1", "run", "specialist/a")]
    amounts = [(draw.randrange(100), draw.randrange(60)) for _ in range(40)]

    async def one(number, reserved, used):
        mine = call(str(number), tokens=reserved)
        draw.shuffle(order := list(bounds))
        assert await log.reserve(mine, order) is None
        await log.settle(mine, Spending(calls=1, tokens=used))

    await asyncio.gather(*(one(number, *pair) for number, pair in enumerate(amounts)))
    total = Spending(calls=40, tokens=sum(used for _, used in amounts))
    assert await log.spent("r") == {bound.scope: total for bound in bounds}


async def with_rows(log, run):
    """A run with rows of every kind."""
    done, cut = attempt("a", run=run), attempt("b", 2, run=run, step=2, at=LATER)
    await log.reserve(call("1", run=run, tokens=9), [RUN, Bound(scope="step/1")])
    await log.settle(call("1", run=run), Spending(calls=1, tokens=4, cost=0.125))
    await log.reserve(call("2", run=run, tokens=7), [RUN])
    await log.started(done)
    result = SpecialistResult(
        specialist_name="a", status=ExecutionStatus.SUCCESS, result=AIMessageChunk("ok"), step_id=1
    )
    await log.finished(done, result, LATER, key="answers for this, too")
    await log.started(cut)
    await log.ended(cut, "cancelled", LATER, "cut off")
    for key, value in (("z", [1, {"a": None}]), ("a", "words"), ("m", None)):
        await log.note(run, key, value)


def plain(rows):
    """Rows as JSON, as they are sent."""
    return json.loads(rows.model_dump_json())


async def test_a_run_is_adopted_with_all_of_its_rows(storage):
    log, elsewhere = storage.log, memory_log()
    await with_rows(log, "r")
    rows = await log.export("r")
    assert [key for key, _ in rows.notes] == ["z", "a", "m"]
    assert rows.spent["run"] == Spending(calls=2, tokens=11, cost=0.125)
    sent = RunRows.model_validate_json(rows.model_dump_json())
    await elsewhere.adopt("r", sent, LATER)
    await log.adopt("copy", await elsewhere.export("r"), LATER)
    here, there = await log.export("copy"), await elsewhere.export("r")
    of_this = [each.replace(run_id="r") for each in here.attempts]
    assert plain(here.replace(attempts=of_this)) == plain(there) == plain(sent)


async def test_what_was_adopted_goes_on_as_if_it_had_begun_here(storage):
    elsewhere, log = memory_log(), storage.log
    await with_rows(elsewhere, "r")
    await log.adopt("r", await elsewhere.export("r"), LATER)
    known = await log.started(attempt("a", 2, at=LATER), "answers for this, too")
    assert known is not None
    assert known.text == "ok"
    assert await log.note("r", "a", "other words") == "words"
    refused = await log.reserve(call("3", calls=2), [RUN])
    assert refused == Refused(scope="run", kind="calls")
    assert await log.reserve(call("4", calls=1), [RUN]) is None
    await log.settle(call("2"), Spending())
    assert (await log.spent("r"))["run"].calls == 3


async def test_a_run_that_has_rows_keeps_them_and_adopts_none(storage):
    log, elsewhere = storage.log, memory_log()
    await with_rows(elsewhere, "r")
    await log.note("r", "a", "mine")
    before = await log.export("r")
    await log.adopt("r", await elsewhere.export("r"), LATER)
    assert await log.export("r") == before
    assert before.notes == (("a", "mine"),)


async def test_the_ledger_has_every_attempt_in_the_order_of_their_beginnings(storage):
    log = storage.log
    first, second, third = attempt("z"), attempt("a", step=2), attempt("z", 2, at=LATER)
    for each in (first, second, third):
        await log.started(each)
    await log.ended(second, "cancelled", LATER, "half \ud800 and \x00 nothing")
    await log.ended(first, "failed", LATER, "no")
    assert await log.ledger("r") == [
        LedgerEntry(**dict(first), ended_at=LATER, outcome="failed", error="no"),
        LedgerEntry(
            **dict(second),
            ended_at=LATER,
            outcome="cancelled",
            error="half \ud800 and \x00 nothing",
        ),
        LedgerEntry(**dict(third)),
    ]
    assert (await log.ledger("r"))[2].outcome == "unknown_outcome"


async def test_an_end_that_is_final_stays(storage):
    log = storage.log
    await log.finished(attempt(), SpecialistResult(step_id=1), LATER)
    await log.ended(attempt(), "cancelled", NOON, "too late")
    await log.started(attempt(at=LATER))
    assert await log.ledger("r") == [LedgerEntry(**dict(attempt()), ended_at=LATER, outcome="done")]


async def test_what_a_person_says_of_an_attempt_that_was_cut_off_is_its_end(storage):
    log = storage.log
    await log.ended(attempt(), "cancelled", NOON)
    await log.started(attempt())
    assert [each.outcome for each in await log.ledger("r")] == ["cancelled"]
    await log.finished(attempt(), SpecialistResult(step_id=1), LATER)
    assert [each.outcome for each in await log.ledger("r")] == ["done"]


async def test_a_result_comes_back_equal(storage):
    log = storage.log
    result = SpecialistResult(
        specialist_name="a",
        result=AIMessage(
            "Text – with \x00, 汉字 and “quotes”.",
            id="m",
            usage_metadata={"input_tokens": 3, "output_tokens": 4, "total_tokens": 7},
            tool_calls=[{"name": "f", "args": {"x": [1, None]}, "id": "c"}],
            response_metadata={"model": "m"},
        ),
        status=ExecutionStatus.PARTIAL,
        error="some",
        duration=1.5,
        confidence=0.25,
        step_id=4,
        round=2,
        retry_count=1,
        replan_needed=True,
        retry=False,
        artifacts=(Artifact(path="a/b.md", title="B"),),
        usage=TokenCount(calls=2, input_tokens=3, output_tokens=4),
    )
    await log.finished(attempt(), result, LATER)
    assert await log.results("r") == {"k": result}


async def test_the_first_result_of_a_key_stays(storage):
    log = storage.log
    await log.finished(attempt(), SpecialistResult(result=AIMessage("first")), LATER)
    await log.finished(attempt(number=2), SpecialistResult(result=AIMessage("second")), LATER)
    assert (await log.results("r"))["k"].text == "first"
    assert len(await log.ledger("r")) == 2


async def test_a_run_that_was_removed_and_begun_again_has_its_own_results(storage):
    log = storage.log
    for text in ("the first run's", "the second run's"):
        result = SpecialistResult(specialist_name="a", step_id=1, result=AIMessage(text))
        finished = await log.finished(attempt(), result, NOON)
        read = await log.results_at("r", [finished.log_key])
        assert [each.text for each in read.values()] == [text]
        await storage.runs.remove("r")


async def test_a_result_answers_for_the_key_that_is_named(storage):
    log = storage.log
    begun = attempt().replace(idempotency_key="service")
    await log.started(begun)
    await log.finished(begun, SpecialistResult(step_id=1), LATER, "work")
    assert list(await log.results("r")) == ["work"]
    (entry,) = await log.ledger("r")
    assert (entry.key, entry.idempotency_key, entry.outcome) == ("k", "service", "done")


async def test_of_a_foreign_message_at_least_the_text_is_kept(storage):
    log = storage.log
    odd = AIMessage("odd", additional_kwargs={"raw": b"\xff", "thing": object()})
    await log.finished(attempt("1"), SpecialistResult(result=odd), LATER)
    await log.finished(attempt("2"), SpecialistResult(result=AIMessageChunk("piece")), LATER)
    texts = {key: each.text for key, each in (await log.results("r")).items()}
    assert texts == {"1": "odd", "2": "piece"}


async def test_many_who_note_at_once_hear_the_same_word(storage):
    log = storage.log
    heard = await asyncio.gather(*(log.note("r", "k", word) for word in range(20)))
    assert len(set(heard)) == 1
    assert await log.notes("r") == {"k": heard[0]}


async def test_notes_come_back_by_prefix_in_their_order(storage):
    log = storage.log
    for key in ("b_1", "b%2", "bx3", "a", "B_4", "b_10"):
        await log.note("r", key, key.upper())
    assert list(await log.notes("r")) == ["b_1", "b%2", "bx3", "a", "B_4", "b_10"]
    assert await log.notes("r", "b_") == {"b_1": "B_1", "b_10": "B_10"}
    assert await log.notes("r", "b%") == {"b%2": "B%2"}
    assert await log.notes("r", "none") == {}


async def test_notes_are_taken_back_by_prefix(storage):
    log = storage.log
    for key in ("call/1/1", "call/1/2", "call/12/1"):
        await log.note("r", key, 1)
    await log.strike("r", "call/1/")
    assert list(await log.notes("r")) == ["call/12/1"]
    assert await log.note("r", "call/1/1", 2) == 2
    assert list(await log.notes("r")) == ["call/12/1", "call/1/1"]


async def test_a_run_that_begins_again_keeps_its_beginning(storage):
    mine = record("a", title="First", order=1)
    await storage.runs.begin(mine)
    await storage.runs.update("a", "interrupted", LATER)
    await storage.runs.begin(record("a", title="Second", order=2, at=LATER))
    assert await storage.runs.get("a") == mine.replace(updated_at=LATER)


async def test_runs_are_found_by_the_beginning_of_their_ids(storage):
    for name in ("ab1", "ab2", "a_3", "AB4"):
        await storage.runs.begin(record(name))
    assert {each.run_id for each in await storage.runs.find("ab")} == {"ab1", "ab2"}
    assert [each.run_id for each in await storage.runs.find("a_")] == ["a_3"]
    assert await storage.runs.find("zz") == []


async def test_the_newest_runs_come_first(storage):
    for number in range(5):
        at = NOON + timedelta(microseconds=number)
        await storage.runs.begin(record(str(number), at=at))
    await storage.runs.begin(record("30", at=NOON + timedelta(microseconds=3)))
    newest = await storage.runs.recent(3)
    assert [each.run_id for each in newest] == ["4", "3", "30"]
    for last, left in zip(newest, ("3 30 2 1 0", "30 2 1 0", "2 1 0"), strict=True):
        found = await storage.runs.recent(9, behind=last)
        assert [each.run_id for each in found] == left.split()
    for number, outcome in {"3": "waiting", "1": "failed", "0": "waiting"}.items():
        await storage.runs.update(number, outcome, NOON)
    found = await storage.runs.recent(9, behind=newest[0], outcomes=("waiting", "failed"))
    assert [each.run_id for each in found] == ["3", "1", "0"]


async def test_runs_stand_in_the_order_of_need_length_or_price_each_once(storage):
    log = storage.log
    # Outcome, seconds, tokens and cost; "e" costs what "b" does, and is newer.
    told = {
        "a": ("completed", 9, 5, 0.1),
        "b": ("failed", 2, 900, 0.2),
        "c": ("waiting", 3, 80, 0.75),
        "d": ("running", 0, 0, 0.0),
        "e": ("failed", 1, 7, 0.2),
    }
    for number, (name, (outcome, seconds, tokens, cost)) in enumerate(told.items()):
        at = NOON.replace(year=2000, second=number)
        await storage.runs.begin(record(name, at=at))
        if tokens:
            await log.reserve(call(name, run=name), [RUN])
            used = Spending(calls=1, tokens=tokens, cost=cost)
            await log.settle(call(name, run=name), used)
        await storage.runs.update(name, outcome, at + timedelta(seconds=seconds))
    for order, wanted in {
        "outcome": "cdeba",
        "took": "dacbe",
        "tokens": "bcead",
        "cost": "cebad",
        "began": "edcba",
    }.items():
        found, last = "", None
        while page := await storage.runs.recent(2, behind=last, order=order):
            found, last = found + "".join(each.run_id for each in page), page[-1]
        assert found == wanted, order


async def test_two_who_append_at_once_give_no_number_twice(lasting):
    async with lasting() as one, lasting() as other:
        each = [storage.log.add_events("r", [n]) for n in range(10) for storage in (one, other)]
        assert sorted(await asyncio.gather(*each)) == [*range(1, 21)]
        assert [each.seq for each in await one.log.events("r")] == [*range(1, 21)]


async def test_long_texts_are_kept_once_beside_the_events_of_their_run(storage):
    log = storage.log
    half = KeptText("a1", "half \ud800", NOON)
    await log.add_events("r", ["x"], [half, KeptText("b2", "later", LATER)])
    await log.add_events("r", ["y"], [half._replace(text="other", at=LATER)])
    assert [await log.text("r", ref) for ref in ("a1", "b2", "c3")] == [half.text, "later", None]
    assert await log.text("other", "a1") is None
    await log.forget_texts(LATER)
    assert [await log.text("r", ref) for ref in ("a1", "b2")] == [None, "later"]


async def test_runs_are_found_by_all_of_their_labels(storage):
    eva, otto = {"user": "eva", "tenant": "a"}, {"user": "otto", "tenant": "a"}
    for name, labels in (("1", eva), ("2", otto), ("3", {})):
        await storage.runs.begin(record(name).replace(labels=labels))
    # What a run begins with stays.
    await storage.runs.begin(record("1").replace(labels={"user": "otto"}))
    assert (await storage.runs.get("1")).labels == eva
    for labels, found in (
        ({"tenant": "a"}, {"1", "2"}),
        ({"tenant": "a", "user": "otto"}, {"2"}),
        ({"tenant": "a", "user": "ottilie"}, set()),
        ({}, {"1", "2", "3"}),
    ):
        assert {each.run_id for each in await storage.runs.recent(9, labels)} == found
    assert [each.labels for each in await storage.runs.recent(1, {"user": "eva"})] == [eva]


async def test_removing_a_run_removes_all_of_it(storage):
    log, runs = storage.log, storage.runs
    for name in ("gone", "kept"):
        await runs.begin(record(name, thread=name).replace(labels={"user": name}))
        await log.add_events(name, ["begun"], [KeptText("ref", name, NOON)])
        await log.add_request(Request(run_id=name, name=name, kind="stop", at=NOON))
        await log.reserve(call("1", run=name), [RUN])
        await log.finished(attempt(run=name), SpecialistResult(), LATER)
        await log.note(name, "k", 1)
    await runs.remove("gone")
    await runs.remove("never there")
    assert await runs.get("gone") is None
    assert await log.events("gone") == []
    assert [await log.text(name, "ref") for name in ("gone", "kept")] == [None, "kept"]
    await runs.begin(record("gone", thread="gone"))
    assert (await runs.get("gone")).labels == {}
    assert await log.spent("gone") == {}
    assert await log.ledger("gone") == []
    assert await log.results("gone") == {}
    assert await log.notes("gone") == {}
    assert [each.event for each in await log.events("kept")] == ["begun"]
    assert [each.run_id for each in await log.requests(["gone", "kept"])] == ["kept"]
    assert len(await log.results("kept")) == 1


async def test_what_is_recorded_outlives_the_one_who_recorded_it(lasting):
    async with lasting() as storage:
        await storage.runs.begin(record("r", title="Mine"))
        await storage.log.add_events("r", [1])
        await storage.log.reserve(call("1", tokens=5), [RUN])
        await storage.log.finished(attempt(), SpecialistResult(result=AIMessage("a")), LATER)
        await storage.log.note("r", "k", "v")
    async with lasting() as storage:
        assert (await storage.runs.recent(9))[0].title == "Mine"
        assert [each.event for each in await storage.log.events("r")] == [1]
        assert await storage.log.spent("r") == {"run": Spending(calls=1, tokens=5)}
        assert (await storage.log.results("r"))["k"].text == "a"
        assert (await storage.log.ledger("r"))[0].ended_at == LATER
        assert await storage.log.notes("r") == {"k": "v"}
        await storage.log.settle(call("1"), Spending(calls=1))
        assert await storage.log.spent("r") == {"run": Spending(calls=1)}


async def test_two_who_opened_the_same_storage_keep_one_bound(lasting):
    async with lasting() as one, lasting() as other:
        granted = await asyncio.gather(
            *(
                (one, other)[number % 2].log.reserve(call(str(number)), [RUN])
                for number in range(20)
            )
        )
        assert sum(each is None for each in granted) == 3
        assert await one.log.spent("r") == await other.log.spent("r")


async def test_the_runs_that_are_not_over_are_counted_by_a_label(storage):
    stand = {"a": ("running", "x"), "b": ("waiting", "x"), "c": ("waiting", "x"), "d": ("waiting",)}
    for name, (outcome, *team) in {**stand, "e": ("completed", "x")}.items():
        labels = {"team": team[0], "other": "o"} if team else {}
        await storage.runs.begin(record(name, outcome=outcome, labels=labels))
    counted = await storage.runs.count_unfinished("team")
    assert counted == {("x", "running"): 1, ("x", "waiting"): 2, ("", "waiting"): 1}
