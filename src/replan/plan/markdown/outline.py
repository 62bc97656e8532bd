"""Find the steps of a document in one pass over its lines."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from replan.plan.markdown.lines import Verbatim, indent_of, is_blank
from replan.plan.markdown.title import own_number
from replan.plan.model import StepStatus

MARKS = {
    StepStatus.PENDING: " ",
    StepStatus.EXECUTING: "~",
    StepStatus.COMPLETED: "x",
    StepStatus.FAILED: "!",
    StepStatus.SKIPPED: "-",
}
"""What is written into the box of a step, by its status."""

KNOWN_MARKS = "".join(MARKS.values()) + "X"
PENDING_MARKS = " ~"
DETAIL_INDENT = 2
"""Columns by which a line has to be indented to belong to the item above it."""

_ITEM = re.compile(r"[ \t]*+(?:[-*+]|(?P<counter>\d{1,9})[.)])(?:[ \t]+|$)")
BOX = re.compile(r"\[([^\[\]]?)\](?=\s|$)[ \t]*")
_HEADING = re.compile(r"[ ]{0,3}#{1,6}(?:[ \t]|$)")
_TITLE = re.compile(r"[ ]{0,3}#(?:[ \t]+(.*?))??(?:[ \t]+#+)?[ \t]*")
_RULE = re.compile(r"[ \t]*([-*_])(?:[ \t]*\1){2,}[ \t]*")
_OUTER_FENCE = re.compile(
    r"(?P<mark>`{3,}+|~{3,}+)[ \t]*+(?:markdown|md|plan|text|txt)?[ \t]*+", re.IGNORECASE
)
# What begins like a list item or a box continues no line above, even if Markdown says so.
_LIKE_ITEM = re.compile(r"[ \t]*(?:[-*+•·‣◦▪–—☐☑☒]|\d{1,9}[.)．、]|\\?[\[【［])")
_OTHERS = (">", "```", "~~~", "<!--", "</")
_CODE_INDENT = 4


@dataclass(slots=True, kw_only=True)
class Item:
    """A list item."""

    start: int  # the line it begins with, counted from 0
    end: int  # the line after its last one; blank lines at its end are not its own
    depth: int  # how many lists it is in
    group: int  # which list it is in
    section: int  # below how many headings it is
    counter: str | None  # the number in its list marker
    content: int  # where in its first line the text after the list marker begins
    mark: str | None  # the character between its brackets, empty if they hold none
    text: int  # where in its first line the text after the brackets begins
    number: str | None  # the number that its text begins with

    @property
    def is_marked(self) -> bool:
        return self.mark is not None and self.mark in KNOWN_MARKS


@dataclass(frozen=True, slots=True)
class Outline:
    """The steps of a document in its order, its title, and the lines that are the document."""

    window: range  # the lines of the plan itself, without a fence around all of it
    items: tuple[Item, ...]  # the items that are steps
    boxed: frozenset[int]  # the lines of all items with the mark of a step
    title: tuple[str, int] | None  # the first heading of the first level before the first step
    verbatim: frozenset[int]  # the lines of quotes, and of fences and comments that are closed


def read_heading(line: str) -> str | None:
    """Read a line such as `# Title`; None if it is not a heading of the first level."""
    match = _TITLE.fullmatch(line)
    return None if match is None else (match[1] or "").strip()


def is_marked_line(line: str) -> bool:
    """Whether a line is an item with a box."""
    marker = _ITEM.match(line)
    box = BOX.match(line, marker.end()) if marker else None
    return box is not None and box[1] in KNOWN_MARKS


def is_rule(line: str) -> bool:
    return _RULE.fullmatch(line) is not None


def is_like_item(line: str) -> bool:
    """Whether a line begins like an item of a list, well written or not."""
    return _LIKE_ITEM.match(line) is not None


def continues_text(line: str) -> bool:
    """Whether a line can continue the text of the line above, whatever its indentation."""
    is_other = is_like_item(line) or is_rule(line) or _HEADING.match(line)
    return not (is_blank(line) or is_other or line.lstrip(" \t").startswith(_OTHERS))


def outline(texts: Sequence[str]) -> Outline:
    window = _window(texts)
    scan = _Scan(texts[: window.stop], window.start)
    scan.run()
    marked = [item for item in scan.items if item.is_marked]
    depth = min((item.depth for item in marked), default=1)
    groups = _groups_of_steps([item for item in marked if item.depth == depth])
    steps = tuple(
        item
        for item in scan.items
        if item.depth == depth
        and (item.group in groups and item.mark is not None if marked else item.counter)
    )
    first = steps[0].start if steps else window.stop
    headings = ((read_heading(texts[at]), at) for at in scan.headings if at < first)
    return Outline(
        window,
        items=steps,
        boxed=frozenset(item.start for item in marked),
        title=next(((text, at) for text, at in headings if text is not None), None),
        verbatim=frozenset(scan.verbatim),
    )


def _window(texts: Sequence[str]) -> range:
    """The lines of the document, without a fence around all of it and blank lines around that."""
    full = [at for at, text in enumerate(texts) if not is_blank(text)]
    opening = _OUTER_FENCE.fullmatch(texts[full[0]]) if full else None
    if opening is None:
        return range(len(texts))
    is_closed = len(full) > 1 and texts[full[-1]].rstrip() == opening["mark"]
    return range(full[0] + 1, full[-1] if is_closed else len(texts))


def _groups_of_steps(marked: Sequence[Item]) -> set[int]:
    """The lists of steps; if some have numbers, those below another heading need one, too."""
    numbered = {item.section for item in marked if item.counter or item.number}
    return {item.group for item in marked if not numbered or item.section in numbered}


@dataclass(slots=True)
class _Scan:
    """Goes through the lines once: which of them are items, headings, and neither."""

    texts: Sequence[str]
    start: int
    items: list[Item] = field(default_factory=list[Item])
    headings: list[int] = field(default_factory=list[int])
    verbatim: set[int] = field(default_factory=set[int])
    # The items that a line can still belong to, each with its indentation.
    _open: list[tuple[Item, int]] = field(default_factory=list[tuple[Item, int]])
    # The lists that can go on, from the outermost to the innermost.
    _lists: list[int] = field(default_factory=list[int])
    _groups: int = 0
    _is_paragraph: bool = False  # whether a line of text can continue the one above

    def run(self) -> None:
        at = self.start
        while at < len(self.texts):
            line = self.texts[at]
            if is_blank(line):
                self._is_paragraph = False
                at += 1
                continue
            self._close_items(line)
            block = Verbatim.opened_by(line)
            end = at + 1
            if block is None:
                self._read_line(at, line)
            else:
                # A fence or a comment does not outlive the item that it is in.
                least = self._open[-1][1] + DETAIL_INDENT if self._open else 0
                end, is_closed = block.end(self.texts, at, least)
                self.verbatim.update(range(at, end) if is_closed else ())
                self._is_paragraph = False
            if not (self._open and self._open[-1][0].start == at):
                # What is no item ends the lists that it is not in.
                del self._lists[len(self._open) :]
            for item, _ in self._open:
                item.end = end
            at = end

    def _close_items(self, line: str) -> None:
        """Close the items that a line is neither indented enough for nor continues the text of."""
        indent = indent_of(line)
        is_lazy = self._is_paragraph and continues_text(line)
        while self._open and not is_lazy and indent < self._open[-1][1] + DETAIL_INDENT:
            self._open.pop()

    def _read_line(self, at: int, line: str) -> None:
        indent = indent_of(line)
        marker = (
            None
            if is_rule(line) or (indent >= _CODE_INDENT and not self._open)
            else _ITEM.match(line)
        )
        if marker is not None:
            self._open_item(at, line, marker, indent)
        elif line.lstrip(" \t").startswith(">"):
            self.verbatim.add(at)
        elif _HEADING.match(line) and not self._open:
            self.headings.append(at)
        self._is_paragraph = at not in self.verbatim and not _HEADING.match(line)

    def _open_item(self, at: int, line: str, marker: re.Match[str], indent: int) -> None:
        depth = len(self._open) + 1
        if len(self._lists) < depth:
            self._groups += 1
            self._lists.append(self._groups)
        del self._lists[depth:]
        box = BOX.match(line, marker.end())
        text = box.end() if box else marker.end()
        item = Item(
            start=at,
            end=at + 1,
            depth=depth,
            group=self._lists[-1],
            section=len(self.headings),
            counter=marker["counter"],
            content=marker.end(),
            mark=box[1] if box else None,
            text=text,
            number=own_number(line[text:]) if box else None,
        )
        self._open.append((item, indent))
        self.items.append(item)
