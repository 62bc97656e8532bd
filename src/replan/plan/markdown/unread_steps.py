"""Find the lines that were meant as steps and cannot be read as steps, so that none is lost."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from replan.errors import Mistake
from replan.plan.markdown import words
from replan.plan.markdown.lines import indent_of, is_blank
from replan.plan.markdown.outline import Item, Outline
from replan.plan.markdown.title import own_number, read_title

_DETAIL_INDENT = 2
_LONGEST_SHOWN = 80
_MOST_DIGITS = 18

_MARKER = r"[ \t]*+(?P<marker>[-*+•·‣◦▪–—]|(?P<counter>\d{1,9})[.)．、])?[ \t]*+"
_LINK = r"(?!\[[^\[\]]*\][(\[:])"
_SIGN = r"(?P<mark>[xX~!\-✓✔])?+"
_OPENED = rf"{_LINK}\\?[\[【［]\s*+{_SIGN}"
_SQUARE = rf"{_OPENED}\s*+(?P<closed>\\?[\]】］])?+"
_NUMBER = rf"(?:(?:{words.STEP})\s*+)?#?(?P<number>\d{{1,9}})"
_PUNCTUATED = rf"{_NUMBER}\s*+[.)．、:：](?!\d)"
_SPACED = rf"{_NUMBER}(?:\s*+[.)．、:：](?!\d)|(?=\s|$))"


def _compiled(*patterns: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(_MARKER + pattern, re.IGNORECASE) for pattern in patterns)


# A box in front of a number is a step wherever it stands: `- [x 2. B`, `-[ ] 2. B`.
_BOXED = _compiled(rf"{_SQUARE}\s*+{_PUNCTUATED}")
# What can be nothing but a step in the list of the steps: first what has no number.
_BOX_ALONE = _compiled(
    rf"{_OPENED}\s*+\\?[\]】］](?=\w)",  # [ ]B
    rf"{_OPENED}(?(mark)[ \t]++|(?<=[ \t]))(?=[^\W\d])",  # [x B
)
_IN_LIST = _compiled(
    rf"{_SQUARE}\s*+{_SPACED}",
    rf"[(（{{]\s*+{_SIGN}\s*+[)）}}]?+\s*+{_SPACED}",  # ( ) 2. B
    rf"(?:{_SIGN}\s*+[\])】］）}}]|[☐☑☒✅✔✓❌□■]\ufe0f?+)\s*+{_SPACED}",  # x] 2. B
    rf"(?!\[[^\[\]]*\][(\[])[\[(【［（{{]\s*+{_NUMBER}\s*+[\])】］）}}]",  # [2] B
    rf"(?!\[[^\[\]]*\][(\[])[\[(【［（{{].{{0,20}}?(?<!\w){_PUNCTUATED}",  # [done] 2. B
    rf"{_SPACED}\s*+[\[(【［（]\s*+{_SIGN}(?:\s*+[\])】］）]|(?<=[\w~!✓✔-])(?=\s))",  # 2 [ ] B
)
_NUMBERED = _compiled(_SPACED)
_LISTED = _compiled("")
_MENTION = re.compile(rf"(?<![\w.+\-@/])@{words.NAME}")
_LIST_LINE = re.compile(r"[ \t]*(?:[-*+•·‣◦▪–—]|\d{1,9}[.)．、]|[\[【［])")
_RULE = re.compile(r"[ \t]*([-*_])(?:[ \t]*\1){2,}[ \t]*")
_HEADING = re.compile(r"[ ]{0,3}#{1,6}[ \t]")


class _Place(NamedTuple):
    """Where a line stands that is not the line of a step."""

    in_list: bool  # whether it is in the list of the steps
    below_step: bool  # whether a line of a step is directly above it
    number_due: int  # the number after that of the last step above it; 0 if a step has it


def unread_steps(texts: Sequence[str], found: Outline) -> Iterator[Mistake]:
    """Report each line that looks like a step and was not read as one."""
    starts = {item.start: item for item in found.items}
    details = set(_details(texts, found.items))
    lists = set(_lists_of_steps(texts, found))
    inside = {at for item in found.items for at in range(item.start, item.end)}
    numbers = {item.start: _number_of(item, texts) for item in found.items}
    taken = {0, *numbers.values()}
    number_due = 1
    for at in found.window:
        if at in found.verbatim or at in details or is_blank(texts[at]):
            continue
        item = starts.get(at)
        if item is None:
            match = _unread(
                texts[at],
                _Place(at in lists, at - 1 in inside, number_due if number_due not in taken else 0),
            )
        else:
            number_due = (numbers[at] or number_due) + 1
            match = _first(texts[at], (*_BOXED, *_BOX_ALONE)) if item.mark is None else None
        if match is not None:
            yield _mistake(at, texts[at], match)


def _number_of(item: Item, texts: Sequence[str]) -> int:
    """The number that a step states; 0 if it states none."""
    written = item.counter or own_number(texts[item.start][item.text :]) or "0"
    return int(written[:_MOST_DIGITS])


def begins_with_box(line: str) -> bool:
    """Whether a line begins as a step does, so that it cannot continue the line above."""
    return _first(line, _BOXED) is not None


def _details(texts: Sequence[str], items: Sequence[Item]) -> Iterator[int]:
    """The lines below the steps that belong to them; all below a heading, else the indented."""
    for item in items:
        least = indent_of(texts[item.start]) + _DETAIL_INDENT if item.depth else 0
        yield from (at for at in range(item.start + 1, item.end) if indent_of(texts[at]) >= least)


def _lists_of_steps(texts: Sequence[str], found: Outline) -> Iterator[int]:
    """The lines between the steps below one heading, and of the list that continues them."""
    headings = [at for at in found.window if _is_heading(texts[at]) and at not in found.verbatim]

    def section(item: Item) -> int:
        return bisect_left(headings, item.start)

    for _, members in groupby(found.items, section):
        steps = list(members)
        first, end = steps[0].start, steps[-1].end
        while first - 1 in found.window and _continues_list(texts[first - 1]):
            first -= 1
        while end in found.window and _continues_list(texts[end]):
            end += 1
        yield from range(first, end)


def _is_heading(line: str) -> bool:
    return _HEADING.match(line) is not None


def _continues_list(line: str) -> bool:
    is_listed = _LIST_LINE.match(line) is not None and _RULE.fullmatch(line) is None
    return is_blank(line) or is_listed or indent_of(line) >= _DETAIL_INDENT


def _unread(line: str, place: _Place) -> re.Match[str] | None:
    match = _first(line, _BOXED)
    if match is not None and (match["marker"] or match["closed"]):
        return match
    match = _first(line, _LISTED)
    if not place.in_list or match is None or not match["marker"]:
        return None
    if boxed := _first(line, (*_IN_LIST, *_BOX_ALONE)):
        return boxed
    if counter := match["counter"]:
        is_next = place.below_step or int(counter) == place.number_due
        return match if is_next or _MENTION.search(line) else None
    numbered = _first(line, _NUMBERED)
    if numbered and _MENTION.search(line):
        return numbered
    return match if read_title(line[match.end() :]).attributes.specialists else None


def _first(line: str, patterns: Sequence[re.Pattern[str]]) -> re.Match[str] | None:
    return next((match for each in patterns if (match := each.match(line))), None)


def _mistake(at: int, line: str, match: re.Match[str]) -> Mistake:
    groups = match.groupdict()
    number = groups.get("number") or groups["counter"]
    task = f"{number}. " if number else ""
    task += line[match.end() :].strip() or "What is to be done"
    mark = groups.get("mark") or " "
    marker = _first(line, _LISTED)
    return Mistake(
        line=at + 1,
        column=(marker.end() if marker else 0) + 1,
        code="unread_step",
        reason=f"'{_cut(line.strip())}' looks like a step and cannot be read as one.",
        fix=f"Write it like this: - [{'x' if mark in '✓✔' else mark}] {_cut(task)}; "
        "or indent it if it is a detail of the step above.",
    )


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."
