"""Text as a terminal shows it: harmless, and measured in cells instead of characters."""

import re
import sys
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from shutil import get_terminal_size
from typing import TextIO

from rich.cells import cell_len

from replan.base.texts.signs import harmless, one_line

# Terminals disagree on how wide emoji are that such signs form together.
_JOINING = re.compile(
    "[\ufe0e\ufe0f\U0001f3fb-\U0001f3ff]|\u200d(?=[\u2190-\u2bff\U0001f000-\U0001ffff])"
)
_INDENT = re.compile(r"\s*(?:(?:[-*+]|\d{1,3}[.)])\s+)?(?:\[[ x~!-]\]\s+)?")
_PREFORMATTED = re.compile(r"\s*(?:\||```|~~~)")
_WORD = re.compile(r"\S+\s*")
_LEAST_TEXT = 8
_LONGEST_CELL = 16
_WIDEST_COLUMN = 40
_MINUTE, _HOUR, _SHORT = 60, 3600, 10


def steady(text: str) -> str:
    """Return a text in one line that is equally wide on all terminals, for what is redrawn."""
    return _JOINING.sub("", one_line(text))


def cut(text: str, width: int) -> str:
    """Cut a line to so many cells, with an ellipsis where something is left out."""
    if not _is_wider(text, width):
        return text
    if width < 1:
        return ""
    return f"{_head(text, width - 1).rstrip()}…"


def padded(text: str, width: int) -> str:
    """Cut a line or fill it with blanks to exactly so many cells."""
    text = cut(text, width)
    return text + " " * (width - cell_len(text))


def columns(
    rows: Iterable[Sequence[str]],
    width: int = sys.maxsize,
    *,
    right: Collection[int] = (),
    widest: int = _WIDEST_COLUMN,
) -> list[str]:
    """Lines of a table, each cut to the width.

    Args:
        rows: The cells; columns that are empty are left out.
        width: The cells of a line.
        right: The columns whose text is at the right.
        widest: How wide a column is at most, but for the last.
    """
    table = [list(row) for row in rows]
    by_column = enumerate(zip(*table, strict=True))
    widths = {at: max(map(cell_len, cells)) for at, cells in by_column}
    shown = [at for at, cells in widths.items() if cells]
    room = {at: widths[at] if at == shown[-1] else min(widest, widths[at]) for at in shown}

    def cell(text: str, at: int) -> str:
        text = cut(text, room[at])
        blanks = " " * (room[at] - cell_len(text))
        return blanks + text if at in right else text + blanks

    lines = ("  ".join(cell(row[at], at) for at in shown).rstrip() for row in table)
    return [cut(line, width) for line in lines]


def width_of(output: TextIO) -> int:
    """The cells of a line of a terminal; in a pipe lines are as long as they like."""
    return get_terminal_size((100, 24)).columns - 1 if output.isatty() else sys.maxsize


def counted(number: int, what: str) -> str:
    """A number with its noun."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def sentence(text: str) -> str:
    """A line as a sentence of its own."""
    return f"{text[:1].upper()}{text[1:].removesuffix('.')}."


def amount(cost: float, currency: str = "") -> str:
    """An amount of money with the digits that count, and without powers of ten."""
    return f"{Decimal(f'{cost:.4g}'):f} {one_line(currency)}".rstrip()


def seconds(value: float) -> str:
    """Write a duration for people."""
    if value < _SHORT:
        return f"{value:.1f} s"
    if value < _MINUTE:
        return f"{value:.0f} s" if value < _MINUTE - 0.5 else "1:00"
    whole = int(value)
    if value < _HOUR:
        return f"{whole // 60}:{whole % 60:02}"
    return f"{whole // _HOUR}:{whole % _HOUR // 60:02}:{whole % 60:02}"


def minute(at: datetime) -> str:
    """A time as people here read it, to the minute."""
    return at.astimezone().strftime("%Y-%m-%d %H:%M")


def day_and_time(at: datetime) -> str:
    """A time with its day, as people here read it."""
    return at.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def wrapped(text: str, width: int) -> Iterator[str]:
    """Yield the lines of a Markdown text, broken between words; tables and code are kept."""
    fence = ""
    for line in harmless(text).expandtabs(4).split("\n"):
        mark = line.strip()[:3]
        if mark in ("```", "~~~") and fence in ("", mark):
            fence = "" if fence else mark
            yield line
        elif fence or _PREFORMATTED.match(line) or not _is_wider(line, width):
            yield line.rstrip()
        else:
            yield from _broken(line, width)


def folded(text: str, width: int) -> Iterator[str]:
    """Yield the lines of a Markdown text as `wrapped` does, but none wider than the width."""
    for line in wrapped(text, width):
        yield from _pieces(line, width, width)


def _broken(line: str, width: int) -> Iterator[str]:
    found = _INDENT.match(line)
    lead = found[0] if found else ""
    if cell_len(lead) > width - _LEAST_TEXT:
        lead = ""
    indent, current = " " * cell_len(lead), lead
    room = width - cell_len(indent)
    for word in _WORD.findall(line[len(lead) :]):
        text, is_begun = word.rstrip(), current.strip() and current != lead
        if is_begun and _is_wider(text, width - cell_len(current)):
            yield current.rstrip()
            current = indent
        # A word may be wider than the line; so is a text whose script has no blanks.
        *full, rest = _pieces(text, width - cell_len(current), room)
        for each in full:
            yield current + each
            current = indent
        current += rest + word[len(text) :]
    if current.strip():
        yield current.rstrip()


def _pieces(text: str, first: int, width: int) -> Iterator[str]:
    """A text in pieces that fill the cells of a first line and of further ones, then the rest."""
    at, room = 0, first
    # The text may be a very long one: of it no more is looked at than a line can hold.
    while _is_wider(ahead := text[at : at + _LONGEST_CELL * max(room, 1) + 1], room):
        head = _head(ahead, room)
        if not head:
            break
        yield head
        at, room = at + len(head), width
    yield text[at:]


def _is_wider(text: str, width: int) -> bool:
    most = _LONGEST_CELL * max(width, 1)
    return cell_len(text[: width + 1]) > width or len(text) > most or cell_len(text) > width


def _head(text: str, width: int) -> str:
    """The longest beginning of a wider text that fits; no character is split."""
    # Of a very long text no more than can be the head is measured: mostly a sign is a cell.
    text = text[: _LONGEST_CELL * max(0, width)]
    ends = range(1, len(text) + 1)
    return text[: bisect_right(ends, width, key=lambda end: cell_len(text[:end]))]


def answer_text(key: str, action: str, by: str, text: str) -> str:
    """The line about a person's answer."""
    why = f": {one_line(text)}" if text else ""
    return f"{one_line(by) or 'a person'} {one_line(action)} {one_line(key)}{why}"


def correction_text(action: str, step_id: int, by: str, origin: str) -> str:
    """The line about a step that a person has repeated or skipped."""
    how = "is done again" if action == "retry" else "is left out"
    who = f", by {one_line(by)}" if by else ""
    before = f"continues from run {one_line(origin[:8])}: " if origin else ""
    return f"{before}step {step_id} {how}{who}"
