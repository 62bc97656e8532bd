"""The lines of a text as Markdown counts them, each with the line end that it came with."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

# Markdown ends a line at these and at nothing else; `str.splitlines` would also cut at form feeds.
_LINE_END = re.compile(r"(\r\n|\r|\n)")
_TAB_STOP = 4


class Line(NamedTuple):
    """One line: its text, and the line end that followed it (empty at the end of the text)."""

    text: str
    end: str

    def __str__(self) -> str:
        return self.text + self.end


def split_lines(text: str) -> list[Line]:
    """Cut a text into lines; joined again they are the text, byte for byte."""
    pieces = _LINE_END.split(text)
    pieces.append("")
    lines = [Line(pieces[at], pieces[at + 1]) for at in range(0, len(pieces), 2)]
    return lines if lines[-1].text else lines[:-1]


def unify_line_ends(text: str) -> str:
    r"""Return the text with every line end written as `\n`."""
    return _LINE_END.sub("\n", text) if "\r" in text else text


def usual_line_end(lines: Sequence[Line]) -> str:
    r"""Return which line end the lines use most; `\n` if they show none."""
    ends = Counter(line.end for line in lines if line.end)
    return ends.most_common(1)[0][0] if ends else "\n"


def is_blank(text: str) -> bool:
    """Whether Markdown sees nothing in the line."""
    return not text.strip(" \t")


def indent_of(text: str) -> int:
    """Count the columns that a line is indented by, with tabs stopping at every fourth."""
    column = 0
    for character in text:
        if character == " ":
            column += 1
        elif character == "\t":
            column += _TAB_STOP - column % _TAB_STOP
        else:
            break
    return column


def cut_indent(text: str, columns: int) -> str:
    """Remove up to so many columns of indentation; a tab that is cut in two leaves spaces."""
    column = 0
    for at, character in enumerate(text):
        if column >= columns or character not in " \t":
            return " " * max(0, column - columns) + text[at:]
        column += 1 if character == " " else _TAB_STOP - column % _TAB_STOP
    return " " * max(0, column - columns)


def dedent(texts: Sequence[str]) -> list[str]:
    """Remove the indentation that all lines share; blank lines do not count."""
    margin = min((indent_of(text) for text in texts if not is_blank(text)), default=0)
    return [cut_indent(text, margin) for text in texts]


def trim_blank(texts: Sequence[str]) -> list[str]:
    """Remove the blank lines at both ends."""
    full = [at for at, text in enumerate(texts) if not is_blank(text)]
    return list(texts[full[0] : full[-1] + 1]) if full else []


_OUTER_FENCE = re.compile(
    r"(?:`{3,}+|~{3,}+)[ \t]*+(?:markdown|md|plan|text|txt)?[ \t]*+", re.IGNORECASE
)
_FENCE = re.compile(r"[ \t]*+(`{3,}+|~{3,}+)")


def without_comments(text: str) -> str:
    """Return a text with a blank for each comment; one pass, whatever begins and never ends."""
    kept: list[str] = []
    at = 0
    while (start := text.find("<!--", at)) >= 0 and (end := text.find("-->", start + 4)) >= 0:
        kept += [text[at:start], " "]
        at = end + 3
    return "".join([*kept, text[at:]])


def outside_fences(lines: Sequence[str]) -> list[bool]:
    outside: list[bool] = []
    mark = ""
    for line in lines:
        found = _FENCE.match(line)
        if found and not mark:
            mark = found[1]
            outside.append(False)
        elif found and found[1].startswith(mark) and not line.strip().strip(mark[0]):
            mark = ""
            outside.append(False)
        else:
            outside.append(not mark)
    return outside


def fenced_window(texts: Sequence[str]) -> range | None:
    """Find a fence around the whole plan, where pairs count: one inside often has as few marks."""
    start = next((at for at, text in enumerate(texts) if _OUTER_FENCE.fullmatch(text)), None)
    if start is None:
        return None
    outer = texts[start][: len(texts[start]) - len(texts[start].lstrip("`~"))]
    inside = False
    for at in range(start + 1, len(texts)):
        text = texts[at].strip(" \t")
        if not text.startswith(outer[0] * 3):
            continue
        bare = not text.strip(outer[0])
        if bare and not inside and texts[at].startswith(outer):
            return range(start + 1, at)
        inside = not (bare and inside)
    return range(start + 1, len(texts))
