"""Detect by its structure alone whether a reply ends within JSON or a code fence."""

import re

from pydantic_core import from_json

from replan.plan.markdown.lines import parts
from replan.replies.keys import HOST, SPECIALIST
from replan.replies.reply import read_reply
from replan.replies.wrapping import unwrapped

_LONGEST = 200_000
_KEYS = HOST | SPECIALIST
_CONTROLS = re.compile(r"[\x00-\x1f]")


def is_unfinished(text: str) -> bool:
    """Whether a reply that is JSON, or ends with a code block, is cut off; prose never is."""
    if len(text) > _LONGEST:
        return False
    body = read_reply(text, _KEYS).body
    return any(map(_is_half_json, (text, body))) or _ends_in_fence(body)


def breaks_off(text: str) -> bool:
    """Whether a reply ends inside a string of its JSON, or where a value must follow.

    Models forget a bracket at the end of whole JSON; nobody forgets the half of a value.
    """
    if len(text) > _LONGEST:
        return False
    text = unwrapped(text) if text.lstrip().startswith("<") else text
    found = _JSON_BEGINS.match(text)
    return found is not None and _problem_of_json(text[found.end() :]).startswith(_IN_A_VALUE)


_JSON_BEGINS = re.compile(
    r"\s*(?:---\n(?:[^\n]*\n){1,20}?---\s+)?(?:(?:`{3,}|~{3,})\w*\s+)?(?=[{\[])"
)
_IN_A_VALUE = ("EOF while parsing a string", "EOF while parsing a value")


def _is_half_json(text: str) -> bool:
    text = text.strip()
    problem = _problem_of_json(text) if text.startswith(("{", "[")) else ""
    if problem.startswith("EOF"):
        return True
    # A quotation mark that was not escaped hides that there is no end.
    is_open = text.startswith(('{"', '["')) and text[-1] not in "}]`"
    return is_open and bool(problem) and not problem.startswith("trailing characters")


def _problem_of_json(text: str) -> str:
    """The error of a strict parser; line ends in strings, which models write, are allowed."""
    try:
        from_json(_CONTROLS.sub(" ", text).encode(errors="replace"))
    except ValueError as error:
        return str(error)
    return ""


def _ends_in_fence(text: str) -> bool:
    """Whether the last code block was cut off, and its end not only forgotten."""
    lines = text.rstrip().split("\n")
    (*_, (block, start, _)) = parts(lines)
    # A bare mark at the end closes a fence, also one around others of the same length.
    if block is None or block.mark == "<!--" or not lines[-1].strip(f" \t{block.mark[0]}"):
        return False
    return bool(_problem_of_json("\n".join(lines[start + 1 :])))
