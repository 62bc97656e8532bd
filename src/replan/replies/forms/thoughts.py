"""Thoughts and a template's tokens in a reply: where they are, and the reply without them."""

import re
from typing import NamedTuple

_TAGS = (
    r"(?:[\w:.-]{0,20}(?:think|thought|reason|reflec|reflex|scratch_?pad|monolog|deliberat|analysis)"
    r"[\w:.-]{0,20}|(?:pre)?planning)"
)
_LEFT, _RIGHT = "(?:<|&lt;)", "(?:>|&gt;)"
_MARKS = (
    (
        rf"{_LEFT}{_TAGS}(?:[ \t][^<>\n]{{0,80}})?{_RIGHT}|◁think▷",
        rf"{_LEFT}/{_TAGS}[ \t]*{_RIGHT}|◁/think▷",
    ),
    (rf"\[{_TAGS}\]", rf"\[/{_TAGS}\]"),
    (rf"<\|begin_of_{_TAGS}\|>", rf"<\|end_of_{_TAGS}\|>"),
    (r"<unused94>", r"<unused95>"),
    (rf"(?:```|~~~){_TAGS}[ \t]{{0,9}}(?=\n|\Z)", r"^(?:```|~~~)[ \t]*$"),
    (
        rf"<details[^<>\n]{{0,40}}>\s*<summary>[^<>\n]{{0,20}}{_TAGS}[^<>\n]{{0,20}}</summary>",
        "</details>",
    ),
)
_KINDS = tuple(
    (
        re.compile(rf"[ \t]*(?:{opened})", re.IGNORECASE),
        re.compile(closed, re.IGNORECASE | re.MULTILINE),
    )
    for opened, closed in _MARKS
)
_CLOSE = re.compile("|".join(closed for _, closed in _MARKS[:4]), re.IGNORECASE)
# Most texts have none of them, and one character is found faster than many words are tried.
_CLOSE_BEGINS = re.compile(r"[<&◁\[]")
_OPEN = re.compile("|".join(opened for opened, _ in _MARKS[:4]), re.IGNORECASE)
_ANY = re.compile(rf"(?m)^[ \t]*(?:{_LEFT}|◁|\[|```|~~~)")
_PIPED = r"<[|｜][^<>\s|｜]{1,40}[|｜]>"
_TOKEN = re.compile(rf"(?:{_PIPED}|</?s>|<eos>|<(?:end|start)_of_turn>|\[(?:END|EOS|/?INST)\])")
_STRAY = re.compile(r"\s{0,20}</(answer|response|output|final|reply|result|plan|message)>\s*\Z")
_BLANKS = re.compile(r"\s{0,200}")
_START = re.compile(
    r"\s*(?:(?:<s>|<\|im_start\|>(?:assistant)?|<\|start_header_id\|>assistant<\|end_header_id\|>"
    r"|<\|begin_of_text\|>|<\|assistant\|>|<start_of_turn>(?:model|assistant)?|\[/INST\])[ \t]*\n*"
    r"|assistant[ \t]*[:\n]\s*(?=---|\{|<|\*\*\w|(?:complexity|verdict|status)\b))+",
    re.IGNORECASE,
)
_CHANNEL_OPEN = re.compile(r"\s*<\|(?:start|channel)\|>")
_FINAL_CHANNEL = "<|channel|>final<|message|>"
_FENCE = re.compile(r"^[ \t]{0,3}(`{3,}|~{3,})", re.MULTILINE)

POSSIBLE = re.compile(
    rf"{_PIPED}|</s>|<eos>|<(?:end|start)_of_turn>|\[(?:END|EOS|/?INST)\]"
    rf"|(?m:^)[ \t]*(?:{_LEFT}/?(?:details|{_TAGS})|\[/?{_TAGS}\]|◁|(?:```|~~~){_TAGS})",
    re.IGNORECASE,
)
"""Where thoughts or a token may begin; only the whole reply shows whether they do."""


class Thought(NamedTuple):
    """The beginning of thoughts: where the mark ends, and what closes it."""

    end: int
    close: re.Pattern[str]


def opens_thought(text: str, at: int = 0) -> Thought | None:
    for opened, close in _KINDS:
        found = opened.match(text, at)
        if found:
            return Thought(found.end(), close)
    return None


def speaks_of_thought(text: str, end: int) -> bool:
    """Whether a mark that opens thoughts is anywhere before a place."""
    return _OPEN.search(text, 0, end) is not None


def closes_thought(text: str) -> re.Match[str] | None:
    first = _CLOSE_BEGINS.search(text)
    return _CLOSE.search(text, first.start()) if first else None


def without_tokens(text: str) -> str:
    """Drop a template's tokens around a reply, and what follows the one that ends it."""
    if _CHANNEL_OPEN.match(text):
        final = text.rfind(_FINAL_CHANNEL)
        text = text[final + len(_FINAL_CHANNEL) :] if final >= 0 else ""
    start = _START.match(text)
    text = text[start.end() :] if start else text
    stray = _STRAY.search(text, max(0, len(text) - 200))
    if stray and f"<{stray[1]}" not in text:
        text = text[: stray.start()]
    end = len(text.rstrip())
    for found in _TOKEN.finditer(text):
        after = _BLANKS.match(text, found.end())
        if found.end() >= end or (after and _TOKEN.match(text, after.end())):
            return text[: found.start()]
    return text


def without_thoughts(text: str) -> str:
    """Drop thoughts on separate lines around a text; unclosed ones reach to its end."""
    if not _ANY.search(text) and not closes_thought(text[-200:]):
        return text
    end = len(text.rstrip())
    start = at = 0
    mark = ""
    while at < end:
        line_end = text.find("\n", at)
        after = end if line_end < 0 else line_end + 1
        thought = None if mark else opens_thought(text, at)
        closed = thought.close.search(text, thought.end) if thought else None
        if thought and (closed is None or closed.end() >= end):
            return text[start:at]
        if closed and not text[start:at].strip():
            start = at = closed.end()
            continue
        mark = _fence_after(text[at:after], mark)
        at = closed.end() if closed else after
    head, newline, last = text[start:end].rpartition("\n")
    stray = closes_thought(last)
    return head if stray and newline and stray[0] == last.strip() and not mark else text[start:]


def _fence_after(line: str, mark: str) -> str:
    found = _FENCE.match(line)
    if found is None:
        return mark
    if not mark:
        return found[1]
    return "" if found[1].startswith(mark) and not line.strip().strip(mark[0]) else mark
