"""Write a changed plan into its document, touching only the lines that changed."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from replan.plan.markdown.editing import BlockEditor, in_task, numbers_needed, reread
from replan.plan.markdown.lines import Line, is_blank, usual_line_end
from replan.plan.markdown.normal import normalised, normalised_step, visible_parts
from replan.plan.markdown.outline import continues_text
from replan.plan.markdown.reading import Block, Reading, keep_reading, read_document
from replan.plan.markdown.rendering import heading_line, render
from replan.plan.model import PlanStep, StepStatus, TaskPlan


def write_document(reading: Reading, plan: TaskPlan) -> str:
    """Return the text of a document after its plan has changed.

    Marks and results change the lines of their steps, which are read again alone. After any other
    change all of the document is read again. Should the surroundings make it mean something else,
    it is written in the canonical form: in every case the result reads back as the plan
    (normalised), if the plan is valid at all.
    """
    end = usual_line_end(reading.lines)
    changed = _with_outcomes(reading, plan, end)
    if changed is not None:
        text = text_of(changed.bom, changed.lines)
        keep_reading(text, changed)
        return text
    wanted = normalised(plan)
    text = _Composition(reading, wanted, end).text()
    if _shows(read_document(text), wanted):
        return text
    return reading.bom + render(wanted).replace("\n", end)


def text_of(bom: str, lines: Sequence[Line]) -> str:
    return bom + "".join([text + end for text, end in lines])


def shows(plan: TaskPlan) -> bool:
    """Whether the document of a plan has no mistakes, and exactly its steps and title."""
    return _shows(read_document(plan.content), normalised(plan))


def _shows(reading: Reading, plan: TaskPlan) -> bool:
    """Whether a document reads back as a plan."""
    return (
        (not reading.mistakes or not plan.steps)
        and reading.title == plan.title
        and len(reading.blocks) == len(plan.steps)
        and all(
            visible_parts(block.step) == visible_parts(step)
            for block, step in zip(reading.blocks, plan.steps, strict=True)
        )
    )


def _with_outcomes(reading: Reading, plan: TaskPlan, end: str) -> Reading | None:
    """Return what a document says after its marks and results changed; None after other changes."""
    ids = [block.step.id for block in reading.blocks]
    if reading.mistakes or reading.title != plan.title or ids != [step.id for step in plan.steps]:
        return None
    editor = BlockEditor(reading.lines, end)
    lines = list(reading.lines)
    blocks: list[Block] = []
    for block, given in zip(reading.blocks, plan.steps, strict=True):
        moved = len(lines) - len(reading.lines)
        start, stop = block.item.start + moved, block.item.end + moved
        # Most steps have not changed, and are in the form of a document as they came from one.
        if _fits(block, given) or _fits(block, step := normalised_step(given)):
            blocks.append(_moved(block, moved) if moved else block)
            continue
        new = editor.edited(block, step)
        changed = reread(block, new, step, start)
        # In a list without boxes all steps get one at the first change.
        is_alone = block.item.mark is not None and in_task(block.step) == in_task(step)
        is_surrounded = stop == len(lines) or not continues_text(lines[stop].text)
        if changed is None or not (is_alone and is_surrounded):
            return None
        new = _ended(new, end, lines[stop - 1].end)
        is_apart = block is reading.blocks[-1] or is_blank(lines[stop].text)
        blank = not is_apart and _is_grown(new, block)
        lines[start:stop] = [*new, *([Line("", end)] if blank else [])]
        blocks.append(changed)
    window = range(reading.window.start, reading.window.stop + len(lines) - len(reading.lines))
    return replace(reading, lines=tuple(lines), blocks=tuple(blocks), window=window)


def _fits(block: Block, step: PlanStep) -> bool:
    is_marked = step.status is not StepStatus.EXECUTING or block.item.mark == "~"
    return is_marked and visible_parts(block.step) == visible_parts(step)


def _is_grown(lines: Sequence[Line], block: Block) -> bool:
    """Whether a step has got more lines under its own; then the next step stands apart."""
    has_more = len(lines) > block.item.end - block.item.start
    return has_more and lines[-1].text.startswith((" ", "\t"))


def _moved(block: Block, lines: int) -> Block:
    item = block.item
    return replace(block, item=replace(item, start=item.start + lines, end=item.end + lines))


def _ended(lines: Sequence[Line], end: str, last: str) -> list[Line]:
    """End every line that has no end; the last one as it was."""
    texts = [line if line.end else Line(line.text, end) for line in lines]
    return [*texts[:-1], texts[-1] if last else Line(texts[-1].text, "")]


class _Composition:
    """Puts the steps of a plan into the places that the document has for steps."""

    def __init__(self, reading: Reading, plan: TaskPlan, end: str) -> None:
        self._reading = reading
        self._plan = plan
        self._end = end
        self._lines: list[Line] = []
        self._gaps = _gaps(reading)
        self._blocks = {block.step.id: block for block in reading.blocks}
        self._places = {block.step.id: at for at, block in enumerate(reading.blocks)}
        self._wrong = {mistake.line - 1 for mistake in reading.mistakes}
        numbers = numbers_needed(self._blocks, plan.steps)
        self._editor = BlockEditor(reading.lines, end, numbers)

    def text(self) -> str:
        blocks, lines = self._reading.blocks, self._reading.lines
        first = blocks[0].item.start if blocks else self._reading.window.stop
        self._lines.extend(self._head(lines[:first]))
        self._add_steps()
        if not blocks:
            self._lines.extend(lines[first:])
        had_end = not lines or bool(lines[-1].end)
        ended = _ended(self._lines, self._end, self._end if had_end else "") if self._lines else []
        return text_of(self._reading.bom, ended)

    def _new_lines(self, step: PlanStep) -> list[Line]:
        block = self._blocks[step.id]
        if not self._wrong.isdisjoint(range(block.item.start, block.item.end)):
            return self._editor.rewritten(block, step)
        return self._editor.edited(block, step)

    def _add_steps(self) -> None:
        blocks = self._reading.blocks
        kept = iter([step for step in self._plan.steps if step.id in self._blocks])
        remaining = {step.id for step in self._plan.steps}
        following = _new_after(self._plan.steps, self._blocks)
        self._add_new(following.get(None, []), blocks[0] if blocks else None)
        for block, gap in zip(blocks, self._gaps, strict=True):
            is_last = block is blocks[-1]
            if block.step.id not in remaining:
                self._close_up(gap, is_last=is_last)
                continue
            step = next(kept)
            lines = self._new_lines(step)
            new = following.get(step.id, [])
            self._lines.extend(lines)
            self._add_new(new, block)
            last = self._lines[-1].text
            is_grown = _is_grown(lines, block) or (bool(new) and last.startswith((" ", "\t")))
            is_other_end = self._lines[-1].text != self._reading.lines[block.item.end - 1].text
            is_loose = bool(gap) and is_other_end and continues_text(gap[0].text)
            is_apart = is_last or (bool(gap) and is_blank(gap[0].text))
            if is_loose or (is_grown and not is_apart):
                self._lines.append(Line("", self._end))
            self._lines.extend(gap)

    def _add_new(self, steps: Sequence[PlanStep], beside: Block | None) -> None:
        for step in steps:
            lines = self._editor.new(step, beside)
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
        at, wanted = self._reading.title_at, self._plan.title
        if self._reading.title == wanted:
            return list(lines)
        new = [Line(heading_line(wanted), self._end)] if wanted else []
        if at is None:
            start = self._reading.window.start
            return [*lines[:start], *new, Line("", self._end), *lines[start:]]
        after = at + 1
        while not wanted and after < len(lines) and is_blank(lines[after].text):
            after += 1
        return [*lines[:at], *new, *lines[after:]]


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
