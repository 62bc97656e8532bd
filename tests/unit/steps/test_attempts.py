"""The tries of a step: on record before they begin, timed, counted, and always a result."""

import asyncio
import logging
import threading
from datetime import UTC, datetime

import pytest
from langchain_core.messages import AIMessage
from langchain_core.runnables.config import ensure_config
from langgraph.errors import GraphInterrupt

from replan import ExecutionContext, ExecutionStatus, Limits, PlanStep, SpecialistResult
from replan.errors import LimitReachedError
from replan.events.emitter import Emitter, Hooks
from replan.log.amounts import Spending
from replan.log.rows import Attempt
from replan.log.run_log import RunLog
from replan.specialists.function import FunctionSpecialist
from replan.spending import deadline
from replan.state.limits import LimitHit
from replan.state.team import SpecialistCard
from replan.steps.attempts import LONGEST_RESULT, Attempts
from replan.steps.board import Board
from replan.steps.on_record import Keys
from replan.steps.step_record import StepRecord
from replan.storage.memory_log import MemoryLogs, memory_log
from replan.testing import ScriptedModel, always

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
CARD = SpecialistCard(name="a", intended_use="Works.")
STEP = PlanStep(id=4, description="Do it", max_retries=2, timeout=20)


@pytest.fixture
def tries(services):
    """Build the tries of a function, with their log and their events."""

    def build(work, *, step=STEP, limits=None, log=None, card=CARD, tried=()):
        live, events = services(log=log or memory_log()), []
        emitter = Emitter(events.append, Hooks().of("r"), "r", 1)
        context = ExecutionContext(
            task_description="Do it", plan_step=step, run_id="r", idempotency_key="k"
        )
        record = StepRecord(
            context=context,
            specialist="a",
            keys=Keys(result="result", attempt="attempt", idempotency="k", inputs={}),
            board=Board({}),
            services=live,
            emitter=emitter,
            tried=tried,
        )
        built = Attempts(
            FunctionSpecialist(card, work), record, limits or Limits(), config={"tags": ["mine"]}
        )
        return built, events

    return build


def kinds(events):
    return [(event.type, event.attempt) for event in events]


async def test_a_result_is_filled_in_with_who_when_and_how_long(tries):
    built, events = tries(lambda context: "done")
    result = await built.run()
    assert (result.text, result.key, result.round) == ("done", "4/a", 1)
    assert (result.retry_count, result.confidence, result.error) == (0, 1.0, "")
    assert 0 < result.duration < 20
    assert kinds(events) == [("specialist_invoked", 1), ("specialist_completed", 1)]


async def test_a_try_is_on_record_before_it_begins(tries):
    seen = []

    class Slow(RunLog):
        async def started(self, attempt, key="", announced=None):
            await asyncio.sleep(0)
            begun = await super().started(attempt, key, announced)
            seen.append(("on record", attempt.number, attempt.key))
            return begun

    def work(context):
        seen.append(("at work", context.attempt, context.idempotency_key))
        if context.attempt == 1:
            raise ConnectionError("reset")
        return "done"

    built, events = tries(work, log=Slow(MemoryLogs()))
    assert (await built.run()).retry_count == 1
    assert seen == [
        each for n in (1, 2) for each in (("on record", n, "attempt"), ("at work", n, "k"))
    ]
    assert kinds(events) == [
        ("specialist_invoked", 1),
        ("specialist_retried", 1),
        ("specialist_invoked", 2),
        ("specialist_completed", 2),
    ]


async def test_a_log_that_cannot_write_stops_the_step_loudly(tries):
    class Full(RunLog):
        async def started(self, attempt, key="", announced=None):
            raise OSError("disk full")

    built, _ = tries(lambda context: pytest.fail("worked off the record"), log=Full(MemoryLogs()))
    with pytest.raises(OSError, match="disk full"):
        await built.run()


async def test_the_last_of_several_failures_is_the_result_and_has_no_confidence(tries):
    def work(context):
        error = f"try {context.attempt}"
        return SpecialistResult(status=ExecutionStatus.FAILED, error=error, confidence=0.9)

    built, events = tries(work)
    result = await built.run()
    assert (result.error, result.retry_count, result.confidence) == ("try 3", 2, 0.0)
    assert [event.error for event in events if event.type == "specialist_retried"] == [
        "try 1",
        "try 2",
    ]


