"""Steps as a model wrote them, with its own labels, and the plan document made of them."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from replan.plan.markdown.title import write_title
from replan.plan.model import PlanStep
from replan.replies.written_plans.order_phrases import ALL, PREVIOUS, label_of
from replan.replies.written_plans.step_line import StepLine

_MOST_DIGITS = 6


@dataclass(slots=True)
class Entry:
    label: str  # what the model calls it; may be empty
    line: StepLine
    brief: str = ""  # the text under it
    mark: str = " "  # the character of its mark
    body: list[str] = field(default_factory=list[str])


def numbers_of(entries: Sequence[Entry]) -> list[int]:
    """Number the steps: by their own numbers if these can be ids, else from 1."""
    own = [int(e.label) if _is_number(e.label) else 0 for e in entries]
    usable = all(number > 0 for number in own) and len(set(own)) == len(own)
    return own if usable else list(range(1, len(entries) + 1))


def labels_of(entries: Sequence[Entry]) -> dict[str, int]:
    """Map the labels of steps to their numbers; a step without a label has its number as label."""
    numbers = numbers_of(entries)
    labelled = [entry.label for entry in entries]
    if not any(labelled):
        waits = {wait for entry in entries for wait in entry.line.waits}
        first = 0 if "0" in waits else 1
        return {str(at + first): number for at, number in enumerate(numbers)}
    return {label_of(label): n for label, n in zip(labelled, numbers, strict=True) if label}


def step_lines(entries: Sequence[Entry]) -> list[str]:
    """Write each step on its line; an impossible order is kept, so that it is reported."""
    labels, numbers = labels_of(entries), numbers_of(entries)
    lines: list[str] = []
    for at, (entry, number) in enumerate(zip(entries, numbers, strict=True)):
        waits: list[int] = []
        unread = list(entry.line.unread)
        for wait in entry.line.waits:
            if wait == PREVIOUS:
                waits += numbers[:at][-1:]
            elif wait == ALL:
                waits += [other for other in numbers if other != number]
            elif (known := labels.get(wait)) is not None:
                waits.append(known)
            elif _is_number(wait):
                waits.append(int(wait))
            else:
                unread.append(f"after {wait}")
        lines.append(_written(entry, number, waits, unread, numbers[:at]))
    return lines


def document(title: str, entries: Sequence[Entry]) -> str:
    lines = [f"# {title}\n"] if title else []
    for line, entry in zip(step_lines(entries), entries, strict=True):
        brief = [f"  {row}" for row in entry.brief.split("\n") if row.strip()]
        lines.append("\n\n".join([line, *brief]) + ("\n" if brief else ""))
    return "\n".join(lines)


def _written(
    entry: Entry, number: int, waits: list[int], unread: list[str], above: list[int]
) -> str:
    line = entry.line
    if ALL in line.waits and not above:
        waits = [wait for wait in waits if wait != number]
    elif ALL in line.waits:
        waits = [wait for wait in waits if wait in above]
    attributes = line.attributes
    step = PlanStep(
        id=number,
        description=" ".join(line.text.split()) or f"Step {number}",
        assigned_to=line.who[0] if line.who else "",
        joined_by=tuple(dict.fromkeys(name for name in line.who[1:] if name != line.who[0])),
        dependencies=tuple(dict.fromkeys(waits)),
        condition=attributes.condition,
        optional=bool(attributes.optional),
        priority=attributes.priority or 0,
        max_retries=attributes.max_retries,
        timeout=attributes.timeout,
        writes=attributes.writes or (),
    )
    rest = "".join(f" {each}" if each[0] in "(（[{" else f" ({each})" for each in unread)
    return f"- [{entry.mark}] {write_title(step, number=f'{number}. ')}{rest}"


def _is_number(label: str) -> bool:
    return label.isdecimal() and len(label) <= _MOST_DIGITS
