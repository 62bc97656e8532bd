"""A reply that came with its keys as tags: `<complexity>simple</complexity>`."""

import re
from collections.abc import Collection

from replan.replies.forms.front_matter import Parts
from replan.replies.forms.wrapping import BLANK
from replan.replies.vocabulary.keys import BODY_KEYS, find_key, spelled_out, squeezed

_TAG = re.compile(r"\s*<((?:parameter=)?)([A-Za-z][\w-]{0,40})>")
_OUTER = re.compile(r"\s*(?:<(?:tool_call|reply|response|output|function=[\w.-]{1,60})>\s*)+")
_REST = re.compile(r"\s*(?:</[\w.-]{1,60}>\s*)+")
_MAX_TAGS = 40


def read_tags(text: str, known: Collection[str]) -> Parts | None:
    """Read known keys that stand as tags at the start of a text, or as a tool call's parameters."""
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
