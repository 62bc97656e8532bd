"""Find the lines that were meant as steps and cannot be read as steps, so that none is lost."""

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import groupby

from replan.errors import Mistake
from replan.plan.encoding import NAME
from replan.plan.markdown.lines import indent_of, is_blank
from replan.plan.markdown.outline import DETAIL_INDENT, Item, Outline, is_like_item, is_rule

_LONGEST_SHOWN = 80

_MARKER = r"[ \t]*+(?P<marker>[-*+•·‣◦▪–—]|(?P<counter>\d{1,9})[.)．、])?[ \t]*+"
_LINK = r"(?!\[[^\[\]]*\][(\[:])"
_SIGN = r"(?P<mark>[xX~!\-✓✔])?+"
_NUMBER = r"(?P<number>\d{1,9})\s*+[.)．、:：](?!\d)"
# A box in front of a number is a step wherever it stands: `- [x 2. B`, `-[ ] 2. B`.
_BOXED = re.compile(
    rf"{_MARKER}{_LINK}\\?[\[【［]\s*+{_SIGN}\s*+(?P<closed>\\?[\]】］])?+\s*+{_NUMBER}"
)
# What can be nothing but a step in a list of steps: `( ) B`, `☐ B`, `x] 2. B`, `2 [x B`, `2. B`.
_SIGNS = (
    rf"(?:\d{{1,9}}\s*+)?{_LINK}\\?[\[【［]\s*+{_SIGN}\s*+[\]】］]?+"
    r"|[(（{]\s*+(?:[xX~!✓✔-]|\d{1,9})?+\s*+[)）}]|[☐☑☒✅✔✓❌□■]\ufe0f?+|[xX~!✓✔-]?+[\])】］）}]"
)
_IN_LIST = re.compile(rf"{_MARKER}(?P<signs>{_SIGNS})?+\s*+(?:{_NUMBER})?+")
_LISTED = re.compile(_MARKER)
_BOX = re.compile(rf"{_MARKER}\[{_SIGN}\s*+\]\s*+")
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
        if at in found.verbatim or at in details or is_blank(texts[at]):
            continue
        match = _unread(texts[at], numbers, in_list=at in lists)
        if match is not None:
            yield _mistake(at, texts[at], match, "indent it if it is a detail of the step above")
        elif at in found.boxed and (box := _BOX.match(texts[at])):
            yield _mistake(at, texts[at], box, "leave out its box", max(numbers, default=0) + 1)


def _is_damaged(line: str, item: Item) -> bool:
    """Whether the text of a step in a list without boxes begins like one."""
    match = _IN_LIST.match(line) if item.mark is None else None
    return match is not None and bool(match["signs"])


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


def _unread(line: str, numbers: Collection[int], *, in_list: bool) -> re.Match[str] | None:
    match = _BOXED.match(line)
    if match is not None and (match["marker"] or match["closed"] or in_list):
        return match
    listed = _LISTED.match(line)
    if not in_list or listed is None or not listed["marker"]:
        return None
    counter = listed["counter"]
    is_empty = is_blank(line[listed.end() :])
    if counter and (is_empty or int(counter) not in numbers):
        return listed
    match = _IN_LIST.match(line)
    if match and (match["signs"] or (match["number"] and int(match["number"]) not in numbers)):
        return match
    return listed if _MENTION.search(line) else None


def _mistake(
    at: int, line: str, match: re.Match[str], otherwise: str, next_number: int | None = None
) -> Mistake:
    groups = match.groupdict()
    number = groups.get("number") or groups["counter"] or next_number
    task = f"{number}. " if number else ""
    task += line[match.end() :].strip() or "What is to be done"
    mark = groups.get("mark") or " "
    marker = _LISTED.match(line)
    return Mistake(
        line=at + 1,
        column=min(marker.end() if marker else 0, len(line.rstrip()) - 1) + 1,
        code="unread_step",
        reason=f"'{_cut(line.strip())}' looks like a step and cannot be read as one.",
        fix=f"Write it like this: - [{'x' if mark in '✓✔' else mark}] {_cut(task)}; "
        f"or {otherwise}.",
    )


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."
