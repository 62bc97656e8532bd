"""Write steps in the canonical form, as new lines of a document."""

from collections.abc import Iterable, Sequence

from replan.plan.encoding import decode, encode_to_fit
from replan.plan.markdown.body import write_body
from replan.plan.markdown.lines import indent_of, is_blank
from replan.plan.markdown.normal import normalised
from replan.plan.markdown.outline import MARKS, read_heading
from replan.plan.markdown.title import write_title
from replan.plan.model import PlanStep, TaskPlan


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