async def test_a_failure_without_a_reason_says_what_it_can(tries):
    failed = SpecialistResult(status=ExecutionStatus.FAILED, retry=False)
    assert (await tries(lambda context: failed)[0].run()).error == "no reason given"
    told = failed.replace(result=AIMessage("The page is gone."))
    assert (await tries(lambda context: told)[0].run()).error == "The page is gone."


async def test_a_partial_result_is_not_tried_again(tries):
    partial = SpecialistResult(
        status=ExecutionStatus.PARTIAL, result=AIMessage("Half."), confidence=0.4
    )
    built, events = tries(lambda context: partial)
    result = await built.run()
    assert (result.status, result.confidence, result.error) == ("partial", 0.4, "")
    assert kinds(events) == [("specialist_invoked", 1), ("specialist_completed", 1)]


async def test_a_text_that_is_too_long_to_be_kept_is_cut_and_the_cut_is_marked(tries):
    built, _ = tries(lambda context: AIMessage("x" * (LONGEST_RESULT + 7), id="m"))
    result = await built.run()
    assert result.text == "x" * LONGEST_RESULT + "\n[… 7 characters cut]"
    assert result.result.id == "m"


async def test_a_secret_in_an_error_does_not_get_into_the_result(tries):
    def work(context):
        raise TypeError("refused for api_key=sk-abcdef123456")

    assert "abcdef" not in (await tries(work)[0].run()).error


async def test_a_question_to_the_user_is_no_failure(tries):
    def ask(context):
        raise GraphInterrupt(())

    built, events = tries(ask)
    with pytest.raises(GraphInterrupt):
        await built.run()
    assert kinds(events) == [("specialist_invoked", 1)]


@pytest.mark.parametrize("calls", [1, 3])
async def test_a_step_that_finds_no_model_call_left_is_not_failed_and_accounted_for(tries, calls):
    async def work(context, config):
        for _ in range(3):
            await model.ainvoke("Hi", config)

    log = memory_log()
    with ScriptedModel({"*": always("Yes.")}) as model:
        # The last call of a run is kept back for the answer.
        built, _ = tries(work, limits=Limits(max_model_calls=calls), log=log)
        hit = await built.run()
    assert len(model.calls) == calls - 1
    assert (hit.limit, hit.value, hit.round) == ("max_model_calls", calls, 1)
    assert (hit.specialist, hit.usage.calls) == ("a", calls - 1)
    assert [entry.outcome for entry in await log.ledger("r")] == ["cancelled"]
    assert await log.results("r") == {}
    spent = await log.spent("r")
    assert spent.get("run", Spending()).calls == calls - 1


async def test_the_usage_of_a_result_is_that_of_all_its_tries(tries):
    async def work(context, config):
        await model.ainvoke("Hi", config)
        if context.attempt < 3:
            raise ConnectionError("reset")
        return "done"

    with ScriptedModel({"*": always("Yes.")}) as model:
        result = await tries(work)[0].run()
    assert result.usage.calls == 3


async def test_a_model_that_is_not_handed_the_configuration_is_counted_all_the_same(tries):
    async def work(context):
        return await model.ainvoke("Hi")

    with ScriptedModel({"*": "Yes."}) as model:
        built, events = tries(work)
        assert (await built.run()).usage.calls == 1
    assert "specialist_token" not in dict(kinds(events))


async def test_the_caller_s_tags_reach_the_specialist_and_leave_nothing_behind(tries):
    seen = []
    built, _ = tries(lambda context, config: seen.append(config["tags"]) or "done")
    await built.run()
    assert seen == [["mine"]]
    assert ensure_config().get("tags") == []


async def test_the_time_of_a_step_is_its_own_and_else_the_run_s(tries):
    async def hang(context):
        await asyncio.Event().wait()

    own = STEP.replace(timeout=0.01, max_retries=0)
    assert "0.01 s" in (await tries(hang, step=own)[0].run()).error
    none = STEP.replace(timeout=None, max_retries=0)
    built, _ = tries(hang, step=none, limits=Limits(step_timeout=0.02))
    assert "0.02 s" in (await built.run()).error


async def test_a_try_that_ran_out_of_time_can_be_tried_again(tries):
    async def work(context):
        if context.attempt == 1:
            await asyncio.Event().wait()
        return "done"

    result = await tries(work, step=STEP.replace(timeout=0.05))[0].run()
    assert (result.text, result.retry_count) == ("done", 1)


