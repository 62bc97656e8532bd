"""How the line of a step begins: bullet, box, heading, and a label of whatever kind."""

import re
from typing import NamedTuple

from replan.plan.markdown import words
from replan.replies.written_plans.order_phrases import CHINESE, label_of

_BLANK = r"[ \t\u00a0\u2000-\u200f\u202f\u2060\u3000\ufeff]"
_SYMBOL = (
    r"(?:[-*+](?=[\s\u00a0\[☐☑⬜])|[•·∙▪▫◦‣●○■◆◇–—→⇒➤➔►▶▸»~]|(?![\u2776-\u2793☐☑☒⬜□▢✅✔])"
    r"[\u2190-\u21ff\u2300-\u23ff\u25a0-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff]\ufe0f?)"
)
_START = re.compile(
    rf"(?P<indent>{_BLANK}*)(?:(?P<head>\#{{1,6}}){_BLANK}+)?(?:{_SYMBOL}{_BLANK}*){{0,3}}"
    rf"(?P<box>\\?\[[ xX~!\-\u3000\u00a0]?\\?\](?![(\w]){_BLANK}*|[☐☑☒⬜□▢✅✔]\ufe0f?{_BLANK}*)?"
    rf"(?:{_SYMBOL}{_BLANK}*){{0,2}}(?P<stress>\*\*|__)?{_BLANK}*",
)
_NO_WIDTH = re.compile("[\u200b-\u200f\u2060\ufeff]")
_END = r"(?:\*\*|__)?\s*+(?:[:：.)、．–—]|[-–—](?=\s))\s*+(?:\*\*|__)?\s*+"
_COUNT = rf"\d{{1,4}}|[{CHINESE}]{{1,3}}|[A-Za-z](?![^\W_])|[IVX]{{1,5}}(?![^\W_])"
_LABELS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (style, re.compile(pattern, re.IGNORECASE))
    for style, pattern in (
        (
            "word",
            rf"(?:{words.STEP})\s*+[-_#]?\s*+(?P<label>{_COUNT})\s*+步?\s*+(?:{_END}|(?:\*\*|__)\s*+|$)",
        ),
        (
            "word",
            rf"第?\s*+(?P<label>\d{{1,4}}|[{CHINESE}]{{1,3}})\s*+(?:步骤?|단계|番目){_END}",
        ),
        ("paren", rf"[(（［【]\s*+(?P<label>{_COUNT})\s*+[)）］】]\s*+[.:：、]?\s*+"),
        ("paren", r"\[(?P<label>\d{1,4})\](?!\()\s*+[.:：]?\s*+"),
        ("hash", r"\#(?P<label>\d{1,4})(?:\s*+[.:：)]\s*+|\s++)"),
        ("keycap", r"(?P<label>\d)\ufe0f?\u20e3\s*+[.:]?\s*+"),
        (
            "circled",
            r"(?P<label>[\u2460-\u24ff\u2776-\u2793\u3220-\u3229\u3280-\u3289])\s*+[.:：、]?\s*+",
        ),
        ("dotted", r"(?P<label>\d{1,3}(?:\.\d{1,3})+)(?:[.):：]\s*+|\s++)"),
        (
            "number",
            r"(?P<label>\d{1,4})(?:\\?[.)、．\]°](?:\*\*|__)?[:：]?\s*+|(?:\*\*|__)?\s*+[:：]\s*+|\s++[-–—]\s++)",
        ),
        ("id", r"(?P<label>\#?[A-Za-z]{1,6}[-_]?\d{1,3})\s*+(?:[:：)]|\.(?=\s)|\s-\s)\s*+"),
        ("cjk", rf"(?P<label>[{CHINESE}]{{1,3}})[、．.：:]\s*+"),
        ("letter", r"(?P<label>[A-Za-z]|[IVX]{1,5})[.):：](?=\s)\s*+"),
    )
)


class Opening(NamedTuple):
    indent: int  # the columns before it
    level: int  # the rank of the heading; 0: none
    is_box: bool  # whether it has a box for a mark
    is_listed: bool  # whether it has a bullet, a box or a label
    label: str  # what it is called, as `label_of` gives it; may be empty
    style: str  # how the label is written
    text: int  # where the text after all that begins


def opening_of(line: str) -> Opening:
    """Read how a line begins."""
    start = _START.match(line)
    if start is None:  # every line has a beginning, if an empty one
        return Opening(0, 0, is_box=False, is_listed=False, label="", style="", text=0)
    end = start.end()
    style, label = "", ""
    for name, pattern in _LABELS:
        if found := pattern.match(line, end):
            style, label, end = name, label_of(found["label"]), found.end()
            break
    return Opening(
        indent=len(_NO_WIDTH.sub("", start["indent"]).expandtabs(4)),
        level=len(start["head"] or ""),
        is_box=start["box"] is not None,
        is_listed=bool(label) or end > start.end("indent"),
        label=label,
        style=style,
        text=start.start("stress") if start["stress"] and not label else end,
    )
