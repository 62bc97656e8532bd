"""Which steps of a plan are ready, waiting, blocked or left out."""

from datetime import UTC, datetime
from itertools import combinations, pairwise, permutations

import pytest
from hypothesis import given, strategies as st

from random_plans import random_plans
from replan.plan import (
    Condition,
    PlanDocument,
    PlanStep,
    StepStatus,
    TaskPlan,
    blocked_steps,
    critical_length,
    critical_path,
    parse_plan_from_markdown,
    readiness,
    ready_steps,
    run_order,
    settle_conditions,
    skippable_steps,
    unmet_steps,
    width,
)
from replan.plan.dependencies import steps_left_out
from replan.plan.order import closing_edges

NOON = datetime(2026, 8, 1, 12, tzinfo=UTC)


def plan(*lines: str) -> TaskPlan:
    return parse_plan_from_markdown("".join(f"- {line}\n" for line in lines))


def ids(steps: tuple[PlanStep, ...]) -> list[int]:
    return [step.id for step in steps]


def state_of_last(*lines: str) -> str:
    made = plan(*lines)
    return readiness(made.steps[-1], made.by_id)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["[ ] 1. a"], "ready"),
        (["[ ] 1. a", "[ ] 2. b (after 1)"], "waiting"),
        (["[~] 1. a", "[ ] 2. b (after 1)"], "waiting"),
        (["[x] 1. a", "[ ] 2. b (after 1)"], "ready"),
        (["[-] 1. a", "[ ] 2. b (after 1)"], "ready"),
        (["[!] 1. a", "[ ] 2. b (after 1)"], "blocked"),
        (["[!] 1. a (optional)", "[ ] 2. b (after 1)"], "ready"),
        (["[!] 1. a", "[ ] 2. b", "[ ] 3. c (after 1, 2)"], "blocked"),
        # The failure is handled: the dependent also waits for the step that fixes it.
        (["[!] 1. a", "[ ] 2. b (if 1 failed)", "[ ] 3. c (after 1, 2)"], "waiting"),
        (["[!] 1. a", "[x] 2. b (if 1 failed)", "[ ] 3. c (after 1, 2)"], "ready"),
        (["[!] 1. a", "[!] 2. b (if 1 failed)", "[ ] 3. c (after 1, 2)"], "blocked"),
        (["[!] 1. a", "[x] 2. b (if 1 failed)", "[ ] 3. c (after 1; if 2 completed)"], "ready"),
        # A condition alone governs the step that it names.
        (["[ ] 1. a", "[ ] 2. b (if 1 failed)"], "waiting"),
        (["[!] 1. a", "[ ] 2. b (if 1 failed)"], "ready"),
        (["[!] 1. a", "[ ] 2. b (after 1; if 1 failed)"], "ready"),
        (["[x] 1. a", "[ ] 2. b (if 1 failed)"], "skip"),
        (["[-] 1. a", "[ ] 2. b (if 1 failed)"], "skip"),
        (["[x] 1. a", "[ ] 2. b (if 1 completed)"], "ready"),
        (["[!] 1. a", "[ ] 2. b (if 1 completed)"], "skip"),
        (["[-] 1. a", "[ ] 2. b (after 1; if 1 completed)"], "skip"),
        # Skipping wins over waiting and over being blocked.
        (["[x] 1. a", "[ ] 2. b", "[ ] 3. c (after 2; if 1 failed)"], "skip"),
        (["[x] 1. a", "[!] 2. b", "[ ] 3. c (after 2; if 1 failed)"], "skip"),
        (["[x] 1. a", "[!] 2. b", "[ ] 3. c (after 2; if 1 completed)"], "blocked"),
    ],
)
def test_a_step_is_judged_by_the_steps_that_it_awaits(lines: list[str], expected: str) -> None:
    assert state_of_last(*lines) == expected


def test_a_step_that_awaits_an_unknown_step_is_blocked() -> None:
    step = PlanStep(id=2, description="b", dependencies=(1,))
    conditional = PlanStep(id=2, description="b", condition=Condition(step=1, outcome="failed"))
    assert readiness(step, {2: step}) == "blocked"
    assert readiness(conditional, {2: conditional}) == "blocked"


def test_ready_steps_come_by_priority_then_number() -> None:
    made = plan(
        "[ ] 4. d", "[~] 3. c (priority 2)", "[ ] 2. b (priority 2)", "[x] 1. a (priority 9)"
    )
    assert ids(ready_steps(made)) == [2, 3, 4]