async def test_a_try_may_clean_up_when_its_time_is_over(tries):
    cleaned = []

    async def work(context):
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned.append(True)

    built, _ = tries(work, step=STEP.replace(timeout=0.01, max_retries=0))
    assert (await built.run()).status is ExecutionStatus.FAILED
    assert cleaned == [True]


async def test_a_function_that_hangs_in_its_thread_is_abandoned(tries):
    release = threading.Event()
    built, _ = tries(
        lambda context: release.wait(60), step=STEP.replace(timeout=0.05, max_retries=0)
    )
    try:
        result = await asyncio.wait_for(built.run(), 5)
    finally:
        release.set()
    assert "no answer within 0.05 s" in result.error


async def test_a_cancelled_run_cancels_the_try_and_is_cancelled(tries):
    at_work, ended = asyncio.Event(), []

    async def work(context):
        at_work.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    running = asyncio.ensure_future(tries(work)[0].run())
    await at_work.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert ended == [True]


async def test_a_run_that_is_cancelled_while_a_try_is_being_stopped_is_cancelled(
    tries, monkeypatch
):
    monkeypatch.setattr(deadline, "GRACE", 5)
    stopping, release = asyncio.Event(), asyncio.Event()

    async def work(context):
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            stopping.set()
            await release.wait()
        return "late"

    built, _ = tries(work, step=STEP.replace(timeout=0.01, max_retries=0))
    running = asyncio.ensure_future(built.run())
    await stopping.wait()
    running.cancel()
    await asyncio.wait({running}, timeout=5)
    release.set()
    with pytest.raises(asyncio.CancelledError):
        await running


async def outcomes(log):
    return [(entry.number, entry.outcome) for entry in await log.ledger("r")]


async def test_every_try_is_in_the_ledger_with_its_end_and_why_it_failed(tries):
    def work(context):
        if context.attempt < 3:
            raise ConnectionError(f"reset {context.attempt}")
        return "done"

    log = memory_log()
    await tries(work, log=log)[0].run()
    assert await outcomes(log) == [(1, "failed"), (2, "failed"), (3, "done")]
    errors = [entry.error for entry in await log.ledger("r")]
    assert errors == ["ConnectionError: reset 1", "ConnectionError: reset 2", ""]
    assert all(entry.ended_at for entry in await log.ledger("r"))


async def test_a_try_that_asks_or_is_cancelled_or_finds_no_call_left_is_accounted_for(tries):
    at_work = asyncio.Event()

    def ask(context):
        raise GraphInterrupt(())

    async def hang(context):
        at_work.set()
        await asyncio.Event().wait()

    async def call(context, config):
        return await model.ainvoke("Hi", config)

    asked, stopped, refused = memory_log(), memory_log(), memory_log()
    with pytest.raises(GraphInterrupt):
        await tries(ask, log=asked)[0].run()
    assert await outcomes(asked) == [(1, "waiting")]
    running = asyncio.ensure_future(tries(hang, log=stopped)[0].run())
    await at_work.wait()
    assert await outcomes(stopped) == [(1, "unknown_outcome")]
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await outcomes(stopped) == [(1, "cancelled")]
    with ScriptedModel({}) as model:
        built, _ = tries(call, limits=Limits(max_model_calls=1), log=refused)
        assert (await built.run()).limit == "max_model_calls"
    assert await outcomes(refused) == [(1, "cancelled")]
    assert "max_model_calls" in (await refused.ledger("r"))[0].error


async def test_the_numbers_and_the_failures_go_on_from_the_ledger(tries):
    log, seen = memory_log(), []

    def fail(context):
        seen.append(context.attempt)
        raise ConnectionError("reset")

    # Two tries of a process that ended: one failed, of one nobody knows.
    for number, outcome in ((1, "failed"), (2, None)):
        attempt = Attempt(
            run_id="r", step_id=4, specialist="a", number=number, key="attempt", started_at=NOON
        )
        await log.started(attempt)
        if outcome:
            await log.ended(attempt, outcome, NOON, "reset")
    built, events = tries(fail, log=log, tried=await log.ledger("r"))
    result = await built.run()
    # Two retries are allowed; one was used up before.
    assert seen == [3, 4]
    assert (result.retry_count, built.record.number) == (2, 4)
    assert [event.attempt for event in events] == [3, 3, 4, 4]
    assert await outcomes(log) == [
        (1, "failed"),
        (2, "unknown_outcome"),
        (3, "failed"),
        (4, "failed"),
    ]


