"""What models wrap a reply in: thinking, answer tags, code fences, invisible characters."""

import re
from typing import NamedTuple

from replan.replies.forms.thoughts import (
    closes_thought,
    opens_thought,
    speaks_of_thought,
    without_tokens,
)

# Zero-width characters, marks of writing direction, byte order mark, NUL.
INVISIBLE = (
    "\ufeff\u200b\u200c\u200d\u200e\u200f\u2060\u202a\u202b\u202c\u202d\u202e\x00"
    "\u2066\u2067\u2068\u2069"
)
BLANK = (
    " \t\n\r\x0b\x0c\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006"
    "\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
) + INVISIBLE
"""All invisible characters."""

PROSE_LINES = 2
"""How many lines of introduction may be before the reply itself."""

_ANSWER_OPEN = re.compile(
    r"[ \t]*<(answer|response|output|final|reply|final_answer)>", re.IGNORECASE
)
_BLANKS = re.compile(f"[{re.escape(BLANK)}]*")
_FENCE = re.compile(r"^[ \t]{0,3}(`{3,}+|~{3,}+)[ \t]*+([\w+-]{0,20}+)[ \t]*+$", re.MULTILINE)
_MAX_FENCES = 2_000
NEUTRAL_LANGUAGES = frozenset(
    ("", "markdown", "md", "yaml", "yml", "text", "txt", "plaintext", "json", "json5", "jsonc")
)
"""Languages of a fence that may wrap a reply; any other one is the answer's own code."""
MARKDOWN = frozenset(("markdown", "md"))
_SURROGATE = re.compile("[\ud800-\udfff]")


class Thinking(NamedTuple):
    """Where the reply starts after its thinking, and whether the thinking was closed."""

    end: int
    closed: bool


class Fence(NamedTuple):
    """A text that starts with a code fence."""

    language: str
    inner: str
    rest: str


def plain(text: str) -> str:
    """Return the text with line feeds as its only line ends, without NUL and half characters."""
    return _SURROGATE.sub("\ufffd", text.replace("\r\n", "\n").replace("\x00", ""))


def skip_blank(text: str, start: int = 0) -> int:
    """Find the first line with something on it; its indentation stays part of it."""
    found = _BLANKS.match(text, start)
    end = found.end() if found else start
    line = text.rfind("\n", start, end) + 1 or start
    while line < end and text[line] in INVISIBLE:
        line += 1
    return line


def trimmed(text: str) -> str:
    """Return the text without the blank lines around it."""
    return text[skip_blank(text) :].rstrip(BLANK)


def few_lines(text: str) -> bool:
    """Whether a text before the reply is short enough to be only an introduction."""
    head = text[:2_000]
    return len(text) == len(head) and (
        sum(1 for line in head.split("\n") if line.strip(BLANK)) <= PROSE_LINES
    )


def unless_announcement(before: str) -> str:
    """Return what is before a front matter, unless it only announces what follows."""
    text = before.strip(BLANK)
    return "" if text.endswith((":", "\uff1a", "]", ">", "`", "(")) else text


def skip_thinking(text: str) -> Thinking:
    end = skip_blank(text)
    while opened := opens_thought(text, end):
        closed = opened.close.search(text, opened.end)
        if closed is None:
            return Thinking(end, closed=False)
        end = skip_blank(text, closed.end())
    return Thinking(end, closed=True)


def skip_unopened_thinking(text: str) -> int | None:
    """Find where a reply continues after a closing tag whose opening tag was never sent.

    Servers that put the opening tag into the prompt send only the closing one. It must start or end
    its line, so that an answer about such tags is left alone.
    """
    closed = closes_thought(text)
    if closed is None or speaks_of_thought(text, closed.start()):
        return None
    line = text.rfind("\n", 0, closed.start()) + 1
    line_end = text.find("\n", closed.end())
    after = text[closed.end() : line_end if line_end >= 0 else len(text)]
    if text[line : closed.start()].strip(BLANK) and after.strip(BLANK):
        return None
    if not text[closed.end() :].strip(BLANK):
        return None  # it is behind the reply
    return skip_blank(text, closed.end())


def without_thinking(text: str) -> str:
    """Give a reply without the thinking before it; nothing is left of one that never ends it."""
    source = without_tokens(plain(text))
    thinking = skip_thinking(source)
    source = source[thinking.end if thinking.closed else len(source) :]
    return source[skip_unopened_thinking(source) or 0 :]


def without_answer_tag(text: str) -> str | None:
    """Unwrap `<answer>…</answer>` around a whole reply."""
    opened = _ANSWER_OPEN.match(text)
    if opened is None:
        return None
    inner, _, rest = text[opened.end() :].rpartition(f"</{opened[1]}>")
    if not inner:
        return text[opened.end() :]
    return None if rest.strip(BLANK) else inner


def opens_fence(line: str) -> str | None:
    found = _FENCE.fullmatch(line)
    return found[2].lower() if found else None


def find_fence(text: str) -> int | None:
    """Find the first line of a text that opens a code fence in a language that may wrap a reply."""
    found = _FENCE.search(text)
    return found.start() if found and found[2].lower() in NEUTRAL_LANGUAGES else None


def first_fence(text: str) -> Fence | None:
    """Split a text that starts with a fence where that fence is closed for the first time."""
    opened = _FENCE.match(text)
    if opened is None:
        return None
    for line in _FENCE.finditer(text, opened.end()):
        if _closes(line, opened):
            return _split(text, opened, line)
    return Fence(opened[2].lower(), text[opened.end() :], "")


def whole_fence(text: str) -> Fence | None:
    """Split a text that starts with a fence; there may be code blocks inside it."""
    opened = _FENCE.match(text)
    if opened is None:
        return None
    lines = [line for line, _ in zip(_FENCE.finditer(text), range(_MAX_FENCES), strict=False)]
    if len(lines) == _MAX_FENCES:
        return None
    if len(lines) == 1:
        return Fence(opened[2].lower(), text[opened.end() :], "")
    last = lines[-1]
    ends = not text[last.end() :].strip(BLANK)
    # After a fence with a language the last one closes that one, not the one around everything.
    if ends and _closes(last, opened) and (lines[-2] is lines[0] or not lines[-2][2]):
        return _split(text, opened, last)
    close = _outer_close(lines, opened)
    return (
        _split(text, opened, close) if close else Fence(opened[2].lower(), text[opened.end() :], "")
    )


def _outer_close(lines: list[re.Match[str]], opened: re.Match[str]) -> re.Match[str] | None:
    inside = False
    for line in lines[1:]:
        if line[2]:
            inside = True
        elif inside:
            inside = False
        elif _closes(line, opened):
            return line
    return None


def _closes(line: re.Match[str], opened: re.Match[str]) -> bool:
    return not line[2] and line[1].startswith(opened[1])


def _split(text: str, opened: re.Match[str], close: re.Match[str]) -> Fence:
    return Fence(opened[2].lower(), text[opened.end() : close.start()], text[close.end() :])


def without_markdown_fence(text: str) -> str:
    """Unwrap a body that consists of one block of Markdown, as models show a document."""
    first = text[: text.find("\n")] if "\n" in text else text
    if opens_fence(first) not in MARKDOWN:
        return text
    fence = whole_fence(text)
    return text if fence is None or fence.rest.strip(BLANK) else trimmed(fence.inner)
