"""Write a changed plan into its document, touching only the lines that changed."""

from collections.abc import Callable, Collection, Sequence

from replan.plan.markdown.editing import BlockEditor, marking
from replan.plan.markdown.lines import Line, is_blank, usual_line_end
from replan.plan.markdown.normal import normalised, visible_parts
from replan.plan.markdown.reading import Block, Reading, read_document
from replan.plan.markdown.rendering import heading_line, render, step_lines
from replan.plan.model import PlanStep, StepStatus, TaskPlan

NewLines = Callable[[PlanStep, Block | None], list[Line]]
"""Returns the lines of a step, for the place that it has in the document or for a new one."""


def write_document(reading: Reading, plan: TaskPlan) -> str:
    """Return the text of a document after its plan has changed.

    What was written is read again. Should the surroundings make it mean something else, all steps
    are written again in the canonical form, and at last the document as a whole: in every case the
    result reads back as the plan (normalised), if the plan is valid at all.
    """
    wanted = normalised(plan)
    text = text_of(reading.bom, reading.lines)
    if not reading.mistakes and _shows(reading, wanted) and _marks_running(reading, wanted):
        return text
    end = usual_line_end(reading.lines)
    for new_lines in (_changed_lines_only(reading, wanted, end), _canonical(end)):
        text = _Composition(reading, wanted, end, new_lines).text()
        if _shows(read_document(text), wanted):
            return text
    return reading.bom + render(wanted).replace("\n", end)


def text_of(bom: str, lines: Sequence[Line]) -> str:
    return bom + "".join(map(str, lines))


def shows(plan: TaskPlan) -> bool:
    """Whether the document of a plan has no mistakes, and exactly its steps and title."""
    return _shows(read_document(plan.content), normalised(plan))


def _shows(reading: Reading, plan: TaskPlan) -> bool:
    """Whether a document reads back as a plan."""
    steps = [block.step for block in reading.blocks]
    return (
        (not reading.mistakes or not plan.steps)
        and reading.title == plan.title
        and len(steps) == len(plan.steps)
        and all(
            visible_parts(one) == visible_parts(two)
            for one, two in zip(steps, plan.steps, strict=True)
        )
    )


def _marks_running(reading: Reading, plan: TaskPlan) -> bool:
    return all(
        step.status is not StepStatus.EXECUTING or block.item.mark == "~"
        for block, step in zip(reading.blocks, plan.steps, strict=True)
    )


def _changed_lines_only(reading: Reading, plan: TaskPlan, end: str) -> NewLines:
    blocks = {block.step.id: block for block in reading.blocks}
    editor = BlockEditor(reading.lines, end, marking(blocks, plan.steps))
    wrong = {mistake.line - 1 for mistake in reading.mistakes}

    def new_lines(step: PlanStep, beside: Block | None) -> list[Line]:
        block = blocks.get(step.id)
        if block is None:
            return editor.new(step, beside)
        must_rewrite = any(line in wrong for line in range(block.item.start, block.item.end))
        return editor.edited(block, step, must_rewrite=must_rewrite)

    return new_lines


def _canonical(end: str) -> NewLines:
    return lambda step, _: [Line(text, end) for text in step_lines(step)]


class _Composition:
    """Puts the steps of a plan into the places that the document has for steps."""

    def __init__(self, reading: Reading, plan: TaskPlan, end: str, new_lines: NewLines) -> None:
        self._reading = reading
        self._plan = plan
        self._end = end
        self._new_lines = new_lines
        self._lines: list[Line] = []
        self._gaps = _gaps(reading)
        self._places = {block.step.id: at for at, block in enumerate(reading.blocks)}

    def text(self) -> str:
        blocks, lines = self._reading.blocks, self._reading.lines
        first = blocks[0].item.start if blocks else self._reading.outline.window.stop
        self._lines.extend(self._head(lines[:first]))
        self._add_steps()
        if not blocks:
            self._lines.extend(lines[first:])
        return text_of(self._reading.bom, self._with_line_ends())

    def _add_steps(self) -> None:
        blocks = self._reading.blocks
        known = {block.step.id for block in blocks}
        kept = iter([step for step in self._plan.steps if step.id in known])
        remaining = {step.id for step in self._plan.steps}
        following = _new_after(self._plan.steps, known)
        self._add_new(following.get(None, []), blocks[0] if blocks else None)
        for block, gap in zip(blocks, self._gaps, strict=True):
            is_last = block is blocks[-1]
            if block.step.id not in remaining:
                self._close_up(gap, is_last=is_last)
                continue
            step = next(kept)
            lines = self._new_lines(step, block)
            new = following.get(step.id, [])
            has_grown = len(lines) > block.item.end - block.item.start
            self._lines.extend(lines)
            self._add_new(new, block)
            several = (new or has_grown) and self._lines[-1].text.startswith((" ", "\t"))
            blank = (Line("", self._end),) if several and not is_last else ()
            self._lines.extend(gap or blank)

    def _add_new(self, steps: Sequence[PlanStep], beside: Block | None) -> None:
        for step in steps:
            lines = self._new_lines(step, beside)
            before = self._lines[-1].text if self._lines else ""
            apart = beside is None or len(lines) > 1 or self._is_separated(beside)
            if (apart or before.startswith((" ", "\t", "#"))) and not is_blank(before):
                self._lines.append(Line("", self._end))
            self._lines.extend(lines)

    def _is_separated(self, block: Block) -> bool:
        """Whether a blank line separates a step from the one before, or the first from the next."""
        gap = self._gaps[max(0, self._places[block.step.id] - 1)]
        return len(self._gaps) > 1 and bool(gap) and is_blank(gap[0].text)

    def _close_up(self, gap: Sequence[Line], *, is_last: bool) -> None:
        """Leave out the blank lines after a removed step, or those before it if it was the last."""
        if all(is_blank(line.text) for line in gap) and not is_last:
            return
        while is_last and self._lines and is_blank(self._lines[-1].text):
            self._lines.pop()
        self._lines.extend(gap)

    def _head(self, lines: Sequence[Line]) -> list[Line]:
        """Return the lines before the first step, with the plan's title."""
        title, wanted = self._reading.outline.title, self._plan.title
        if self._reading.title == wanted:
            return list(lines)
        new = [Line(heading_line(wanted), self._end)] if wanted else []
        if title is not None:
            after = title.end
            while not wanted and after < len(lines) and is_blank(lines[after].text):
                after += 1
            return [*lines[: title.start], *new, *lines[after:]]
        start = self._reading.outline.window.start
        return [*lines[:start], *new, Line("", self._end), *lines[start:]]

    def _with_line_ends(self) -> list[Line]:
        """End every line but the last; the last one ends as in the original document."""
        lines = [line if line.end else Line(line.text, self._end) for line in self._lines]
        had_end = not self._reading.lines or bool(self._reading.lines[-1].end)
        if lines and not had_end:
            lines[-1] = Line(lines[-1].text, "")
        return lines


def _gaps(reading: Reading) -> list[tuple[Line, ...]]:
    starts = [block.item.start for block in reading.blocks[1:]] + [len(reading.lines)]
    return [
        reading.lines[block.item.end : start]
        for block, start in zip(reading.blocks, starts, strict=False)
    ]


def _new_after(
    steps: Sequence[PlanStep], known: Collection[int]
) -> dict[int | None, list[PlanStep]]:
    """Group the added steps by the known step that each comes after."""
    groups: dict[int | None, list[PlanStep]] = {}
    last: int | None = None
    for step in steps:
        if step.id in known:
            last = step.id
        else:
            groups.setdefault(last, []).append(step)
    return groups
