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


async def test_a_step_sees_the_results_of_its_dependencies_and_of_nothing_else():
    seen = {}

    def work(context):
        seen[context.plan_step.id] = dict(context.inputs)
        return f"text {context.plan_step.id}"

    plan = "- [ ] 1. One @a\n- [ ] 2. Two @a\n- [ ] 3. Three @b\n- [ ] 4. Four @b (after 1, 3)\n"
    await run_plan(plan, work)
    assert seen == {1: {}, 2: {}, 3: {}, 4: {1: "text 1", 3: "text 3"}}


async def test_a_failure_lets_independent_branches_finish_and_parks_its_dependents():
    def work(context):
        if context.plan_step.id == 1:
            return failed("no such file")
        return "done"

    plan = """\
- [ ] 1. One @a
- [ ] 2. Two @a (after 1)
- [ ] 3. Three @b
- [ ] 4. Four @b (after 3)
"""
    state = await run_plan(plan, work)
    assert statuses(state) == [FAILED, PENDING, COMPLETED, COMPLETED]
    assert state["outcome"] == "partial"
    assert "1. One: no such file" in state["final_answer"].text
    assert "2. Two: a step that it needs failed" in state["final_answer"].text


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


async def test_a_specialist_that_asks_for_a_revision_stops_new_starts():
    def work(context):
        if context.plan_step.id == 1:
            return SpecialistResult(result=None, replan_needed=True)
        return "done"

    plan = "- [ ] 1. One @a\n- [ ] 2. Two @a (after 1)\n"
    revised = (
        "---\nverdict: continue\nsuggested_action: update_plan\n---\n"
        "- [x] 1. One @a\n- [ ] 2. Two, differently @b (after 1)\n"
    )
    state = await run_plan(plan, work, feedback=[revised, COMPLETE])
    assert state["current_plan"].step(2).description == "Two, differently"
    assert set(state["current_specialist_results"]) == {"1/a", "2/b"}


@pytest.mark.parametrize(("fails", "expected"), [(True, COMPLETED), (False, SKIPPED)])
async def test_a_condition_decides_whether_a_step_runs(fails, expected):
    def work(context):
        return failed("down") if fails and context.plan_step.id == 1 else "done"

    plan = "- [ ] 1. One @a\n- [ ] 2. Other way @b (if 1 failed)\n- [ ] 3. Go on @b (after 1, 2)\n"
    state = await run_plan(plan, work)
    assert state["current_plan"].step(2).status is expected
    assert state["current_plan"].step(3).status is COMPLETED
    assert state["outcome"] == "completed"


async def test_an_optional_step_that_fails_blocks_nothing():
    def work(context):
        return failed("down") if context.plan_step.id == 1 else "done"

    plan = "- [ ] 1. Extra @a (optional)\n- [ ] 2. Main @b (after 1)\n"
    state = await run_plan(plan, work)
    assert statuses(state) == [FAILED, COMPLETED]
    assert state["outcome"] == "completed"


async def test_several_specialists_of_one_step_all_run_and_one_success_is_enough():
    def work(context):
        return "text"

    def broken(context):
        return failed("down")

    with ScriptedModel({"feedback": COMPLETE}) as model:
        team = [
            Specialist(name="a", intended_use="Works.", run=work),
            Specialist(name="b", intended_use="Works.", run=work),
            Specialist(name="c", intended_use="Fails.", run=broken),
            Specialist(name="d", intended_use="Tells.", run=lambda c: c.inputs[1]),
        ]
        graph = build_graph(Team(host=Host(model=model), specialists=team))
        plan = "- [ ] 1. All @a @b @c\n- [ ] 2. Tell @d (after 1)\n"
        state = (await run(graph, {"messages": [("user", "Go.")], "plan": plan})).state
    results = state["current_specialist_results"]
    assert set(results) == {"1/a", "1/b", "1/c", "2/d"}
    assert statuses(state) == [COMPLETED, COMPLETED]
    assert results["2/d"].text == "### a\n\ntext\n\n### b\n\ntext"


async def test_an_error_that_can_pass_is_tried_again_and_counted():
    tries = []

    def work(context):
        tries.append(context.attempt)
        if len(tries) < 3:
            raise ConnectionError("reset")
        return "done"

    state = await run_plan("- [ ] 1. One @a\n", work)
    assert tries == [1, 2, 3]
    assert state["current_plan"].step(1).retry_count == 2
    assert state["current_specialist_results"]["1/a"].retry_count == 2


@pytest.mark.parametrize(
    "error", [TypeError("wrong"), failed("never", retry=False)], ids=["fault", "refusal"]
)
async def test_an_error_that_cannot_pass_is_not_tried_again(error):
    tries = []

    def work(context):
        tries.append(context.attempt)
        if isinstance(error, Exception):
            raise error
        return error

    state = await run_plan("- [ ] 1. One @a\n", work)
    assert tries == [1]
    assert state["outcome"] == "failed"


