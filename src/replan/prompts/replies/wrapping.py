"""What is around a reply and no part of it: thoughts before it, a code fence, end tokens."""

import re
from typing import NamedTuple

from replan.base.texts.storable import whole_characters

BLANK = " \t\n\r\x0b\x0c\x85\xa0\u2028\u2029\u3000\ufeff\u200b\u200e\u200f"
"""What is not seen."""
_TAGS = r"(?:think|thinking|thoughts?|reasoning|reflection|analysis)"
THOUGHTS = re.compile(rf"<({_TAGS})>|\[(THINK)\]|(◁)think▷", re.IGNORECASE)
"""What opens thoughts."""
OPENED = re.compile(f"[{re.escape(BLANK)}]*+(?:{THOUGHTS.pattern})", re.IGNORECASE)
_UNOPENED = re.compile(rf"(?:</{_TAGS}>|\[/THINK\]|◁/think▷)[ \t]*(?=\n)", re.IGNORECASE)
_CHANNEL = re.compile(r"<\|(?:start|channel)\|>")
_FINAL_CHANNEL = "<|channel|>final<|message|>"
_TOKEN = re.compile(r"(?:<\|[^<>|\s]{1,40}\|>|</s>|<eos>|<end_of_turn>)\s*\Z")
_LONGEST_TOKEN, _MOST_TOKENS = 60, 3
_FENCE = re.compile(r"[ \t]{0,3}(`{3,}+|~{3,}+)[ \t]*+([\w+-]{0,20}+)[ \t]*+")
_FENCED = re.compile(r"^```[^\n`]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
_NEUTRAL = frozenset(("", "markdown", "md", "yaml", "yml", "text", "txt", "json"))
_BLANK_LINES = re.compile(rf"(?:[{re.escape(BLANK)}]*\n)?[\ufeff\u200b\u200e\u200f]*")


class Fence(NamedTuple):
    """What is in a code fence, and its language."""

    language: str
    inner: str


def plain(text: str) -> str:
    """Return the text with line feeds as its only line ends, without NUL and half characters."""
    return whole_characters(text.replace("\r\n", "\n").replace("\x00", ""))


def begun(text: str) -> str:
    """Return the text from its first line with something on it."""
    first = _BLANK_LINES.match(text)
    return text[first.end() if first else 0 :]


def trimmed(text: str) -> str:
    """Return the text without the blank lines around it."""
    return begun(text).rstrip(BLANK)


def unwrapped(text: str) -> str:
    """Return a reply without the thoughts before it and the tokens that end it.

    Nothing is left of a reply that never ends its thoughts.
    """
    text, start = without_tokens(plain(text)), 0
    while opened := OPENED.match(text, start):
        start = end_of_thoughts(text, opened, opened.end())
        if start < 0:
            return ""
    return trimmed(text[start:])


def behind_thoughts(text: str) -> str:
    """Return what is behind a closing tag of thoughts that stands alone; else the whole text.

    Servers that put the opening tag into the prompt send only the closing one.
    """
    closed = _UNOPENED.search(text)
    is_alone = closed and not THOUGHTS.search(text, 0, closed.start())
    return (is_alone and closed and trimmed(text[closed.end() :])) or text


def end_of_thoughts(text: str, opened: re.Match[str], start: int = 0) -> int:
    """The place behind the thoughts that a mark opens; -1 if they are not closed."""
    name = opened[1] or opened[2]
    close = f"[/{name}]" if opened[2] else f"</{name}>" if name else "◁/think▷"
    found = text.find(close, start)
    return found if found < 0 else found + len(close)


def without_tokens(text: str) -> str:
    """Return a reply without the tokens of a chat template around it."""
    if _CHANNEL.match(text):
        final = text.rfind(_FINAL_CHANNEL)
        text = text[final + len(_FINAL_CHANNEL) :] if final >= 0 else ""
    for _ in range(_MOST_TOKENS):
        found = _TOKEN.search(text, max(0, len(text.rstrip()) - _LONGEST_TOKEN))
        if found is None:
            break
        text = text[: found.start()]
    return text


def fence_around(text: str) -> Fence | None:
    """What a single fence in a neutral language holds, if it is around the whole text."""
    first, _, rest = text.partition("\n")
    opened = _FENCE.fullmatch(first)
    if opened is None or opened[2].lower() not in _NEUTRAL:
        return None
    lines = rest.rstrip(BLANK).split("\n")
    inside = ""
    for line in lines[:-1]:
        mark = _FENCE.fullmatch(line)
        if mark is None:
            continue
        if inside:
            inside = "" if mark[1].startswith(inside) and not mark[2] else inside
        elif mark[2] or not mark[1].startswith(opened[1]):
            inside = mark[1]
        else:
            return None
    last = _FENCE.fullmatch(lines[-1])
    is_closed = not inside and last is not None and last[1].startswith(opened[1]) and not last[2]
    return Fence(opened[2].lower(), "\n".join(lines[:-1])) if is_closed else None


def first_fence(text: str) -> tuple[str, str] | None:
    """What is in a fence in a neutral language that a text begins with, and the text behind it."""
    first, _, rest = text.partition("\n")
    opened = _FENCE.fullmatch(first)
    if opened is None or opened[2].lower() not in _NEUTRAL:
        return None
    closed = re.search(rf"^{re.escape(opened[1])}[ \t]*$", rest, re.MULTILINE)
    return (rest[: closed.start()], rest[closed.end() :]) if closed else None


def json_in(text: str) -> str:
    """The part of a reply that may be JSON: all of it, or what the one code fence in it holds."""
    text = behind_thoughts(unwrapped(text))
    whole = fence_around(text)
    if whole is not None:
        return whole.inner
    fenced = [] if text.startswith(("{", "[", '"')) else _FENCED.findall(text)
    return fenced[0] if len(fenced) == 1 else text
