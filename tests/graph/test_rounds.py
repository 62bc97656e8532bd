"""How a round runs: order, failures, conditions, parking, halting, retries, time."""

import asyncio

import pytest

from replan import (
    ExecutionStatus,
    Host,
    Limits,
    RunSettings,
    Specialist,
    SpecialistResult,
    StepStatus,
    Team,
    build_graph,
    run,
    stream,
)
from replan.models.spending import deadline
from replan.testing import ScriptedModel
from scripts import COMPLETE, given

PENDING, COMPLETED = StepStatus.PENDING, StepStatus.COMPLETED
FAILED, SKIPPED = StepStatus.FAILED, StepStatus.SKIPPED


def failed(error, *, retry=False):
    return SpecialistResult(status=ExecutionStatus.FAILED, error=error, retry=retry)


def graph_of(work, model, *, specialists=("a", "b"), **options):
    team = [Specialist(name=name, intended_use="Works.", run=work) for name in specialists]
    return build_graph(Team(host=Host(model=model), specialists=team, **options))


async def run_plan(document, work, *, feedback=COMPLETE, settings=None, **options):
    replies = feedback if isinstance(feedback, list) else [feedback]
    with ScriptedModel({"feedback": replies}) as model:
        graph = graph_of(work, model, **options)
        return (await run(graph, given(document), settings=settings)).state


def statuses(state):
    return [step.status for step in state["current_plan"].steps]


async def test_a_step_starts_the_moment_its_own_dependencies_are_done():
    slow_may_end = asyncio.Event()

    async def work(context):
        if context.plan_step.id == 1:
            await slow_may_end.wait()
        if context.plan_step.id == 4:
            # Two levels below the fast step, while the slow sibling still runs.
            slow_may_end.set()
        return f"text {context.plan_step.id}"

    plan = """\
- [ ] 1. Slow @a
- [ ] 2. Fast @a
- [ ] 3. After the fast one @b (after 2)
- [ ] 4. After that @b (after 3)
"""
    state = await asyncio.wait_for(run_plan(plan, work), 10)
    assert state["outcome"] == "completed"
    assert state["current_round"] == 1


async def test_halt_starts_nothing_more_after_a_failure():
    failing = asyncio.Event()

    async def work(context):
        if context.plan_step.id == 1:
            failing.set()
            return failed("broken")
        await failing.wait()
        return "done"

    plan = "- [ ] 1. One @a\n- [ ] 2. Two @a\n- [ ] 3. Three @b (after 2)\n"
    settings = RunSettings(on_failure="halt")
    # Step 3 can still run after feedback, so the premature end is refused and a round follows.
    state = await run_plan(plan, work, settings=settings, feedback=[COMPLETE, COMPLETE])
    assert statuses(state) == [FAILED, COMPLETED, COMPLETED]
    assert [record.round for record in state["execution_history"]] == [1, 2]
    assert list(state["execution_history"][0].results.results) == ["1/a", "2/a"]


async def test_a_specialist_that_ignores_cancellation_is_abandoned(monkeypatch):
    monkeypatch.setattr(deadline, "GRACE", 0.05)
    release = asyncio.Event()

    async def work(context):
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        return "late"

    state = await run_plan("- [ ] 1. Hangs @a (timeout 50ms; retries 0)\n", work)
    release.set()
    assert statuses(state) == [FAILED]


async def test_no_more_steps_run_at_once_than_the_limit_says():
    running, most = 0, 0

    async def work(context):
        nonlocal running, most
        running += 1
        most = max(most, running)
        for _ in range(5):
            await asyncio.sleep(0)
        running -= 1
        return "done"

    plan = "".join(f"- [ ] {i}. Step @a\n" for i in range(1, 21))
    await run_plan(plan, work, settings=RunSettings(limits=Limits(max_parallel_steps=3)))
    assert most == 3


async def test_events_tell_when_a_step_really_starts_and_when_it_is_deferred():
    def work(context):
        return failed("no") if context.plan_step.id == 1 else "done"

    plan = "- [ ] 1. One @a\n- [ ] 2. Two @a (after 1)\n"
    with ScriptedModel({"feedback": COMPLETE}) as model:
        graph = graph_of(work, model)
        events = [event async for event in stream(graph, given(plan))]
    assert {event.seq for event in events} == {None}, "nothing numbers what is not kept"
    left_out = ("answer_token", "model_invoked", "model_completed")
    kinds = [event.type for event in events if event.type not in left_out]
    assert kinds == [
        "run_started",
        "thinking_started",
        "thinking_completed",
        "plan_created",
        "specialist_invoked",
        "specialist_completed",
        "step_deferred",
        "plan_updated",
        "feedback_generated",
        "task_completed",
    ]
    deferred = next(event for event in events if event.type == "step_deferred")
    assert deferred.waiting_for == (1,)


@pytest.mark.parametrize("answer", [None, b"bytes", 7, {"no": "messages"}, object()])
async def test_an_answer_that_is_none_is_a_failure_with_a_reason(answer):
    state = await run_plan("- [ ] 1. Odd @a\n", lambda context: answer)
    assert statuses(state) == [FAILED]
    assert "return a message, a text" in state["current_specialist_results"]["1/a"].error


async def test_the_most_urgent_step_starts_first():
    order = []
    plan = "- [ ] 1. A @a\n- [ ] 2. B @a (priority 1)\n- [ ] 3. C @a (priority 9)\n"

    def work(context):
        order.append(context.plan_step.id)
        return "done"

    await run_plan(plan, work, settings=RunSettings(limits=Limits(max_parallel_steps=1)))
    assert order == [3, 2, 1]


async def test_a_planning_model_of_its_own_is_asked_in_calls_of_its_own():
    judged = "---\ncomplexity: complex\n---\n"
    planner = ScriptedModel({"plan_creation": "- [ ] 1. One @a\n"})
    with ScriptedModel({"think": judged, "feedback": COMPLETE}) as model, planner:
        one = Specialist("a", "Works.", run=lambda context: "done")
        state = (await run(Team(Host(model, planning_model=planner), [one]), "Go.")).state
    assert (len(planner.calls), state["usage"].calls) == (1, 3)
