"""The attempts of a step: on record before they begin, timed, counted, and always a result."""

import asyncio
import logging

import pytest
from langchain_core.messages import AIMessage

from replan import (
    Host,
    LimitReachedError,
    Limits,
    Specialist,
    SpecialistResult,
    StorageError,
    Team,
    build_graph,
    open_runtime,
    run,
)
from replan.log.run_log import RunLog
from replan.models.spending import deadline
from replan.specialists.steps.attempts import LONGEST_RESULT
from replan.testing import ScriptedModel, always

PLAN = "- [ ] 4. Do it @a (retries 2; timeout 20s)\n"
HANGS = "- [ ] 4. Do it @a (retries 0; timeout 10ms)\n"


@pytest.fixture
def ended(storage):
    """Run a step, and give its result, its rows of the ledger and its events."""

    async def done(work, plan=PLAN, *, limits=None, on_doubt="ask", **member):
        events, one = [], Specialist("a", "Works.", run=work, **member)
        team = Team(Host("offline"), [one], limits=limits or Limits(), on_doubt=on_doubt)
        async with open_runtime(team, storage=storage) as runtime:
            run_id = f"r{len(await storage.runs.recent(99))}"
            result = await runtime.run({"plan": plan}, run_id=run_id, on_event=events.append)
        told = [each for each in events if each.type.startswith("specialist_")]
        return result, await storage.log.ledger(run_id), told

    return done


async def hang(context):
    await asyncio.Event().wait()


async def test_a_log_that_cannot_write_stops_the_step_before_its_work(ended, monkeypatch):
    async def full(*_, **__):
        raise StorageError("runs.db", "The disk is full.", "Make room.")

    monkeypatch.setattr(RunLog, "started", full)
    with pytest.raises(StorageError, match="disk is full"):
        await ended(lambda context: pytest.fail("it worked off the record"))


async def test_the_last_of_several_failures_is_the_result_and_has_no_confidence(ended):
    def work(context):
        return SpecialistResult(status="failed", error=f"no {context.attempt}", confidence=0.9)

    result, _, _ = await ended(work)
    assert (result.results[4].error, result.results[4].retry_count) == ("no 3", 2)
    assert result.results[4].confidence == 0.0


async def test_a_text_that_is_too_long_to_be_kept_is_cut_and_the_cut_is_marked(ended):
    result, _, _ = await ended(lambda context: AIMessage("x" * (LONGEST_RESULT + 7), id="m"))
    assert result.results[4].text == "x" * LONGEST_RESULT + "\n[… 7 characters cut]"
    assert result.results[4].result.id == "m"


@pytest.mark.parametrize("calls", [1, 3])
async def test_a_step_that_finds_no_model_call_left_is_not_failed_and_accounted_for(
    ended, storage, calls
):
    async def work(context, config):
        for _ in range(3):
            await model.ainvoke("Hi", config)

    with ScriptedModel({"*": always("Yes.")}) as model:
        # The last call of a run is kept back for the answer.
        limits = Limits(max_model_calls=calls)
        result, ledger, _ = await ended(work, limits=limits, effects="pure")
    assert len(model.calls) == calls - 1
    (hit,) = result.state["limit_hits"].values()
    assert (hit.limit, hit.value, hit.round) == ("max_model_calls", calls, 1)
    assert (hit.specialist, hit.usage.calls) == ("a", calls - 1)
    assert [each.outcome for each in ledger] == ["cancelled"]
    assert "max_model_calls" in ledger[0].error
    assert await storage.log.results(result.run_id) == {}


