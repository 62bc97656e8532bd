"""Random plans, for the laws that hold for all plans."""

from typing import Any

from hypothesis import strategies as st

from replan.plan import Condition, PlanStep, TaskPlan

NOTHING: st.SearchStrategy[dict[str, Any]] = st.just({})
SMALL_IDS = st.integers(1, 7)
UNTITLED = st.just("")


@st.composite
def random_plans(
    draw: st.DrawFn,
    alone: st.SearchStrategy[dict[str, Any]] = NOTHING,
    *,
    ids: st.SearchStrategy[int] = SMALL_IDS,
    most: int = 7,
    titles: st.SearchStrategy[str] = UNTITLED,
) -> TaskPlan:
    """Plans without cycles, in any order; `alone` draws what a step has of its own."""
    order = draw(st.lists(ids, unique=True, min_size=1, max_size=most))
    steps: list[PlanStep] = []
    for at, step_id in enumerate(order):
        fields = {"description": "Do it", **draw(alone)}
        if at:
            awaited = st.sampled_from(order[:at])
            outcomes = st.sampled_from(["completed", "failed"])
            fields["dependencies"] = tuple(draw(st.lists(awaited, max_size=2)))
            fields["condition"] = draw(
                st.none() | st.builds(Condition, step=awaited, outcome=outcomes)
            )
        steps.append(PlanStep(id=step_id, **fields))
    return TaskPlan(title=draw(titles), steps=tuple(draw(st.permutations(steps))))
