"""Read a host's reply: a Markdown document with a small front matter, in any form."""

import json
import re
from collections.abc import Collection

from replan.plan.model import Value
from replan.replies.forms.front_matter import DELIMITER, MAX_LINES, Parts, match_key, read_header
from replan.replies.forms.leading_lines import read_bare, read_leading, read_one_line, read_tags
from replan.replies.forms.thoughts import without_thoughts, without_tokens
from replan.replies.forms.wrapping import (
    BLANK,
    NEUTRAL_LANGUAGES,
    few_lines,
    find_fence,
    first_fence,
    plain,
    skip_blank,
    skip_thinking,
    skip_unopened_thinking,
    trimmed,
    unless_announcement,
    whole_fence,
    without_answer_tag,
    without_markdown_fence,
)
from replan.replies.json_object import read_object

THINK_KEYS = frozenset(("complexity", "score", "reasoning", "next_action"))
FEEDBACK_KEYS = frozenset(("verdict", "feedback", "suggested_action", "update", "plan_update_type"))
HOST_KEYS = THINK_KEYS | FEEDBACK_KEYS
"""The keys of all replies of the host."""

_GLUED = re.compile(r"\A(\s{0,20}(?:```|~~~)\w{0,20})[ \t]+(?=---)")
RULES = BLANK + "-*_=.+`~\u2014\u2013"
"""Rules, fences and blanks: a body with nothing else is empty."""

_MAX_NESTING = 3
_MAX_DELIMITERS = 200
_LONGEST_HEADER = 4_000


class Reply(Value):
    fields: dict[str, str]  # the values of the known keys, by the key's own name
    body: str  # the Markdown after the front matter, without blank lines around it
    is_cut: bool = False  # whether its markup shows that its end is missing


def read_reply(text: str, known: Collection[str]) -> Reply:
    """Parse a reply; any text is a valid reply, and the time is linear in its length.

    Front matter is between a first line `---` and the next one; without them it is the leading
    lines that begin with a known key. Thinking before it, a fence or an answer tag around it and a
    line or two of talk before it are passed over, and a JSON object with the same keys is read too.
    A `---` or a tag further down belongs to the body.
    """
    names = frozenset(known)
    parts = _read(_GLUED.sub(r"\1\n", without_tokens(plain(text)), count=1), names, 0)
    for _ in range(_MAX_NESTING):
        again = read_delimited(trimmed(parts.body), names) if parts.fields else None
        if again is None:
            break
        # The form was repeated from the prompt, or the front matter written twice.
        parts = Parts(parts.fields | again.fields, again.body, parts.is_cut)
    body = trimmed(without_thoughts(trimmed(parts.body)))
    if parts.fields:
        body = without_markdown_fence(body)
    if not body.strip(RULES):
        body = ""  # rules and fences around nothing
    return Reply(fields=parts.fields, body=body, is_cut=parts.is_cut)


def _read(text: str, known: frozenset[str], depth: int) -> Parts:
    """Try the forms of a reply, the plainest first; a text in none of them is all body."""
    thinking = skip_thinking(text)
    text = text[thinking.end :]
    if not thinking.closed:
        return _read_further_down(text, known, drop=True) or Parts({}, "")
    parts = read_delimited(text, known)
    if parts is None and depth < _MAX_NESTING:
        parts = (
            _read_escaped(text, known, depth)
            or read_one_line(text, known)
            or _read_after_unopened_thinking(text, known, depth)
            or read_bare(text, known)
            or _read_wrapped(text, known, depth)
            or read_tags(text, known)
            or read_object(text, known)
            or _read_after_introduction(text, known, depth)
            or _read_further_down(text, known, drop=False)
        )
    return parts or Parts({}, text[skip_unopened_thinking(text) or 0 :])


def read_delimited(text: str, known: Collection[str]) -> Parts | None:
    """Read a front matter that begins with a delimiter in the first line."""
    opened = DELIMITER.match(text)
    while opened and (again := DELIMITER.match(text, skip_blank(text, opened.end() + 1))):
        opened = again  # the delimiter was written twice
    if opened is None:
        return None
    start = opened.end() + 1
    closed = DELIMITER.search(text, start)
    if closed is None:
        return read_leading(text[start:], known, is_delimited=True)
    lines = text[start : closed.start()].split("\n")
    rest = text[closed.end() :]
    header = read_header(lines, known, text_follows=bool(rest.strip(BLANK)))
    if header is None:
        return None
    if header.end < len(lines):
        spilled = "\n".join(lines[header.end :])
        rest = spilled + text[closed.start() :] if rest.strip(BLANK) else spilled
    return Parts(header.fields, _joined(header.body, rest))


