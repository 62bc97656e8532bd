"""Find the lines that were meant as steps and cannot be read as steps, so that none is lost."""

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import groupby

from replan.base.errors import Mistake
from replan.plan.encoding import NAME
from replan.plan.markdown.lines import indent_of, is_blank
from replan.plan.markdown.outline import DETAIL_INDENT, Item, Outline, is_like_item, is_rule

_LONGEST_SHOWN = 80

# The parts of a step, well written or not: `- [x 2. B`, `( ) B`, `☐ B`, `x] 2. B`, `2 [x B`.
_LIKE_STEP = re.compile(
    r"[ \t]*+(?P<marker>[-*+•·‣◦▪–—]|(?P<counter>\d{1,9})[.)．、])?+[ \t]*+(?P<content>)"
    r"(?:(?P<box>(?:\d{1,9}\s*+)?(?!\[[^\[\]]*\][(\[:])\\?[\[【［])"
    r"\s*+(?P<mark>[xX~!\-✓✔])?+\s*+(?P<closed>\\?[\]】］])?+"
    r"|(?P<sign>[(（{]\s*+(?:[xX~!✓✔-]|\d{1,9})?+\s*+[)）}]"
    r"|[☐☑☒✅✔✓❌□■]\ufe0f?+|[xX~!✓✔-]?+[\])】］）}]))?+"
    r"\s*+(?:(?P<number>\d{1,9})\s*+[.)．、:：](?!\d))?+"
)
_MENTION = re.compile(rf"(?<![\w.+\-@/])@{NAME}(?:\s*+\([^()]*+\))?[ \t]*+$")


def unread_steps(
    texts: Sequence[str], found: Outline, numbers: Collection[int]
) -> Iterator[Mistake]:
    """Report each line that looks like a step and was not read as one.

    Args:
        texts: The lines.
        found: The steps in them.
        numbers: The numbers of the steps.
    """
    details = set(_details(texts, found.items))
    details |= {item.start for item in found.items if not _is_damaged(texts[item.start], item)}
    lists = set(_lists_of_steps(texts, found))
    for at in found.window:
        match = None if at in found.verbatim or at in details else _LIKE_STEP.match(texts[at])
        if match is None or is_blank(texts[at]):
            continue
        if _is_meant(match, numbers, in_list=at in lists):
            yield _mistake(at, match, "indent it if it is a detail of the step above")
        elif at in found.boxed:
            yield _mistake(at, match, "leave out its box", max(numbers, default=0) + 1)


def _is_damaged(line: str, item: Item) -> bool:
    """Whether the text of a step in a list without boxes begins like one."""
    match = _LIKE_STEP.match(line) if item.mark is None else None
    return match is not None and bool(match["box"] or match["sign"])


def _details(texts: Sequence[str], items: Sequence[Item]) -> Iterator[int]:
    """The lines below the steps that belong to them and not only continue their text."""
    for item in items:
        least = indent_of(texts[item.start]) + DETAIL_INDENT
        yield from (at for at in range(item.start + 1, item.end) if indent_of(texts[at]) >= least)


def _lists_of_steps(texts: Sequence[str], found: Outline) -> Iterator[int]:
    """The lines between the steps below one heading, and of the list that continues them."""
    for _, members in groupby(found.items, lambda item: item.section):
        steps = list(members)
        first, end = steps[0].start, steps[-1].end
        while first - 1 in found.window and _continues_list(texts[first - 1]):
            first -= 1
        while end in found.window and _continues_list(texts[end]):
            end += 1
        yield from range(first, end)


def _continues_list(line: str) -> bool:
    is_listed = is_like_item(line) and not is_rule(line)
    return is_blank(line) or is_listed or indent_of(line) >= DETAIL_INDENT


def _is_meant(match: re.Match[str], numbers: Collection[int], *, in_list: bool) -> bool:
    """Whether a line is meant as a step.

    A box in front of a number is one wherever it stands; in a list of steps also anything else
    that can be nothing else.
    """
    marker, counter, box, number = match.group("marker", "counter", "box", "number")
    if box and number and (marker or match["closed"] or in_list):
        return True
    if not (in_list and marker):
        return False
    is_new = any(token and int(token) not in numbers for token in (counter, number))
    is_empty = counter and is_blank(match.string[match.end() :])
    return bool(is_new or is_empty or box or match["sign"] or _MENTION.search(match.string))


def _mistake(
    at: int, match: re.Match[str], otherwise: str, next_number: int | None = None
) -> Mistake:
    line, mark = match.string, match["mark"] or " "
    number = match["number"] or match["counter"] or next_number
    task = f"{number}. " if number else ""
    task += line[match.end() :].strip() or "What is to be done"
    return Mistake(
        line=at + 1,
        column=min(match.start("content"), len(line.rstrip()) - 1) + 1,
        code="unread_step",
        reason=f"'{_cut(line.strip())}' looks like a step and cannot be read as one.",
        fix=f"Write it like this: - [{'x' if mark in '✓✔' else mark}] {_cut(task)}; "
        f"or {otherwise}.",
    )


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."
