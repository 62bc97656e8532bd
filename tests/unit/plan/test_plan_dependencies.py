"""Which steps of a plan are ready, waiting, blocked or left out."""

from datetime import UTC, datetime
from itertools import combinations, pairwise, permutations

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
    width,
)
from replan.plan.order import closing_edges

NOON = datetime(2026, 8, 1, 12, tzinfo=UTC)


def plan(*lines: str) -> TaskPlan:
    return parse_plan_from_markdown("".join(f"- {line}\n" for line in lines))


def ids(steps: tuple[PlanStep, ...]) -> list[int]:
    return [step.id for step in steps]


def test_a_step_that_awaits_an_unknown_step_is_blocked() -> None:
    step = PlanStep(id=2, description="b", dependencies=(1,))
    conditional = PlanStep(id=2, description="b", condition=Condition(step=1, outcome="failed"))
    assert readiness(step, {2: step}) == "blocked"
    assert readiness(conditional, {2: conditional}) == "blocked"


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
