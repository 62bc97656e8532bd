"""Text as a terminal shows it: harmless, and measured in cells instead of characters."""

import re
from collections.abc import Iterator

from rich.cells import cell_len, set_cell_size

# What models and files say may hold signs that steer a terminal or turn its direction of writing.
_STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
# Terminals disagree on how wide emoji are that such signs put together.
_JOINING = re.compile(
    "[\u200b\u2060\ufeff\ufe0e\ufe0f\U0001f3fb-\U0001f3ff]|\u200d(?=[\u2190-\u2bff\U0001f000-\U0001ffff])"
)
_INDENT = re.compile(r"\s*(?:(?:[-*+]|\d{1,3}[.)])\s+)?(?:\[[ x~!-]\]\s+)?")
_PREFORMATTED = re.compile(r"\s*(?:\||```|~~~)")
_WORD = re.compile(r"\S+\s*")
_LEAST_TEXT = 8
_LONGEST_CELL = 16
_MINUTE, _HOUR, _SHORT = 60, 3600, 10


def harmless(text: str) -> str:
    """Give a text without signs that steer a terminal; line ends and tabs stay."""
    return _STEERING.sub("\ufffd", text.replace("\r", ""))


def one_line(text: str) -> str:
    """Give a text in one line, harmless."""
    return harmless(" ".join(text.split()))


def steady(text: str) -> str:
    """Give a text in one line whose width no terminal disputes, for what is drawn over again."""
    return _JOINING.sub("", one_line(text))


def cut(text: str, width: int) -> str:
    """Cut a line to so many cells, with an ellipsis where something is left out."""
    if cell_len(text) <= width:
        return text
    if width < 1:
        return ""
    return f"{_head(text, width - 1).rstrip()}…"


def padded(text: str, width: int) -> str:
    """Cut a line or fill it with blanks to exactly so many cells."""
    text = cut(text, width)
    return text + " " * (width - cell_len(text))


def counted(number: int, what: str) -> str:
    """A number with its noun."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


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


def wrapped(text: str, width: int) -> Iterator[str]:
    """Give the lines of a Markdown text, broken between words; tables and code stay as they are."""
    fence = ""
    for line in harmless(text).expandtabs(4).split("\n"):
        mark = line.strip()[:3]
        if mark in ("```", "~~~") and fence in ("", mark):
            fence = "" if fence else mark
            yield line
        elif fence or _PREFORMATTED.match(line) or cell_len(line) <= width:
            yield line.rstrip()
        else:
            yield from _broken(line, width)


def folded(text: str, width: int) -> Iterator[str]:
    """Give the lines of a Markdown text as `wrapped` does, but none wider than the width."""
    for line in wrapped(text, width):
        while cell_len(line) > width:
            head = _head(line, width)
            if not head:
                break
            yield head
            line = line[len(head) :]  # noqa: PLW2901 - what is left of it
        yield line


def _broken(line: str, width: int) -> Iterator[str]:
    found = _INDENT.match(line)
    lead = found[0] if found else ""
    if cell_len(lead) > width - _LEAST_TEXT:
        lead = ""
    indent, current = " " * cell_len(lead), lead
    for word in _WORD.findall(line[len(lead) :]):
        rest = word
        is_begun = current.strip() and current != lead
        if is_begun and cell_len(current) + cell_len(rest.rstrip()) > width:
            yield current.rstrip()
            current = indent
        while cell_len(current) + cell_len(rest.rstrip()) > width:
            # A word that is wider than the line; also a text whose script has no blanks.
            head = _head(rest, width - cell_len(current))
            if not head:
                break
            yield current + head
            current, rest = indent, rest[len(head) :]
        current += rest
    if current.strip():
        yield current.rstrip()


def _head(text: str, width: int) -> str:
    """The longest beginning of a wider text that fits; no character is split."""
    if width > 0:
        # Of a very long text no more than can be the head is measured.
        text = text[: _LONGEST_CELL * width]
        if cell_len(text) <= width:
            return text
    head = set_cell_size(text, max(0, width))
    # Half of a wide character is filled up with a blank.
    return head if text.startswith(head) else head[:-1]


def answer_told(key: str, action: str, by: str, text: str) -> str:
    """The line of what a person answered."""
    why = f": {one_line(text)}" if text else ""
    return f"{one_line(by) or 'a person'} {one_line(action)} {one_line(key)}{why}"


def corrected(action: str, step_id: int, by: str, origin: str) -> str:
    """The line of a person's word on a step."""
    how = "is done again" if action == "retry" else "is left out"
    who = f", by {one_line(by)}" if by else ""
    before = f"goes on from run {one_line(origin[:8])}: " if origin else ""
    return f"{before}step {step_id} {how}{who}"
