"""Find the steps of a document: which of its lines belong to which step."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from replan.plan.markdown.body import block_parser
from replan.plan.markdown.lines import Line, fenced_window, indent_of, is_blank
from replan.plan.markdown.title import names_a_step, own_number

if TYPE_CHECKING:
    from markdown_it.token import Token

PENDING_MARKS = " ~"
KNOWN_MARKS = " ~xX!-"

_MARKER = re.compile(r"[ \t]*(?:([-*+])|(\d{1,9})([.)]))(?:[ \t]+|$)")
_MARK = re.compile(r"\[([^\[\]]?)\](?=\s|$)")
_HEADING = re.compile(r"[ ]{0,3}#{1,6}[ \t]+")
_TITLE = re.compile(r"[ ]{0,3}#(?:[ \t]+(.*?))??(?:[ \t]+#+)?[ \t]*")
_WRAPPING = re.compile(
    r"[ ]{0,3}</?(?:plan|steps?|tasks?|todos?|output|answer|response|result|document|markdown)>"
    r"[ \t]*",
    re.IGNORECASE,
)
_BLANKS = re.compile(r"[ \t]*")
_VERBATIM = ("fence", "code_block", "html_block")
_ADOPTED_INDENT = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A list item, or a heading or line that calls itself a step."""

    start: int  # the line it begins with, counted from 0
    end: int  # the line after its last one; blank lines at its end are not its own
    depth: int  # how many lists it is in; 0 for headings and lines
    group: int  # which list it is in
    counter: str | None  # the number in its list marker
    content: int  # where in its first line the text after the list marker begins
    # The character between its brackets, empty if they hold none; none: no brackets.
    mark: str | None
    text: int  # where in its first line the text after the brackets begins
    numbered: bool  # whether it has a number, in its marker or its text

    @property
    def is_marked(self) -> bool:
        return self.mark is not None and self.mark in KNOWN_MARKS


@dataclass(frozen=True, slots=True)
class Heading:
    """The document's title and the lines that hold it."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Outline:
    """The steps of a document in its order, its title, and the lines that are the document."""

    window: range  # the lines of the plan itself, without a fence around the whole
    fenced: bool  # whether a fence is around it, with other text before or after
    items: tuple[Item, ...]  # the items that are steps
    title: Heading | None  # the first heading of the first level before the first step
    verbatim: frozenset[int]  # the lines of code and of HTML, with comments


def read_heading(line: str) -> str | None:
    """Read a line such as `# Title`; None if it is not a heading of the first level."""
    match = _TITLE.fullmatch(line)
    return None if match is None else (match[1] or "").strip()


def outline(lines: Sequence[Line]) -> Outline:
    texts = [line.text for line in lines]
    window = fenced_window(texts)
    if window is not None:
        around = texts[: window.start - 1] + texts[window.stop + 1 :]
        found = None if _has_steps(around) else _outline_of(texts, window)
        if found and found.items:
            return replace(found, fenced=not all(map(is_blank, around)))
    return _outline_of(texts, range(len(texts)))


def _outline_of(texts: list[str], window: range) -> Outline:
    scan = _Scan(texts, window)
    items = tuple(_with_indented_lines(texts, _items_that_are_steps(scan), window.stop))
    first = items[0].start if items else window.stop
    return Outline(
        window,
        fenced=False,
        items=items,
        title=scan.title(before=first),
        verbatim=scan.verbatim_lines(),
    )


def _has_steps(texts: list[str]) -> bool:
    return any(item.is_marked or item.numbered for item in _Scan(texts, range(len(texts))).items)


class _Scan:
    """The list items and headings of a text, from Markdown's tokens."""

    def __init__(self, texts: list[str], window: range) -> None:
        self._texts = texts
        self._window = window
        # Markdown would treat what follows a tag such as `<plan>` as HTML.
        inside = ["" if _WRAPPING.fullmatch(texts[at]) else texts[at] for at in window]
        self._tokens = block_parser().parse("\n".join(inside))
        self.items = tuple(self._list_items())
        self._headings = [
            token for token in self._tokens if token.type == "heading_open" and not token.level
        ]

    def _list_items(self) -> Iterator[Item]:
        lists: list[int] = []
        group = quotes = 0
        seen = -1
        for token in self._tokens:
            if token.type in ("bullet_list_open", "ordered_list_open"):
                group += 1
                lists.append(group)
            elif token.type in ("bullet_list_close", "ordered_list_close"):
                lists.pop()
            elif token.type in ("blockquote_open", "blockquote_close"):
                quotes += token.nesting
            # `- 1. text` is a list in a list to Markdown, and one item to people.
            elif (
                token.type == "list_item_open" and token.map and not quotes and token.map[0] > seen
            ):
                seen = token.map[0]
                yield self._list_item(token.map, len(lists), lists[-1])

    def _list_item(self, place: list[int], depth: int, group: int) -> Item:
        start, end = place[0] + self._window.start, place[1] + self._window.start
        line = self._texts[start]
        marker = _MARKER.match(line)
        content = marker.end() if marker else 0
        counter = marker[2] if marker else None
        return self._item(start, end, content, depth=depth, group=group, counter=counter)

    def _item(
        self, start: int, end: int, content: int, *, depth: int, group: int, counter: str | None
    ) -> Item:
        line = self._texts[start]
        while end > start + 1 and is_blank(self._texts[end - 1]):
            end -= 1
        mark = _MARK.match(line, content)
        text = _blanks_after(line, mark.end() if mark else content)
        return Item(
            start=start,
            end=end,
            depth=depth,
            group=group,
            counter=counter,
            content=content,
            mark=mark[1] if mark else None,
            text=text,
            numbered=counter is not None or own_number(line[text:]) is not None,
        )

    def step_headings(self) -> Iterator[Item]:
        """Headings such as `### Step 1: Find`; a step reaches to the next heading of its rank."""
        for at, token in enumerate(self._headings):
            start = self._start(token)
            match = _HEADING.match(self._texts[start])
            if match is None or not names_a_step(self._unmarked(start, match.end())):
                continue
            ends = (
                self._start(other)
                for other in self._headings[at + 1 :]
                if other.tag <= token.tag or names_a_step(self._heading_text(other))
            )
            end = next(ends, self._window.stop)
            yield self._item(start, end, match.end(), depth=0, group=0, counter=None)

    def step_lines(self) -> Iterator[Item]:
        """Lines such as `**Step 1:** find`, each with what follows it up to a closing word."""
        starts, stops, texts = self._boundaries()
        stops += [at for at in texts if starts and at > starts[-1]] + [self._window.stop]
        ends = sorted({*starts, *stops})
        for start in starts:
            end = ends[bisect_right(ends, start)]
            content = _blanks_after(self._texts[start], 0)
            yield self._item(start, end, content, depth=0, group=0, counter=None)

    def _boundaries(self) -> tuple[list[int], list[int], list[int]]:
        """Return the lines of steps, of headings and rules, and the lines where text begins."""
        starts: list[int] = []
        stops: list[int] = []
        texts: list[int] = []
        for token in self._tokens:
            if token.level or token.map is None:
                continue
            first, last = token.map[0] + self._window.start, token.map[1] + self._window.start
            if token.type == "paragraph_open":
                named = [at for at in range(first, last) if names_a_step(self._unmarked(at, 0))]
                starts += named
                texts += [] if named[:1] == [first] else [first]
            elif token.type in ("heading_open", "hr"):
                stops.append(first)
        return starts, stops, texts

    def heading_above(self, line: int) -> int:
        """The line of the nearest heading above a line; -1 if there is none."""
        at = bisect_left(self._headings, line, key=self._start)
        return self._start(self._headings[at - 1]) if at else -1

    def names_somebody(self, item: Item) -> bool:
        """Whether a mention of a specialist is in an item's line."""
        return "@" in self._texts[item.start]

    def verbatim_lines(self) -> frozenset[int]:
        places = (token.map for token in self._tokens if token.type in _VERBATIM and token.map)
        shift = self._window.start
        return frozenset(at + shift for first, end in places for at in range(first, end))

    def title(self, *, before: int) -> Heading | None:
        first = next((token for token in self._headings if token.tag == "h1"), None)
        if first is None or (start := self._start(first)) >= before:
            return None
        end = (first.map or [0, 0])[1] + self._window.start
        text = read_heading(self._texts[start])
        if text is None:  # underlined
            text = " ".join(line.strip() for line in self._texts[start : end - 1])
        return Heading(text, start, end)

    def _start(self, token: "Token") -> int:
        """The line with which a block begins."""
        return (token.map or [0])[0] + self._window.start

    def _heading_text(self, token: "Token") -> str:
        start = self._start(token)
        match = _HEADING.match(self._texts[start])
        return self._unmarked(start, match.end() if match else 0)

    def _unmarked(self, at: int, content: int) -> str:
        line = self._texts[at]
        mark = _MARK.match(line, _blanks_after(line, content))
        return line[mark.end() if mark else content :]