def test_what_waits_for_a_blocked_step_is_blocked_too() -> None:
    made = plan(
        "[ ] 4. d (after 3, 5)",
        "[!] 1. a",
        "[ ] 2. b (after 1)",
        "[ ] 3. c (after 2)",
        "[ ] 5. e",
        "[ ] 6. f (if 2 failed)",
        "[ ] 7. g (after 5)",
        "[!] 8. h (after 1)",
    )
    assert ids(blocked_steps(made)) == [4, 2, 3, 6]


def test_what_waits_for_a_step_that_will_be_skipped_is_not_blocked() -> None:
    made = plan("[x] 1. a", "[!] 2. b", "[ ] 3. c (after 2; if 1 failed)", "[ ] 4. d (after 3)")
    assert ids(blocked_steps(made)) == []
    assert ids(skippable_steps(made)) == [3]


def test_skipping_spreads_until_nothing_changes() -> None:
    made = plan(
        "[ ] 4. d (after 3)",
        "[ ] 3. c (if 2 completed)",
        "[x] 1. a",
        "[ ] 2. b (if 1 failed)",
        "[ ] 5. e (if 3 failed)",
    )
    assert ids(skippable_steps(made)) == [3, 2, 5]
    settled = settle_conditions(made, NOON)
    assert [step.status for step in settled.steps] == [
        "pending",
        *["skipped"] * 1,
        "completed",
        *["skipped"] * 2,
    ]
    assert settled.step(2).feedback == "Step 1 is completed, not failed."
    assert settled.step(2).updated_at == settled.updated_at == NOON
    assert PlanDocument.parse(settled.content).plan.step(2).feedback == settled.step(2).feedback
    assert settle_conditions(settled, NOON) is settled
    assert ids(ready_steps(settled)) == [4]


def test_unmet_steps_keep_the_plan_from_being_complete() -> None:
    made = plan(
        "[x] 1. a",
        "[-] 2. b",
        "[!] 3. c",
        "[x] 4. fixes c (if 3 failed)",
        "[!] 5. d",
        "[!] 6. fixes d (if 5 failed; optional)",
        "[ ] 7. e",
        "[ ] 8. f (optional)",
    )
    assert ids(unmet_steps(made)) == [5, 7]


def test_a_cycle_is_named_in_the_order_of_waiting() -> None:
    steps = [
        PlanStep(id=1, description="a", dependencies=(2,)),
        PlanStep(id=2, description="b", condition=Condition(step=3, outcome="failed")),
        PlanStep(id=3, description="c", dependencies=(9, 2)),
    ]
    assert closing_edges(steps)[0][1] == (2, 3)
    assert not closing_edges(steps[:2])
    assert closing_edges([PlanStep(id=1, description="a", dependencies=(1,))])[0][1] == (1,)


def test_a_long_chain_is_no_trouble() -> None:
    steps = tuple(
        PlanStep(id=at, description="a", dependencies=(at - 1,) if at > 1 else ())
        for at in range(5000, 0, -1)
    )
    made = TaskPlan(steps=steps)
    closed = (*steps[:-1], steps[-1].replace(dependencies=(5000,)))
    assert not closing_edges(made.steps)
    assert len(closing_edges(closed)[0][1]) == 5000
    assert critical_path(made) == tuple(range(1, 5001))
    assert len(blocked_steps(TaskPlan(steps=closed))) == 5000
    assert ids(run_order(made))[:2] == [1, 2]


def test_the_critical_path_follows_durations_and_leaves_failed_steps_out() -> None:
    made = plan(
        "[x] 1. a", "[ ] 2. b", "[!] 3. c", "[ ] 4. d (after 1, 2, 3)", "[ ] 5. e (if 4 failed)"
    )
    assert critical_path(made) == (1, 4, 5)
    assert critical_path(made, {2: 2.0, 3: 99.0}) == (2, 4, 5)
    assert critical_length(made, {2: 2.0}) == 4.0
    longer = made.with_steps(made.step(5).replace(estimated_duration=10.0))
    assert critical_length(longer) == 12.0
    assert (critical_path(TaskPlan()), critical_length(TaskPlan())) == ((), 0.0)