def _read_escaped(text: str, known: frozenset[str], depth: int) -> Parts | None:
    if text.startswith('"') and text.rstrip(BLANK).endswith('"'):
        try:
            value: object = json.loads(text, strict=False)
        except (ValueError, RecursionError):
            return None
        return _read(plain(value), known, depth + 1) if isinstance(value, str) else None
    if "\n" not in text and text.startswith("---\\n"):
        return _read(text.replace("\\n", "\n"), known, depth + 1)
    return None


def _read_after_unopened_thinking(text: str, known: frozenset[str], depth: int) -> Parts | None:
    start = skip_unopened_thinking(text)
    parts = None if start is None else _read(text[start:], known, depth + 1)
    return parts if parts and parts.fields else None


def _read_wrapped(text: str, known: frozenset[str], depth: int) -> Parts | None:
    """Read a reply in an answer tag or a code fence, or after a fence."""
    inner = without_answer_tag(text)
    if inner is not None:
        return _read(inner, known, depth + 1)
    first = first_fence(text)
    if first is None or first.language not in NEUTRAL_LANGUAGES:
        return None
    parts = _read_fence(first.inner, first.language, known, depth)
    if parts.fields and not parts.body.strip(BLANK):
        return parts._replace(body=first.rest)
    whole = whole_fence(text)
    if whole is None:
        return None
    parts = _read_fence(whole.inner, whole.language, known, depth)
    if parts.fields:
        return parts._replace(body=_joined(parts.body, whole.rest))
    unwrapped = without_markdown_fence(text)
    return None if unwrapped == text else Parts({}, unwrapped)


def _read_fence(inner: str, language: str, known: frozenset[str], depth: int) -> Parts:
    inner = inner.strip("\n")
    if language in ("yaml", "yml") and not DELIMITER.match(inner):
        parts = read_delimited(f"---\n{inner}\n---\n", known)
        if parts is not None:
            return parts
    return _read(inner, known, depth + 1)


def _read_after_introduction(text: str, known: frozenset[str], depth: int) -> Parts | None:
    start = find_fence(text)
    if not start or not few_lines(text[:start]):
        return None
    parts = _read_wrapped(text[start:], known, depth + 1)
    if parts is None or not parts.fields:
        return None
    return parts._replace(body=trimmed(parts.body) or unless_announcement(text[:start]))


def _read_further_down(text: str, known: frozenset[str], *, drop: bool) -> Parts | None:
    """Read a delimited front matter further down.

    After a line or two of talk one known key is enough; after more text, which may be an answer
    with rules in it, two keys must be there without a blank line. A front matter at the very end
    belongs to the text before it.
    """
    for count, opened in enumerate(DELIMITER.finditer(text)):
        if count > _MAX_DELIMITERS:
            break
        first = text[opened.end() + 1 : opened.end() + 400].partition("\n")[0]
        if not match_key(first, known):
            continue
        before = text[: opened.start()]
        if not (drop or few_lines(before) or _is_certain(text, opened.end() + 1, known)):
            continue
        parts = read_delimited(text[opened.start() :], known)
        if parts is not None:
            body = trimmed(parts.body)
            return Parts(parts.fields, body or ("" if drop else unless_announcement(before)))
    return None


def _is_certain(text: str, start: int, known: frozenset[str]) -> bool:
    closed = DELIMITER.search(text, start)
    if closed is None or closed.start() - start > _LONGEST_HEADER:
        return False
    lines = text[start : closed.start()].rstrip("\n").split("\n")[:MAX_LINES]
    found = {line.key for line in (match_key(line, known) for line in lines) if line}
    return len(found) > 1 and all(line.strip(BLANK) for line in lines)


def _joined(first: str, second: str) -> str:
    parts = (trimmed(first), trimmed(second))
    return "\n\n".join(part for part in parts if part)
