"""The graph of a plan: boxes in columns over lines, each box after all that it waits for."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from replan.log.report import RunReport
from replan.plan.model import PlanStep, TaskPlan
from replan.plan.order import layers
from replan.views.run.step_states import StepState, step_states

BOX_WIDTH, BOX_HEIGHT = 220, 98
_ACROSS, _DOWN, _MARGIN = 44, 18, 12
_SWEEPS = 4  # through all columns, forth and back in turns


@dataclass(frozen=True, kw_only=True)
class Box:
    """A step at its place."""

    step: PlanStep
    standing: StepState
    x: int
    y: int


@dataclass(frozen=True, kw_only=True)
class Edge:
    """A line from a step to one that waits for it, as the path of an SVG."""

    source: int
    target: int
    path: str
    condition: str = ""  # how the first one must end; empty for a dependency


@dataclass(frozen=True, kw_only=True)
class Graph:
    """Boxes and edges, and the room that they take, in pixels."""

    boxes: tuple[Box, ...]
    edges: tuple[Edge, ...]
    width: int
    height: int


def graph_of(report: RunReport) -> Graph:
    """Draw the plan of a run as it is."""
    plan = report.plan or TaskPlan()
    return draw(plan, step_states(report))


def draw(plan: TaskPlan, standing: Mapping[int, StepState]) -> Graph:
    """Place the steps of a plan: a column a layer, in an order with few crossings."""
    columns = _untangled([[step.id for step in layer] for layer in layers(plan)], plan)
    tallest = max(map(len, columns), default=0)
    places = dict(_places(columns, tallest))
    unknown = StepState(state="pending", text="")
    return Graph(
        boxes=tuple(
            Box(
                step=step,
                standing=standing.get(step.id, unknown),
                x=places[step.id][0],
                y=places[step.id][1],
            )
            for step in plan.steps
        ),
        edges=tuple(_edges(plan, places)),
        width=2 * _MARGIN + max(0, len(columns) * (BOX_WIDTH + _ACROSS) - _ACROSS),
        height=2 * _MARGIN + max(0, tallest * (BOX_HEIGHT + _DOWN) - _DOWN),
    )


def _places(
    columns: Sequence[Sequence[int]], tallest: int
) -> Iterator[tuple[int, tuple[int, int]]]:
    """Where each box is; a short column in the middle of the height."""
    for across, column in enumerate(columns):
        above = (tallest - len(column)) * (BOX_HEIGHT + _DOWN) // 2
        for down, step in enumerate(column):
            x = _MARGIN + across * (BOX_WIDTH + _ACROSS)
            yield step, (x, _MARGIN + above + down * (BOX_HEIGHT + _DOWN))


def _edges(plan: TaskPlan, places: Mapping[int, tuple[int, int]]) -> Iterator[Edge]:
    """The lines between the boxes, except those that follow from others."""
    before = _all_before(plan)
    for step in plan.steps:
        for other in step.awaits:
            condition = step.condition if step.condition and step.condition.step == other else None
            follows = any(other in before.get(step_id, ()) for step_id in step.awaits)
            if other in places and (condition or not follows):
                yield Edge(
                    source=other,
                    target=step.id,
                    path=_path(places[other], places[step.id]),
                    condition=condition.outcome if condition else "",
                )


def _all_before(plan: TaskPlan) -> dict[int, set[int]]:
    """All that each step waits for, also by way of others."""
    before: dict[int, set[int]] = {}
    for step in (step for layer in layers(plan) for step in layer):
        before[step.id] = {*step.awaits}.union(
            *(before.get(step_id, ()) for step_id in step.awaits)
        )
    return before


def _path(source: tuple[int, int], target: tuple[int, int]) -> str:
    x1, y1 = source[0] + BOX_WIDTH, source[1] + BOX_HEIGHT // 2
    x2, y2 = target[0], target[1] + BOX_HEIGHT // 2
    bend = _ACROSS // 2
    return f"M{x1},{y1} C{x1 + bend},{y1} {x2 - bend},{y2} {x2},{y2}"


def _untangled(columns: list[list[int]], plan: TaskPlan) -> list[list[int]]:
    """Put each step near the middle of those that it is joined to (barycentre)."""
    before = {step.id: step.awaits for step in plan.steps}
    behind: dict[int, list[int]] = {step.id: [] for step in plan.steps}
    for step in plan.steps:
        for other in step.awaits:
            if other in behind:
                behind[other].append(step.id)
    columns = [[*column] for column in columns]
    heights = {
        step_id: _height(at, column) for column in columns for at, step_id in enumerate(column)
    }
    for sweep in range(_SWEEPS):
        neighbours = behind if sweep % 2 else before
        for column in reversed(columns) if sweep % 2 else columns:
            middle = {step_id: _middle(step_id, neighbours[step_id], heights) for step_id in column}
            column.sort(key=middle.__getitem__)
            heights |= {step_id: _height(at, column) for at, step_id in enumerate(column)}
    return columns


def _height(at: int, column: Sequence[int]) -> float:
    """A place in a column, from its middle."""
    return at - (len(column) - 1) / 2


def _middle(step: int, neighbours: Sequence[int], heights: Mapping[int, float]) -> float:
    known_heights = [heights[step_id] for step_id in neighbours if step_id in heights]
    return fmean(known_heights) if known_heights else heights[step]