async def test_a_run_that_is_cancelled_while_an_attempt_is_being_stopped_is_cancelled(monkeypatch):
    monkeypatch.setattr(deadline, "GRACE", 5)
    stopping, release = asyncio.Event(), asyncio.Event()

    async def work(context):
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            stopping.set()
            await release.wait()
        return "late"

    team = Team(Host("offline"), [Specialist("a", "Works.", run=work, effects="pure")])
    running = asyncio.ensure_future(run(build_graph(team), {"plan": HANGS}))
    await stopping.wait()
    running.cancel()
    await asyncio.wait({running}, timeout=5)
    release.set()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_unsafe_work_is_tried_again_only_after_an_error(ended):
    def fail(context):
        raise ConnectionError("reset")

    async def came_of(work, retries, **member):
        timeout = "timeout 10ms" if work is hang else "timeout 20s"
        result, _, _ = await ended(work, f"- [ ] 4. Do it @a ({timeout}{retries})\n", **member)
        return "asked" if result.outcome == "waiting" else result.results[4].retry_count

    def keyed(context, idempotency_key):
        raise ConnectionError("reset")

    async def keyed_hang(context, idempotency_key):
        await asyncio.Event().wait()

    declared, once = {"effects": "unsafe"}, "; retries 1"
    # An error ends a try, whereas a time that ran out ends nothing.
    assert [await came_of(work, "", **declared) for work in (fail, hang)] == [0, "asked"]
    assert [await came_of(work, "") for work in (fail, hang)] == [2, "asked"]
    assert await came_of(keyed, "") == 2
    assert [await came_of(work, once, **declared) for work in (fail, hang)] == [1, "asked"]
    assert [await came_of(work, once) for work in (fail, hang)] == [1, "asked"]
    result, _, _ = await ended(keyed_hang, "- [ ] 4. Do it @a (timeout 10ms)\n")
    assert result.results[4].retry_count == 2


async def test_what_was_cut_off_where_nobody_is_asked_stays_in_doubt(ended):
    result, ledger, _ = await ended(hang, HANGS, on_doubt="fail")
    error = result.results[4].error
    assert "was cut off in attempt 1 (StepTimeoutError: no answer within 0.01 s)" in error
    assert "declare that in the team: effects='pure' for @a" in error
    assert len(ledger) == 1


async def test_work_that_ended_at_a_limit_of_the_run_is_in_doubt_only_if_it_was_cut_off(ended):
    async def spend(context):
        raise LimitReachedError("max_model_calls", 5)

    outcomes = []
    for work, limits in ((spend, Limits()), (hang, Limits(max_seconds=0.5))):
        for member in ({}, {"effects": "unsafe"}):
            _, ledger, _ = await ended(work, limits=limits, **member)
            outcomes.append({each.outcome for each in ledger})
    assert outcomes == [{"failed"}, {"cancelled"}, {"cancelled"}, {"cancelled"}]


async def test_the_traceback_of_a_failed_attempt_is_in_the_log(ended, caplog):
    def look_up(context):
        raise KeyError("missing")

    with caplog.at_level(logging.INFO, "replan"):
        await ended(look_up, "- [ ] 4. Do it @a (retries 1)\n")
    failed = [each for each in caplog.records if "attempt failed: KeyError" in each.message]
    assert [each.attempt for each in failed] == [1, 2]
    assert {(each.step_id, each.specialist) for each in failed} == {(4, "a")}
    assert "in look_up" in caplog.text
    # The frames of the package are no help to who wrote the function.
    assert "replan/steps/attempts.py" not in caplog.text
    assert [each.message for each in caplog.records].count("another attempt follows") == 1


@pytest.mark.parametrize(
    ("errors", "is_told"),
    [
        ([KeyError("olive crate")] * 3, True),
        ([KeyError("crate"), ValueError("2"), KeyError("crate")], False),
        # A server that was not reached may be there later.
        ([ConnectionError("refused")] * 3, False),
    ],
)
async def test_the_same_error_twice_says_that_nothing_helps_but_a_change(ended, errors, is_told):
    left = iter(errors)

    def work(context):
        raise next(left)

    result, ledger, _ = await ended(work)
    said = ". The same error twice: another attempt does not help without a change."
    assert result.results[4].error.endswith(said) is is_told
    # The first one may still help to be tried again.
    assert not ledger[0].error.endswith(said)
