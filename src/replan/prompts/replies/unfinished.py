"""Detect by its structure alone whether a reply ends within JSON or a code fence."""

import re
from functools import cache
from typing import TYPE_CHECKING

from pydantic_core import from_json

from replan.prompts.replies.keys import HOST, SPECIALIST
from replan.prompts.replies.reply import read_reply
from replan.prompts.replies.wrapping import unwrapped

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

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
    if "```" not in text and "~~~" not in text:
        return False
    source = f"{text.rstrip()}\n"
    fences = [token for token in _block_parser().parse(source) if token.type == "fence"]
    if not fences or not _is_open(fences[-1], source.count("\n")):
        return False
    info, content = fences[-1].info.strip(), fences[-1].content
    # A bare mark at the end closes a fence around others of the same length. Whole data is whole.
    return bool(info or content.strip()) and bool(_problem_of_json(content))


@cache
def _block_parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt  # noqa: PLC0415 - few replies hold code

    return MarkdownIt("zero").enable(["fence", "code", "list", "blockquote"]).disable("inline")


def _is_open(fence: "Token", lines: int) -> bool:
    first, end = fence.map or (0, 0)
    return end == lines and end - first == fence.content.count("\n") + 1