def _items_that_are_steps(scan: _Scan) -> tuple[Item, ...]:
    """Return the items that are steps: the marked, else the numbered, else the top ones."""
    marked = [item for item in scan.items if item.is_marked]
    if marked:
        depth = min(item.depth for item in marked)
        groups = _lists_of_steps(scan, [item for item in marked if item.depth == depth])
        return tuple(item for item in scan.items if item.depth == depth and _is_step(item, groups))
    top = [item for item in scan.items if item.depth == 1]
    return (
        tuple(scan.step_headings())
        or tuple(scan.step_lines())
        or tuple(item for item in top if item.numbered)
        or tuple(top)
    )


def _lists_of_steps(scan: _Scan, marked: Sequence[Item]) -> set[int]:
    """Return the lists of steps; if some are numbered, a list below another heading has none."""
    groups: dict[int, list[Item]] = {}
    for item in marked:
        groups.setdefault(item.group, []).append(item)
    places = {
        scan.heading_above(items[0].start)
        for items in groups.values()
        if any(item.numbered for item in items)
    }
    return {
        group
        for group, items in groups.items()
        if not places
        or scan.heading_above(items[0].start) in places
        or any(item.numbered or scan.names_somebody(item) for item in items)
    }


def _is_step(item: Item, groups: set[int]) -> bool:
    if item.is_marked:
        return item.group in groups
    if item.group in groups:
        return item.mark is not None or item.numbered
    return item.mark is not None and not item.mark.isalnum()


def _with_indented_lines(texts: list[str], items: Sequence[Item], stop: int) -> Iterator[Item]:
    """Give each item the lines indented by two after it; Markdown wants three under `1. `."""
    for at, item in enumerate(items):
        limit = items[at + 1].start if at + 1 < len(items) else stop
        least = indent_of(texts[item.start]) + _ADOPTED_INDENT
        end = line = min(item.end, limit)
        while line < limit and (is_blank(texts[line]) or indent_of(texts[line]) >= least):
            line += 1
            end = end if is_blank(texts[line - 1]) else line
        yield replace(item, end=end)


def _blanks_after(line: str, at: int) -> int:
    match = _BLANKS.match(line, at)
    return match.end() if match else at
