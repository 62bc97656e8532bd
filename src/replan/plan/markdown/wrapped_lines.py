"""The line of a step that a person's editor has broken into several."""

import re
from collections.abc import Sequence

from replan.plan.markdown.lines import is_blank
from replan.plan.markdown.outline import Item
from replan.plan.markdown.phrases import read_key_line
from replan.plan.markdown.title import read_title

_NO_PLAIN_TEXT = re.compile(r"[ \t]*(?:[-*+>#`~|<=]|\d{1,9}[.)](?:\s|$))")
_MOST_LINES = 8


def wrapped_lines(texts: Sequence[str], item: Item) -> int:
    """Count the lines after a step's first that continue it.

    Text right under the line of a step is its brief, unless it ends with attributes and the line
    itself has none: then the line was broken to fit a page, and reading its end as a brief would
    silently lose what the step waits for.
    """
    lines: list[str] = []
    for text in texts[item.start + 1 : item.end]:
        if is_blank(text) or _NO_PLAIN_TEXT.match(text) or read_key_line(text) is not None:
            break
        lines.append(text)
    if not 0 < len(lines) <= _MOST_LINES or read_title(texts[item.start][item.text :]).attributes:
        return 0
    return len(lines) if read_title(f"1. {lines[-1].strip()}").attributes else 0