def test_the_width_of_a_thousand_steps_is_found() -> None:
    steps = tuple(
        PlanStep(
            id=at,
            description="a",
            dependencies=tuple(other for other in (at // 2, at - 37) if 0 < other < at),
        )
        for at in range(1, 1001)
    )
    assert width(TaskPlan(steps=steps)) == 37


SMALL = random_plans(
    st.fixed_dictionaries(
        {
            "status": st.sampled_from(StepStatus),
            "priority": st.integers(0, 1),
            "optional": st.booleans(),
        }
    )
)


def reaches(made: TaskPlan) -> set[tuple[int, int]]:
    """All pairs of which the first waits, directly or not, for the second."""
    pairs = {(step.id, other) for step in made.steps for other in step.awaits}
    while True:
        longer = {(one, four) for one, two in pairs for three, four in pairs if two == three}
        if longer <= pairs:
            return pairs
        pairs |= longer


@given(SMALL)
def test_the_width_is_that_of_the_largest_set_of_independent_steps(made: TaskPlan) -> None:
    still_open = made.replace(steps=tuple(made.open_steps()))
    pairs = reaches(still_open)
    open_ids = [step.id for step in still_open.steps]
    sizes = [
        size
        for size in range(len(open_ids) + 1)
        for chosen in combinations(open_ids, size)
        if not any(pair in pairs for pair in permutations(chosen, 2))
    ]
    assert width(made) == max(sizes)


@given(SMALL, st.data())
def test_the_critical_path_is_the_longest_chain(made: TaskPlan, data: st.DataObject) -> None:
    counted = {step.id: step for step in made.steps if step.status is not StepStatus.FAILED}
    durations = {step_id: float(data.draw(st.integers(1, 5))) for step_id in counted}

    def longest_to(step_id: int) -> float:
        before = [longest_to(other) for other in counted[step_id].awaits if other in counted]
        return durations[step_id] + max(before, default=0.0)

    path = critical_path(made, durations)
    assert critical_length(made, durations) == max(map(longest_to, counted), default=0.0)
    assert sum(durations[step_id] for step_id in path) == critical_length(made, durations)
    assert all(one in counted[two].awaits for one, two in pairwise(path))


@given(SMALL)
def test_the_order_of_running_respects_every_wait_and_the_urgency(made: TaskPlan) -> None:
    order = run_order(made)
    left = {step.id for step in made.steps}
    for step in order:
        free = [s for s in made.steps if s.id in left and not left & set(s.awaits)]
        assert step == min(free, key=lambda s: (-s.priority, s.id))
        left.remove(step.id)
    assert not left


@given(st.integers(1, 6), st.data())
def test_a_cycle_is_found_just_when_there_is_one(count: int, data: st.DataObject) -> None:
    numbers = st.integers(1, count)
    steps = [
        PlanStep(
            id=at, description="a", dependencies=tuple(data.draw(st.lists(numbers, max_size=2)))
        )
        for at in range(1, count + 1)
    ]
    cycle = next((cycle for _, cycle in closing_edges(steps)), None)
    pairs = reaches(TaskPlan(steps=tuple(steps)))
    assert (cycle is not None) == any((at, at) in pairs for at in range(1, count + 1))
    if cycle:
        following = [*cycle[1:], cycle[0]]
        assert all(two in steps[one - 1].awaits for one, two in zip(cycle, following, strict=True))


@given(SMALL)
def test_running_whatever_is_ready_ends_with_only_blocked_steps_left(made: TaskPlan) -> None:
    """Completing what is ready and skipping what is left out never strands a step unseen."""
    stuck_before = {step.id for step in blocked_steps(made)}
    plan_now = settle_conditions(made, NOON)
    while ready := ready_steps(plan_now):
        done = [step.replace(status=StepStatus.COMPLETED) for step in ready]
        plan_now = settle_conditions(plan_now.with_steps(*done), NOON)
    left = {step.id for step in plan_now.open_steps()}
    assert left == {step.id for step in blocked_steps(plan_now)}
    assert left <= stuck_before


def test_what_a_person_skipped_is_told_apart_from_what_a_condition_left_out():
    plan = parse_plan_from_markdown(
        "- [x] 1. A\n- [-] 2. B\n- [-] 3. C (if 1 failed)\n- [-] 4. D (if 1 completed)\n"
        "- [-] 5. E (optional)\n"
    )
    assert [step.id for step in steps_left_out(plan)] == [2, 4]
