"""The form of a plan that a document can hold, and steps written in it as new lines."""

import json
import math
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any

from replan.base.values import mapped
from replan.plan.encoding import decode, encode_to_fit
from replan.plan.markdown.body import write_body
from replan.plan.markdown.lines import indent_of, is_blank, unify_line_ends
from replan.plan.markdown.outline import MARKS, read_heading
from replan.plan.markdown.title import write_title
from replan.plan.model import PlanStep, StepStatus, TaskPlan
from replan.plan.option_table import OPTIONS, STRUCTURAL

VISIBLE = ("id", *STRUCTURAL, "status", "result", "feedback")
"""The fields of a step that are in a document."""

_NORMAL_FORMS = [(option.field, option.kind.normal) for option in OPTIONS if option.kind.normal]
_TO_NORMALISE = attrgetter(*(name for name, _ in _NORMAL_FORMS))
_AS_THEY_ARE = attrgetter(*(name for name in VISIBLE if name not in ("status", "parameters")))


def normalised(plan: TaskPlan) -> TaskPlan:
    """Return the plan as a document can hold it; see `normalised_step`."""
    steps = tuple(normalised_step(step) for step in plan.steps)
    same = all(new is old for new, old in zip(steps, plan.steps, strict=True))
    return plan if same else plan.replace(steps=steps)


def normalised_step(step: PlanStep) -> PlanStep:
    r"""Return the step as a document can hold it.

    An empty description becomes "Step 3"; line ends in brief, result and feedback become `\n`;
    empty and repeated specialists, dependencies and things to write go; an endless timeout becomes
    none; parameters that are not JSON numbers (NaN, infinity) become null. Everything else stays.
    (Only parameters nested more than a hundred deep have no form that a document can hold.)
    """
    if _is_normal(step):
        return step
    names = tuple(dict.fromkeys(name for name in (step.assigned_to, *step.joined_by) if name))
    changed = {
        "description": step.description or f"Step {step.id}",
        "brief": unify_line_ends(step.brief),
        "result": unify_line_ends(step.result),
        "feedback": unify_line_ends(step.feedback),
        "assigned_to": names[0] if names else "",
        "joined_by": names[1:],
        **{name: normal(value) for name, normal in _NORMAL_FORMS if (value := getattr(step, name))},
        "parameters": step.parameters and mapped(step.parameters, _finite),
    }
    differing = {name: value for name, value in changed.items() if getattr(step, name) != value}
    return step.replace(**differing) if differing else step


def _is_normal(step: PlanStep) -> bool:
    """Whether a step certainly has this form, as nearly all have: what it does not say has it."""
    return (
        step.description != ""
        and not (step.joined_by or step.parameters or any(_TO_NORMALISE(step)))
        and "\r" not in f"{step.brief}{step.result}{step.feedback}"
    )


def visible_parts(step: PlanStep) -> tuple[object, ...]:
    """Return the parts of a step that a document shows, for comparison; executing is pending."""
    is_running = step.status is StepStatus.EXECUTING
    return (
        *_AS_THEY_ARE(step),
        StepStatus.PENDING if is_running else step.status,
        # Python holds 1, 1.0 and True to be equal, a document does not.
        json.dumps(step.parameters, sort_keys=True) if step.parameters else "",
    )


def _finite(leaf: Any) -> Any:
    return None if isinstance(leaf, float) and not math.isfinite(leaf) else leaf


def render(plan: TaskPlan) -> str:
    """Write the canonical document of a plan, whatever its `content` is."""
    plan = normalised(plan)
    lines = [heading_line(plan.title)] if plan.title else []
    blocks = [step_lines(step) for step in plan.steps]
    return "\n".join([*_set_apart([lines, *blocks] if lines else blocks, titled=bool(lines)), ""])


def render_for_model(plan: TaskPlan) -> str:
    """Write the canonical document of a plan without the steps' results, for a prompt."""
    untold = {"result": ""}
    steps = [step.model_copy(update=untold) if step.result else step for step in plan.steps]
    return render(plan.model_copy(update={"steps": tuple(steps)}))


def step_lines(step: PlanStep, indent: str = "", marker: str = "- ") -> list[str]:
    """Write the lines of a step; a marker that is a number says the step's own."""
    number = "" if marker[0].isdigit() else f"{step.id}. "
    title = f"{indent}{marker}[{MARKS[step.status]}] {write_title(step, number=number)}"
    return [title, *lines_under(write_body(step), indent_of(indent) + len(marker))]


def lines_under(lines: Iterable[str], columns: int) -> list[str]:
    """Write lines under the line of a step, after a blank line; nothing if there are none."""
    indented = [" " * columns + line if line else "" for line in lines]
    return ["", *indented] if indented else []


def heading_line(title: str) -> str:
    """Write a title as a heading, in the first way that reads back as it."""
    way = encode_to_fit(title, lambda way: decode(read_heading(f"# {way}") or "") == title)
    return f"# {way}"


def _set_apart(blocks: Sequence[list[str]], *, titled: bool) -> list[str]:
    """Join blocks, with blank lines around the title and around steps of several lines."""
    lines: list[str] = []
    for at, block in enumerate(blocks):
        before = blocks[at - 1] if at else []
        apart = len(block) > 1 or len(before) > 1 or (titled and at == 1)
        lines += ["", *block] if at and apart and not is_blank(lines[-1]) else block
    return lines