async def test_the_document_says_how_often_a_step_is_tried_again():
    tries = []

    def work(context):
        tries.append(context.attempt)
        return failed("again", retry=True)

    await run_plan("- [ ] 1. One @a (retries 1)\n", work)
    assert tries == [1, 2]


async def test_a_step_that_takes_too_long_fails_and_its_siblings_do_not():
    async def work(context):
        if context.plan_step.id == 1:
            await asyncio.Event().wait()
        return "done"

    plan = "- [ ] 1. Hangs @a (timeout 50ms; retries 0)\n- [ ] 2. Two @b\n"
    state = await run_plan(plan, work)
    assert statuses(state) == [FAILED, COMPLETED]
    assert "0.05 s" in state["current_specialist_results"]["1/a"].error


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


async def test_a_final_failure_is_not_sent_again_without_a_revision():
    tries = []

    def work(context):
        tries.append(context.plan_step.id)
        return failed("no")

    going_on = "---\nverdict: continue\nsuggested_action: execute_step\nupdate: more\n---\n"
    plan = "- [ ] 1. One @a\n- [ ] 2. Two @a (after 1)\n"
    state = await run_plan(plan, work, feedback=[going_on, COMPLETE])
    assert tries == [1]
    assert state["outcome"] == "failed"


@pytest.mark.parametrize(("scope", "rounds"), [("plan", 1), ("ready", 3), ("step", 4)])
async def test_the_scope_says_how_far_a_round_reaches(scope, rounds):
    plan = """\
- [ ] 1. One @a
- [ ] 2. Two @a
- [ ] 3. Three @b (after 1, 2)
- [ ] 4. Four @b (after 3)
"""
    state = await run_plan(plan, lambda context: "done", settings=RunSettings(round_scope=scope))
    assert state["outcome"] == "completed"
    assert len(state["execution_history"]) == rounds


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


async def test_a_finished_step_of_a_plan_handed_in_is_not_run_again():
    def work(context):
        return f"saw {context.inputs}"

    plan = "- [x] 1. One @a\n\n  > Known before.\n\n- [ ] 2. Two @a (after 1)\n"
    state = await run_plan(plan, work)
    assert set(state["current_specialist_results"]) == {"2/a"}
    assert state["current_specialist_results"]["2/a"].text == "saw {1: 'Known before.'}"


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


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (SystemExit(3), "it tried to exit the process (exit 3)"),
        (asyncio.CancelledError(), "it cancelled itself"),
        (ValueError("no"), "ValueError: no"),
    ],
    ids=["exit", "cancel", "error"],
)
async def test_whatever_a_specialist_raises_is_its_own_failure(error, said):
    async def work(context):
        if context.plan_step.id == 1:
            raise error
        return "done"

    plan = "- [ ] 1. Raises @a (retries 0)\n- [ ] 2. Two @b\n"
    state = await run_plan(plan, work)
    assert statuses(state) == [FAILED, COMPLETED]
    assert said in state["current_specialist_results"]["1/a"].error


@pytest.mark.parametrize("answer", [None, b"bytes", 7, {"no": "messages"}, object()])
async def test_an_answer_that_is_none_is_a_failure_with_a_reason(answer):
    state = await run_plan("- [ ] 1. Odd @a\n", lambda context: answer)
    assert statuses(state) == [FAILED]
    assert "return a message, a text" in state["current_specialist_results"]["1/a"].error


@pytest.mark.parametrize("on_failure", ["finish", "halt"])
async def test_what_a_result_of_an_earlier_round_asked_for_is_past(on_failure):
    def wishes(context):
        if on_failure == "halt":
            return failed("no")
        return SpecialistResult(replan_needed=True)

    going_on = "---\nverdict: continue\n---\n"
    # Of two specialists one may still succeed, so a failure of the other needs no judgement.
    judged = [COMPLETE] if on_failure == "halt" else [going_on, COMPLETE]
    with ScriptedModel({"feedback": judged}) as model:
        team = [
            Specialist(name="a", intended_use="Asks.", run=wishes),
            Specialist(name="b", intended_use="Works.", run=lambda context: "done"),
        ]
        graph = build_graph(
            Team(
                host=Host(model=model),
                specialists=team,
                on_failure=on_failure,
                limits=Limits(max_parallel_steps=1),
            )
        )
        plan = "- [ ] 1. Both @a @b\n- [ ] 2. Other @b\n"
        state = (await run(graph, {"messages": [("user", "Go.")], "plan": plan})).state
    assert state["outcome"] == "completed"
    assert set(state["current_specialist_results"]) == {"1/a", "1/b", "2/b"}


async def test_the_most_urgent_step_starts_first():
    order = []
    plan = "- [ ] 1. A @a\n- [ ] 2. B @a (priority 1)\n- [ ] 3. C @a (priority 9)\n"

    def work(context):
        order.append(context.plan_step.id)
        return "done"

    await run_plan(plan, work, settings=RunSettings(limits=Limits(max_parallel_steps=1)))
    assert order == [3, 2, 1]
