"""Code fences: one around a whole document, which models like to write, and those within."""

import re
from collections.abc import Sequence

_OUTER_FENCE = re.compile(
    r"(?:`{3,}+|~{3,}+)[ \t]*+(?:markdown|md|plan|text|txt)?[ \t]*+", re.IGNORECASE
)
_FENCE = re.compile(r"[ \t]*+(`{3,}+|~{3,}+)")


def outside_fences(lines: Sequence[str]) -> list[bool]:
    outside: list[bool] = []
    mark = ""
    for line in lines:
        found = _FENCE.match(line)
        if found and not mark:
            mark = found[1]
            outside.append(False)
        elif found and found[1].startswith(mark) and not line.strip().strip(mark[0]):
            mark = ""
            outside.append(False)
        else:
            outside.append(not mark)
    return outside


def fenced_window(texts: Sequence[str]) -> range | None:
    """Find a fence around the whole plan; models like ```` ```markdown ````.

    A fence within it (a step's yaml block) often has as few marks as the outer one, so Markdown
    itself would close the outer one too early; the pairs are counted instead.
    """
    start = next((at for at, text in enumerate(texts) if _OUTER_FENCE.fullmatch(text)), None)
    if start is None:
        return None
    outer = texts[start][: len(texts[start]) - len(texts[start].lstrip("`~"))]
    inside = False
    for at in range(start + 1, len(texts)):
        text = texts[at].strip(" \t")
        if not text.startswith(outer[0] * 3):
            continue
        bare = not text.strip(outer[0])
        if bare and not inside and texts[at].startswith(outer):
            return range(start + 1, at)
        inside = not (bare and inside)
    return range(start + 1, len(texts))
