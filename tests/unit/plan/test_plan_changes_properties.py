"""Laws of the plan algebra, over random plans and random changes."""

from datetime import UTC, datetime

import pytest
from hypothesis import given, strategies as st

from random_plans import random_plans
from replan.errors import PlanChangeError
from replan.plan import (
    Addition,
    PlanChanges,
    PlanDocument,
    PlanStep,
    StepStatus,
    TaskPlan,
    apply,
    apply_valid,
    compare,
    made_progress,
    merge_revision,
    normalised,
    refresh_content,
    render_for_model,
    repeats_revision,
    replay,
    unmet_steps,
)
from replan.plan.applying import applicable_part
from replan.plan.changes import changed, difference
from replan.plan.merging import matched, without_steps
from replan.plan.option_table import STRUCTURAL
from replan.plan.order import closing_edges

LATER = datetime(2026, 8, 1, 13, tzinfo=UTC)
TEAM = ("researcher", "analyst", "writer")
WORDS = st.sampled_from(["Find", "Compare", "Write", "Check (again)", "Ask @home", "> quote"])


# A completed step has a result, a failed one says why.
OUTCOMES = st.sampled_from(
    [{"status": status} for status in ("pending", "executing", "skipped")]
    + [{"status": "completed", "result": "Done."}, {"status": "failed", "feedback": "No."}]
)
WORK = st.fixed_dictionaries(
    {
        "description": st.lists(WORDS, min_size=1, max_size=3).map(" ".join),
        "brief": st.sampled_from(["", "Look well.", "- depends on: 1", "a\n\nb"]),
        "parameters": st.sampled_from([{}, {"limit": 3}, {"tags": ["a", "b"]}]),
        "assigned_to": st.sampled_from(["", *TEAM]),
        "priority": st.integers(-1, 2),
        "optional": st.booleans(),
        "timeout": st.sampled_from([None, 30.0]),
        "writes": st.sampled_from([(), ("a.md",), ("a.md", "b c")]),
        "retry_count": st.integers(0, 2),
    }
)
TITLES = st.sampled_from(["", "The plan", "Another plan"])


def plans(largest: int = 9) -> st.SearchStrategy[TaskPlan]:
    alone = st.builds(lambda work, outcome: work | outcome, WORK, OUTCOMES)
    drawn = random_plans(alone, ids=st.integers(1, largest), most=6, titles=TITLES)
    return drawn.map(normalised).map(refresh_content)


@st.composite
def plans_with_successors(draw: st.DrawFn) -> tuple[TaskPlan, TaskPlan]:
    """A plan, and another one that has all its finished steps as they are."""
    old, new = draw(plans()), draw(plans(largest=14))
    finished = {step.id: step for step in old.steps if step.is_finished}
    needed = set(finished)
    while missing := {
        other for step_id in needed for other in old.step(step_id).awaits if other not in needed
    }:
        needed |= missing
    kept = [step for step in old.steps if step.id in needed]
    ids = {step.id for step in kept}
    others = [step for step in new.steps if step.id not in ids]
    every = tuple(draw(st.permutations([*kept, *others])))
    wanted = new.replace(steps=every)
    cut = [
        step
        if step.id in ids
        else step.replace(
            dependencies=tuple(d for d in step.dependencies if d in {o.id for o in every}),
            condition=step.condition
            if step.condition and step.condition.step in {o.id for o in every}
            else None,
        )
        for step in every
    ]
    wanted = wanted.replace(steps=tuple(cut))
    if closing_edges(wanted.steps):
        wanted = wanted.replace(
            steps=tuple(
                step if step.id in ids else step.replace(dependencies=(), condition=None)
                for step in cut
            )
        )
    return old, wanted


IDS = st.integers(1, 12)
NAMES = st.sampled_from([*TEAM, "nobody", ""])
FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "description": WORDS,
        "dependencies": st.lists(IDS, max_size=2),
        "condition": st.none() | st.fixed_dictionaries({"step": IDS, "outcome": st.just("failed")}),
        "assigned_to": NAMES,
        "priority": st.integers(0, 3),
        "brief": st.sampled_from(["", "New."]),
    },
)
ADDED = st.builds(
    PlanStep,
    id=IDS,
    description=WORDS,
    status=st.sampled_from(StepStatus),
    assigned_to=NAMES,
    dependencies=st.lists(IDS, max_size=2).map(tuple),
)
# Any change, most of them impossible for most plans.
CHANGES: st.SearchStrategy[PlanChanges] = st.builds(
    PlanChanges,
    added=st.lists(st.builds(Addition, step=ADDED, index=st.integers(0, 9)), max_size=2).map(tuple),
    removed=st.lists(IDS, max_size=2).map(tuple),
    modified=st.dictionaries(IDS, FIELDS, max_size=2),
    reordered=st.just(()) | st.lists(IDS, max_size=5).map(tuple),
    title=st.sampled_from([None, "", "Renamed"]),
)


def structure(plan: TaskPlan) -> tuple[object, ...]:
    fields = ("id", *STRUCTURAL)
    return plan.title, [tuple(getattr(step, name) for name in fields) for step in plan.steps]


def finished(plan: TaskPlan) -> dict[int, PlanStep]:
    return {step.id: step for step in plan.steps if step.is_finished}


def assert_valid(plan: TaskPlan) -> None:
    ids = [step.id for step in plan.steps]
    assert len(ids) == len(set(ids))
    assert all(other in ids for step in plan.steps for other in step.awaits)
    assert not closing_edges(plan.steps)


