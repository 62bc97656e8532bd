"""The lines of a text as Markdown counts them, each with the line end that it came with."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

# Markdown ends a line at these and at nothing else; `str.splitlines` would also cut at form feeds.
_LINE_END = re.compile(r"(\r\n|\r|\n)")
_TAB_STOP = 4


class Line(NamedTuple):
    """One line: its text, and the line end that followed it (empty at the end of the text)."""

    text: str
    end: str = ""

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
    """Whether the line is blank to Markdown."""
    return not text.strip(" \t")


def indent_of(text: str) -> int:
    """Count the columns that a line is indented by, with tabs stopping at every fourth."""
    return _columns(text[: len(text) - len(text.lstrip(" \t"))])


def cut_indent(text: str, columns: int) -> str:
    """Remove up to so many columns of indentation; a tab that is cut in two leaves spaces."""
    indent = len(text) - len(text.lstrip(" \t"))
    if "\t" not in text[:indent]:
        return text[min(indent, columns) :]
    cut = next((at for at in range(indent) if _columns(text[:at]) >= columns), indent)
    return " " * (_columns(text[:cut]) - columns) + text[cut:]


def _columns(blanks: str) -> int:
    return len(blanks.expandtabs(_TAB_STOP))


def dedent(texts: Sequence[str]) -> list[str]:
    """Remove the indentation that all lines share; blank lines do not count."""
    margin = min((indent_of(text) for text in texts if not is_blank(text)), default=0)
    return [cut_indent(text, margin) for text in texts]


def trim_blank(texts: Sequence[str]) -> list[str]:
    """Remove the blank lines at both ends."""
    full = [at for at, text in enumerate(texts) if not is_blank(text)]
    return list(texts[full[0] : full[-1] + 1]) if full else []


_FENCE = re.compile(r"[ \t]*+(?P<mark>`{3,}+(?=[^`]*+$)|~{3,}+)[ \t]*+(?P<info>[^\s`~]*+)")


@dataclass(frozen=True, slots=True)
class Verbatim:
    """A block whose lines mean nothing in a plan: code in a fence, or a comment."""

    mark: str  # the marks that opened it; `<!--` of a comment
    info: str = ""  # the first word behind the marks of a fence
    # Columns before the marks; those that close a fence have no more, so that a fence within a
    # step does not end one around the plan.
    indent: int = 0

    @classmethod
    def opened_by(cls, line: str) -> Self | None:
        """The block that a line opens; None if it opens none."""
        text = line.lstrip(" \t")
        if text.startswith("<!--"):
            return cls("<!--")
        match = _FENCE.match(line) if text.startswith(("```", "~~~")) else None
        if match is None:
            return None
        return cls(match["mark"], match["info"].casefold(), indent_of(line))

    def is_closed_by(self, line: str) -> bool:
        """Whether a later line is the last one of the block."""
        if self.mark == "<!--":
            return "-->" in line
        text = line.strip(" \t")
        is_bare = text.startswith(self.mark) and not text.strip(self.mark[0])
        return is_bare and indent_of(line) <= self.indent

    def end(self, lines: Sequence[str], start: int, least: int = 0) -> tuple[int, bool]:
        """The line after the last one of a block that begins at `start`, and whether it is closed.

        Without an end it has all lines, up to one that is indented by less than `least` columns.
        """
        is_closed = self.mark == "<!--" and "-->" in lines[start]
        at = start + 1
        while at < len(lines) and not is_closed:
            if least and not is_blank(lines[at]) and indent_of(lines[at]) < least:
                break
            is_closed = self.is_closed_by(lines[at])
            at += 1
        return at, is_closed


def without_comments(text: str) -> str:
    """Replace each closed comment in a text by a blank, in linear time."""
    kept: list[str] = []
    at = 0
    while (start := text.find("<!--", at)) >= 0 and (end := text.find("-->", start + 4)) >= 0:
        kept += [text[at:start], " "]
        at = end + 3
    return "".join([*kept, text[at:]])


def parts(lines: Sequence[str]) -> Iterator[tuple[Verbatim | None, int, int]]:
    """Cut lines into fences and comments, and single lines: what each is, and its range."""
    at = 0
    while at < len(lines):
        block = Verbatim.opened_by(lines[at])
        end = at + 1 if block is None else block.end(lines, at)[0]
        yield block, at, end
        at = end


def outside_fences(lines: Sequence[str]) -> list[bool]:
    """Whether each line is neither in a fence nor in a comment."""
    return [block is None for block, at, end in parts(lines) for _ in range(at, end)]
