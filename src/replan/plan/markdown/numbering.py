"""Which id each step of a document has: its own number, its list's, or the next free one."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import count

from replan.plan.markdown.outline import Item
from replan.plan.markdown.title import Complaint, own_number

# More than 64 bits are a number that no store keeps.
_MOST_DIGITS = 18


@dataclass(frozen=True, slots=True)
class Numbered:
    id: int  # the id; one that no other step of the document has
    explicit: bool  # whether the document says it; else it follows from the steps before
    complaint: Complaint | None = None  # what is wrong with the number that the document says


def lazy_groups(texts: Sequence[str], items: Sequence[Item]) -> frozenset[int]:
    """Find the lists whose items are all `1.`, as in lazy Markdown: they have no numbers."""
    groups: dict[int, list[Item]] = {}
    for item in items:
        groups.setdefault(item.group, []).append(item)
    return frozenset(group for group, members in groups.items() if _is_lazy(texts, members))


def _is_lazy(texts: Sequence[str], members: Sequence[Item]) -> bool:
    if len(members) < 2 or any(item.counter is None or int(item.counter) != 1 for item in members):  # noqa: PLR2004 - one item is not a list
        return False
    bare = sum(item.mark is None for item in members)
    careless = [
        item
        for item in members
        if item.mark is not None and own_number(texts[item.start][item.text :]) is None
    ]
    return not careless or bare > 1


def number_steps(
    numbers: Sequence[tuple[str | None, int]], reserved: Collection[int]
) -> list[Numbered]:
    first_line: dict[int, int] = {}
    stated = [_stated_number(number, line, first_line) for number, line in numbers]
    free = (number for number in count(1) if number not in first_line and number not in reserved)
    return [
        Numbered(next(free), explicit=False, complaint=found)
        if not isinstance(found, int)
        else Numbered(found, explicit=True)
        for found in stated
    ]


def _stated_number(
    number: str | None, line: int, first_line: dict[int, int]
) -> int | Complaint | None:
    if number is None:
        return None
    value = int(number) if len(number) <= _MOST_DIGITS else 0
    if value < 1:
        return Complaint(
            "bad_number",
            number,
            f"'{number}' is not the number of a step.",
            "Number the steps from 1.",
        )
    if value in first_line:
        return Complaint(
            "duplicate_step",
            number,
            f"Lines {first_line[value]} and {line} both have step {value}.",
            "Give each step its own number.",
        )
    first_line[value] = line
    return value