@given(plans_with_successors())
def test_applying_the_comparison_gives_the_new_structure(pair: tuple[TaskPlan, TaskPlan]) -> None:
    old, new = pair
    found = compare(old, new)
    applied = apply(old, found, at=LATER)
    renamed = dict(
        zip((step.id for step in new.steps), (step.id for step in applied.steps), strict=True)
    )
    expected = new.replace(
        steps=tuple(
            step.replace(
                id=renamed[step.id],
                dependencies=tuple(renamed[other] for other in step.dependencies),
                condition=step.condition
                and step.condition.replace(step=renamed[step.condition.step]),
            )
            for step in new.steps
        )
    )
    assert structure(applied) == structure(expected)
    assert finished(applied).items() >= finished(old).items()
    assert (applied is old) == (not found)
    assert not compare(applied, applied)
    assert apply(applied, PlanChanges(), at=LATER) is applied


@given(plans(), st.lists(CHANGES, max_size=5))
def test_no_sequence_of_changes_makes_an_invalid_plan(
    first: TaskPlan, revisions: list[PlanChanges]
) -> None:
    plan = first
    for revision in revisions:
        before = plan
        plan, refusals = apply_valid(before, revision, at=LATER, team=TEAM)
        assert_valid(plan)
        assert finished(plan) == finished(before)
        assert plan.version == before.version + (plan is not before)
        assert (
            PlanDocument.parse(plan.content).plan.total_steps == plan.total_steps
            if plan.steps
            else True
        )
        if not refusals:
            assert plan == apply(before, revision, at=LATER, team=TEAM)
    assert structure(replay(first, plan.update_history)) == structure(plan)
    assert [update.version for update in plan.update_history] == [
        *range(first.version + 1, plan.version + 1)
    ]


@given(plans(), CHANGES)
def test_a_refused_revision_leaves_the_plan_as_it_is(plan: TaskPlan, revision: PlanChanges) -> None:
    before = plan.model_dump_json()
    try:
        apply(plan, revision, at=LATER, team=TEAM)
    except PlanChangeError:
        assert apply_valid(plan, revision, at=LATER, team=TEAM)[1]
    else:
        assert apply_valid(plan, revision, at=LATER, team=TEAM)[1] == ()
    assert plan.model_dump_json() == before


@given(plans())
def test_a_model_that_repeats_the_plan_changes_nothing(plan: TaskPlan) -> None:
    repeated = PlanDocument.parse(render_for_model(plan)).plan
    assert not compare(plan, merge_revision(plan, repeated)[0])


@given(plans(), plans(largest=14))
def test_a_merged_revision_keeps_every_finished_step(old: TaskPlan, new: TaskPlan) -> None:
    merged, _ = merge_revision(old, new)
    assert finished(merged).keys() >= finished(old).keys()
    revised, _ = apply_valid(old, compare(old, merged), at=LATER)
    assert_valid(revised)
    assert finished(revised) == finished(old)
    assert not made_progress(old, revised)


@given(plans_with_successors())
def test_the_second_time_a_revision_is_a_repetition(pair: tuple[TaskPlan, TaskPlan]) -> None:
    old, new = pair
    found = compare(old, new)
    history = apply(old, found, at=LATER).update_history
    assert not found or not repeats_revision(history, history[-1])
    if len(history) == 1:
        again = history[0].replace(version=history[0].version + 1)
        assert repeats_revision(history, again)


@given(plans(), plans(largest=14), st.sets(st.integers(1, 14), max_size=2))
def test_no_change_that_is_made_leans_on_a_refused_one(
    old: TaskPlan, new: TaskPlan, misread: set[int]
) -> None:
    changes = difference(old, merge_revision(old, new)[0])
    made, refusals = applicable_part(old, changes, misread=misread)
    apply(old, made, at=LATER)
    wanted, touched = changes.fresh.keys() | changes.modified.keys(), made.fresh | made.modified
    refused = misread | (wanted - touched.keys())
    assert not touched.keys() & misread
    steps = changed(old, made).by_id
    assert not [step_id for step_id in touched if refused & set(steps[step_id].awaits)]
    # What is refused has a reason, and could not be made beside the rest, or would lean. (A change
    # that waits for a removed step is refused before it turns out that the step has to stay.)
    lost = wanted - touched.keys()
    assert refusals or not lost
    for step_id in lost - misread if made.removed == changes.removed else ():
        more = changes.without(refused - {step_id})
        if not refused & set(changed(old, more).by_id[step_id].awaits):
            with pytest.raises(PlanChangeError):
                apply(old, more, at=LATER)


@given(plans(), st.sets(st.integers(1, 9), max_size=3))
def test_who_waited_for_what_is_taken_out_waits_for_what_that_waited_for(
    plan: TaskPlan, gone: set[int]
) -> None:
    after = without_steps(plan, gone)
    assert [step.id for step in after.steps] == [s.id for s in plan.steps if s.id not in gone]
    before = plan.by_id

    def ahead(step: PlanStep) -> set[int]:
        """All that a step comes after through steps that are gone."""
        found: set[int] = set()
        for other in step.dependencies:
            found |= (
                ahead(before[other].replace(dependencies=before[other].awaits))
                if (other in gone)
                else {other}
            )
        return found

    for step in after.steps:
        wanted = set(before[step.id].dependencies) if step.is_finished else ahead(before[step.id])
        assert set(step.dependencies) == wanted


@given(plans(), plans(largest=14))
def test_an_open_required_step_vanishes_only_where_it_is_taken_away(
    old: TaskPlan, new: TaskPlan
) -> None:
    new = matched(old, new)
    assert matched(old, new) == new
    dropped = {step.id for step in new.steps if step.status is StepStatus.SKIPPED}
    kept = merge_revision(old, new)[0].by_id
    vanished = [step for step in unmet_steps(old) if step.id not in kept.keys() | dropped]
    assert all(step.status is StepStatus.FAILED for step in vanished)
