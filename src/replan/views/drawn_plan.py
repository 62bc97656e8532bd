"""A plan as a drawing: boxes for a terminal, or the text of a Mermaid flowchart."""

import re

from rich.box import ASCII
from rich.cells import cell_len
from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from replan.plan.model import PlanStep, StepStatus, TaskPlan
from replan.plan.order import layers
from replan.views.cells import cut, folded, one_line
from replan.views.run.overview import MARKS
from replan.views.step_texts import waits_in_words

_USUAL_BOX, _NARROWEST_BOX, _GAP = 26, 16, 2
_LONGEST_LABEL = 200
_MOST_LINES = 3  # of what a box says about its step
# Mermaid reads these in a quoted label as markup, or as its end.
_MARKUP = re.compile(r"[\"#&<>`\\;]")
_COLOURS = {
    StepStatus.COMPLETED: "fill:#d7f5dd,stroke:#2b8a3e,color:#123",
    StepStatus.FAILED: "fill:#ffe0e0,stroke:#c92a2a,color:#123",
    StepStatus.SKIPPED: "fill:#f1f3f5,stroke:#868e96,color:#345",
    StepStatus.EXECUTING: "fill:#dbeafe,stroke:#1864ab,color:#123",
}


def mermaid(plan: TaskPlan) -> str:
    """The text of a flowchart: a node a step, an arrow a dependency, dashed that of a condition."""
    lines = ["flowchart TD"]
    lines += [f'    s{step.id}["{_label(step)}"]{_class(step)}' for step in plan.steps]
    for step in plan.steps:
        lines += [f"    s{other} --> s{step.id}" for other in step.dependencies]
        if (condition := step.condition) is not None:
            lines.append(f"    s{condition.step} -. if {condition.outcome} .-> s{step.id}")
    used = {step.status for step in plan.steps}
    lines += [
        f"    classDef {status} {style}" for status, style in _COLOURS.items() if status in used
    ]
    return "\n".join(lines)


def _label(step: PlanStep) -> str:
    who = f" @{', '.join(step.specialists)}" if step.specialists else ""
    text = cut(one_line(f"{step.id}. {step.description}{who}"), _LONGEST_LABEL)
    return _MARKUP.sub(lambda found: f"#{ord(found[0])};", text)


def _class(step: PlanStep) -> str:
    return f":::{step.status}" if step.status in _COLOURS else ""


def boxes(plan: TaskPlan, width: int) -> list[str]:
    """Lines with a box a step, which names what it waits for; that is on a level above."""
    width = max(width, _NARROWEST_BOX)
    console = Console(width=width, color_system=None, highlight=False, markup=False, emoji=False)
    lines = list[str]()
    for level, layer in enumerate(layers(plan), 1):
        # Rather narrower boxes than one below the other.
        number = max(1, min(len(layer), (width + _GAP) // (_USUAL_BOX + _GAP)))
        widest = max(cell_len(line) for step in layer for line in _box_texts(step)) + 4
        box = max(_NARROWEST_BOX, min(widest, (width + _GAP) // number - _GAP))
        panels = [Panel(_box_text(step, box - 4), box=ASCII, width=box) for step in layer]
        grid = Table.grid(padding=(0, _GAP), pad_edge=False)
        for at in range(0, len(panels), number):
            grid.add_row(*panels[at : at + number])
        rows = console.render_lines(grid, pad=False)
        texts = ("".join(segment.text for segment in row).rstrip() for row in rows)
        lines += [f"level {level}", *texts]
    return lines


def _box_texts(step: PlanStep) -> tuple[str, str, str]:
    who, waits = one_line(", ".join(step.specialists)) or "-", waits_in_words(step)
    return f"{MARKS[step.status]} {step.id}. {one_line(step.description)}", who, "; ".join(waits)


def _box_text(step: PlanStep, room: int) -> Text:
    """What a box says: of the text of its step a few lines."""
    head, *others = _box_texts(step)
    lines = [*folded(cut(head, room * _MOST_LINES), room)]
    rest = " ".join(map(str.strip, lines[_MOST_LINES:]))
    lines = [*lines[: _MOST_LINES - 1], " ".join([*lines[_MOST_LINES - 1 : _MOST_LINES], rest])]
    cuts = (cut(line, room) for line in filter(str.strip, (*lines, *others)))
    return Text("\n".join(cuts), no_wrap=True)