async def test_unsafe_work_is_tried_again_only_after_an_error(tries):
    def fail(context):
        raise ConnectionError("reset")

    async def hang(context):
        await asyncio.Event().wait()

    async def came_of(work, step, **card):
        # Only what never ends needs a short time.
        step = step.replace(timeout=0.01) if work is hang else step
        built, _ = tries(work, step=step, card=CARD.replace(**card))
        ended = await built.run()
        return "asked" if isinstance(ended, list) else ended.retry_count

    silent = STEP.replace(max_retries=None)
    outspoken = silent.replace(max_retries=1)
    declared = {"effects": "unsafe", "is_declared": True}
    # An error ends a try, whereas a time that ran out ends nothing.
    assert [await came_of(work, silent, **declared) for work in (fail, hang)] == [0, "asked"]
    assert [await came_of(work, silent, effects="unsafe") for work in (fail, hang)] == [2, "asked"]
    assert [await came_of(work, silent, effects="keyed") for work in (fail, hang)] == [2, 2]
    assert [await came_of(work, outspoken, **declared) for work in (fail, hang)] == [1, "asked"]
    undeclared = [await came_of(work, outspoken, effects="unsafe") for work in (fail, hang)]
    assert undeclared == [1, "asked"]


async def test_what_was_cut_off_where_nobody_is_asked_stays_in_doubt(tries):
    times = []

    async def hang(context):
        times.append(context.attempt)
        await asyncio.Event().wait()

    log, card = memory_log(), CARD.replace(effects="unsafe")
    built, _ = tries(hang, step=STEP.replace(timeout=0.01), log=log, card=card)
    built.record.on_doubt = "fail"
    result = await built.run()
    assert "was cut off in attempt 1 (StepTimeoutError: no answer within 0.01 s)" in result.error
    assert "declare that in the team: effects='pure' for @a" in result.error
    # Whoever opens the step again, with other words even, does not make it run again.
    again, _ = tries(hang, log=log, card=card, tried=await log.ledger("r"))
    again.keys = Keys(result="other", attempt="other", idempotency="other", inputs={})
    assert isinstance(await again.run(), list)
    assert times == [1]


async def test_work_that_ended_at_a_limit_of_the_run_is_asked_about_only_if_it_was_cut_off(tries):
    async def spend(context):
        raise LimitReachedError("max_model_calls", 5)

    async def hang(context):
        await asyncio.Event().wait()

    ends = []
    for work, limits in ((spend, Limits()), (hang, Limits(max_seconds=0.05))):
        for is_declared in (False, True):
            log = memory_log()
            card = CARD.replace(effects="unsafe", is_declared=is_declared)
            built, _ = tries(work, log=log, card=card, limits=limits)
            assert isinstance(await built.run(), LimitHit)
            ends += [entry.outcome for entry in await log.ledger("r")]
    assert ends == ["failed", "cancelled", "cancelled", "cancelled"]


async def test_the_traceback_of_a_failed_attempt_is_in_the_log(tries, caplog):
    def look_up(context):
        raise KeyError("missing")

    built, _ = tries(look_up, step=STEP.replace(max_retries=1))
    with caplog.at_level(logging.INFO, "replan"):
        await built.run()
    failed = [
        record for record in caplog.records if record.message.startswith("attempt failed: KeyError")
    ]
    assert [record.attempt for record in failed] == [1, 2]
    assert {(record.run_id, record.step_id, record.specialist) for record in failed} == {
        ("r", 4, "a")
    }
    assert "in look_up" in caplog.text
    # The frames of the package are no help to who wrote the function.
    assert "replan/steps/attempts.py" not in caplog.text
    assert [r.message for r in caplog.records].count("another attempt follows") == 1


@pytest.mark.parametrize(
    ("errors", "told"),
    [
        ([KeyError("olive crate")] * 3, True),
        ([KeyError("crate"), ValueError("2"), KeyError("crate")], False),
        # A server that was not reached may be there later.
        ([ConnectionError("refused")] * 3, False),
    ],
)
async def test_the_same_error_twice_says_that_nothing_helps_but_a_change(tries, errors, told):
    left = iter(errors)

    def work(context):
        raise next(left)

    built, _ = tries(work)
    result = await built.run()
    said = ". The same error twice: another attempt does not help without a change."
    assert result.error.endswith(said) is told
    if told:
        assert result.error == f"KeyError: there is no 'olive crate'{said}"
    ledger = await built.record.services.log.ledger("r")
    # The first one may still help to be tried again.
    assert not ledger[0].error.endswith(said)
