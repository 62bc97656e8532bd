"""Front matter without delimiters, or without a closing one: the leading lines with known keys."""

import re
from collections.abc import Collection

from replan.replies.forms.front_matter import (
    DELIMITER,
    MAX_LINES,
    Parts,
    begins_bare,
    body_value,
    continues_indented,
    match_key,
    unindented,
)
from replan.replies.forms.wrapping import BLANK, skip_blank
from replan.replies.vocabulary.keys import BODY_KEYS, find_key, fits, spelled_out, squeezed

_MIN_PREFIX = 3
_ONE_LINE = re.compile(r"[ \t]*+-{3,}+[ \t]++([^\n]{1,2000}?)[ \t]-{3,}+(?=\s|\Z)")
_PASSED_OVER = re.compile(r"\s+\S|[a-z][a-z0-9_-]{0,30}\s?:\s")


def read_bare(text: str, known: Collection[str]) -> Parts | None:
    """Read a front matter without delimiters at the start of a text."""
    first = text[: text.find("\n")] if "\n" in text else text
    if first.lstrip().startswith("|"):
        return _table(text, known)
    return read_leading(text, known, is_delimited=False) if begins_bare(first, known) else None


def read_one_line(text: str, known: Collection[str]) -> Parts | None:
    """Read a front matter whose line ends were lost: `--- complexity: simple --- The answer`."""
    found = _ONE_LINE.match(text)
    if found is None:
        return None
    names = "|".join(re.escape(key) for key in sorted(known))
    lines = re.split(rf"(?<!\s)\s++(?=(?:{names})\s?:)", f" {found[1]}") if names else []
    fields = {line.key: line.value for line in (match_key(line, known) for line in lines) if line}
    return Parts(fields, text[found.end() :].lstrip()) if fields else None


def read_leading(text: str, known: Collection[str], *, is_delimited: bool) -> Parts | None:
    """Read leading lines with known keys, up to the first blank or other line."""
    fields: dict[str, str] = {}
    at = skip_blank(text)
    key = ""
    for _ in range(MAX_LINES):
        end = text.find("\n", at)
        line = text[at : end if end >= 0 else len(text)]
        found = match_key(line, known)
        if found:
            key = found.key
            fields[key] = found.value
        elif fields and (value := body_value(line)) is not None:
            return Parts(fields, _block(value, text[at + len(line) :]))
        elif line.strip(BLANK) and key and continues_indented(line, fields[key].partition("\n")[0]):
            fields[key] = f"{fields[key]}\n{line.strip(BLANK)}"
        elif not (is_delimited and _PASSED_OVER.match(line)):
            break
        at += len(line) + 1
        if end < 0:
            break
    if not fields:
        return None
    values = {key: value.removeprefix(">\n").removeprefix("|\n") for key, value in fields.items()}
    return Parts(values, _after_leading(text[at:], known))


def _after_leading(rest: str, known: Collection[str]) -> str:
    """Return the body after a front matter that has no closing delimiter, or only that one."""
    body = rest[skip_blank(rest) :]
    closed = DELIMITER.match(body)
    if closed is not None:
        return body[closed.end() :]
    word = body.strip(BLANK)
    cut_off = len(word) >= _MIN_PREFIX and any(key.startswith(word.lower()) for key in known)
    return "" if cut_off else body


def _block(value: str, rest: str) -> str:
    """Return the body that began after its key, without the indentation of a YAML text."""
    if value.strip("|>+- "):
        return value + rest
    return unindented(rest)


def _table(text: str, known: Collection[str]) -> Parts | None:
    """Read a front matter that is a table of two columns."""
    fields: dict[str, str] = {}
    at = 0
    while text.startswith("|", at) and len(fields) < MAX_LINES:
        end = text.find("\n", at)
        line = text[at : end if end >= 0 else len(text)]
        if found := match_key(line, known):
            fields[found.key] = found.value
        at += len(line) + 1
    certain = any(fits(key, fields.get(key, "")) for key in ("complexity", "verdict"))
    return Parts(fields, text[at:]) if certain else None


_TAG = re.compile(r"\s*<((?:parameter=)?)([A-Za-z][\w-]{0,40})>")
_OUTER = re.compile(r"\s*(?:<(?:tool_call|reply|response|output|function=[\w.-]{1,60})>\s*)+")
_REST = re.compile(r"\s*(?:</[\w.-]{1,60}>\s*)+")
_MAX_TAGS = 40


def read_tags(text: str, known: Collection[str]) -> Parts | None:
    """Read known keys that are tags at the start of a text, or parameters of a tool call."""
    outer = _OUTER.match(text)
    at = outer.end() if outer else 0
    fields: dict[str, str] = {}
    bodies: list[str] = []
    for _ in range(_MAX_TAGS):
        tag = _TAG.match(text, at)
        key = find_key(tag[2], known) if tag else None
        if tag is None or (key is None and squeezed(tag[2]) not in BODY_KEYS):
            break
        close = "</parameter>" if tag[1] else f"</{tag[2]}>"
        end = text.find(close, tag.end())
        value = text[tag.end() : end if end >= 0 else len(text)].strip(BLANK)
        at = end + len(close) if end >= 0 else len(text)
        if key is None:
            bodies.append(value)
        else:
            fields[key[0]] = spelled_out(tag[2], value)
    rest = _REST.match(text, at)
    bodies.append(text[rest.end() if rest else at :].strip(BLANK))
    return Parts(fields, "\n\n".join(body for body in bodies if body)) if fields else None
