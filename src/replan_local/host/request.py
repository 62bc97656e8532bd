"""Read a request like a careful clerk: which clauses it has, and how they hang together."""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Literal

from replan_local.arithmetic import compute
from replan.plan.model import Value

Link = Literal["", "then", "finally"]
"""How a clause follows what stands before it: not at all, after its branch, after everything."""

_LONGEST_LOOKED_AT = 500
_FILE = re.compile(r"(?<![\w/.-])[\w\-./]*\w\.[a-z]{2,8}\b", re.IGNORECASE)
_BULLET = re.compile(r"^\s*(?:[-*+\u2022]\s+(?:\[.\]\s+)?|\d{1,3}[.)\u3001]\s*(?!\d))")
_INLINE_NUMBER = re.compile(r"(?:^|\s)(?=\(?\d{1,2}\)\s)")
_SENTENCE_END = re.compile(
    r"(?<!\be\.g)(?<!\bi\.e)(?<!\bvs)(?<!\betc)(?<![.!?])[.!?]++(?:\s++|$)|[;\u3002\uff01\uff1f\uff1b]\s*+"
)
_STRONG_LINK = re.compile(
    r"(?:^|,\s*+|(?<!\s)\s++|\uff0c)(?:and\s++)?"
    r"(?:(?P<then>then|after\s++that|afterwards|subsequently)"
    r"|(?P<finally>finally|lastly|(?:at|in)\s++the\s++end(?!\s++of)))\b,?\s*+"
    r"|(?:^|,\s*+)(?:and\s++)?(?P<next>next)\b,?\s++"
    r"|\uff0c?(?P<zh_then>\u7136\u540e|\u63a5\u7740|\u968f\u540e|(?:^|(?<=\uff0c))\u4e4b\u540e)\uff0c?"
    r"|\uff0c?(?P<zh_finally>\u6700\u540e|\u6700\u7ec8)\uff0c?",
    re.IGNORECASE,
)
_WEAK_LINK = re.compile(
    r",\s*+and\s++|,\s*+|(?<!\s)\s++and\s++|\uff0c\s*+(?:\u5e76\u4e14?|\u518d)?"
)
_VERBS = frozenset(
    re.findall(
        r"\S+",
        "analyse analyze ask build calculate check collect combine compare compute create "
        "describe determine draft draw estimate evaluate explain export extract fetch find "
        "gather generate get give identify inspect investigate join list look make merge "
        "outline plan plot prepare present produce profile propose rank read report research "
        "review save search send show sort summarise summarize tell translate update verify "
        "write",
    )
)
_ZH_VERBS = ("写", "生成", "比较", "对比", "统计", "计算", "总结", "汇总", "分析", "列出", "查找")
_MEASURES = frozenset(
    re.findall(
        r"\S+",
        "average avg count difference growth max maximum mean median min minimum monthly number "
        "percentage quarterly ratio share sum top total weekly yearly",
    )
)
_QUESTION_WORDS = frozenset(("how", "what", "which"))
_COMPLETE = re.compile(r"\b(?:by|per|for\s+each)\s+\w|\btop\s+\d", re.IGNORECASE)
_OWN_AND = re.compile(r"^(?:compare|combine|merge|join)\b", re.IGNORECASE)
_COURTESY = re.compile(
    r"^(?:please|kindly|can\s+you|could\s+you|would\s+you|i\s+want\s+you\s+to|i\s+need\s+you\s+to"
    r"|i(?:\s+would|'d)\s+like\s+(?:you\s+)?to|let's|first(?:ly)?|and|also|\u8bf7|\u5e76)\b[,\s]*"
    r"|^\u8bf7",
    re.IGNORECASE,
)
_BACKGROUND = re.compile(
    r"^(?:i|we|my|our|you|this\s+is|these\s+are|there\s+(?:is|are)|it\s+is|thanks?|hello|hi)\b",
    re.IGNORECASE,
)


class Clause(Value):
    """One thing that a request asks for.

    Attributes:
        text: What is asked, as one line.
        link: How it follows what stands before it.
        sentence: Counts the sentences and list items; clauses of one sentence share it.
        part: Counts the parts of a sentence between strong words such as "then".
        source: The one file that the request spoke of last, if the clause names none itself.
    """

    text: str
    link: Link = ""
    sentence: int = 0
    part: int = 0
    source: str = ""


def clauses_of(request: str) -> tuple[Clause, ...]:
    """Split a request into what it asks for, in its own order."""
    clauses: list[Clause] = []
    source = ""
    for number, sentence in enumerate(_sentences(request)):
        # "Revenue by region and units by product from a.csv": the file serves both.
        source = source or _only(files_named(sentence))
        for part, link, text in _parts(sentence):
            named = files_named(text)
            source = _only(named) if named else source
            if not _asks_for_something(text):
                continue
            clauses.append(
                Clause(
                    text=_capitalised(text),
                    link=link,
                    sentence=number,
                    part=part,
                    source="" if named else source,
                )
            )
    return tuple(clauses)


def files_named(text: str) -> tuple[str, ...]:
    """The file names that stand in a text."""
    return tuple(found[0] for found in _FILE.finditer(text))


def one_line(text: str, longest: int) -> str:
    """Put a text on one line and cut it at a word."""
    line = " ".join(text.split())
    if len(line) <= longest:
        return line
    return line[: longest - 1].rsplit(" ", 1)[0].rstrip(" ,;:-") + "\u2026"


def without_bullet(line: str) -> str:
    """A line without the bullet or number that it begins with."""
    return _BULLET.sub("", line, count=1)


def _only(names: tuple[str, ...]) -> str:
    return names[0] if len(set(names)) == 1 else ""


def _sentences(request: str) -> Iterator[str]:
    paragraph: list[str] = []
    for line in _INLINE_NUMBER.sub(_line_end, request).splitlines():
        bullet = _BULLET.match(line) or re.match(r"\s*\(?\d{1,2}\)\s", line)
        if bullet or not line.strip():
            yield from _ends_of(" ".join(paragraph))
            paragraph = []
        paragraph.append(line[bullet.end() :] if bullet else line)
    yield from _ends_of(" ".join(paragraph))


def _line_end(number: re.Match[str]) -> str:
    """A number and a bracket begin an item, unless they end what stands in brackets."""
    before = number.string[: number.start()]
    is_inside = before.count("(") > before.count(")") and number.string[number.end()] != "("
    return number[0] if is_inside else "\n"


def _ends_of(paragraph: str) -> Iterator[str]:
    return (sentence for text in _SENTENCE_END.split(paragraph) if (sentence := text.strip()))


def _parts(sentence: str) -> Iterator[tuple[int, Link, str]]:
    """The clauses of a sentence: number of the part, link of the part, text."""
    links = list(_STRONG_LINK.finditer(sentence))
    starts = [0, *(link.end() for link in links)]
    ends = [*(link.start() for link in links), len(sentence)]
    names: list[Link] = ["", *(_name_of(link) for link in links)]
    for part, (name, start, end) in enumerate(zip(names, starts, ends, strict=True)):
        for text in _clauses_in(sentence[start:end]):
            yield part, name, text


def _name_of(link: re.Match[str]) -> Link:
    return "finally" if link["finally"] or link["zh_finally"] else "then"


def _clauses_in(part: str) -> Iterator[str]:
    cuts = [0]
    for sign in _WEAK_LINK.finditer(part):
        left = part[max(cuts[-1], sign.start() - _LONGEST_LOOKED_AT) : sign.start()]
        right = part[sign.end() : sign.end() + _LONGEST_LOOKED_AT]
        if _divides(left, sign[0], right):
            cuts.append(sign.end())
    for start, end in pairwise([*cuts, len(part)]):
        text = re.sub(r"(?<![,\uff0c\s])(?:[,\uff0c]|\s|\band\b)*+$", "", part[start:end]).strip()
        text = _COURTESY.sub("", _COURTESY.sub("", text)).strip(" ,\uff0c")
        if text:
            yield text


def _divides(left: str, sign: str, right: str) -> bool:
    """Whether a comma or an "and" stands between two clauses, and not inside one."""
    words = right.split(maxsplit=1)
    if "\uff0c" in sign:
        return right.startswith(_ZH_VERBS)
    if not words or len(left.split()) < (1 if "," in sign else 2):
        return False
    first = words[0].casefold().strip(":,")
    if first in _VERBS:
        return True
    if not (first in _MEASURES or first in _QUESTION_WORDS) or _OWN_AND.match(left.strip()):
        return False
    return bool(_COMPLETE.search(left) or files_named(left) or compute(left))


def _asks_for_something(text: str) -> bool:
    return not text.endswith((":", "\uff1a")) and not _BACKGROUND.match(text)


def _capitalised(text: str) -> str:
    first = text.split(maxsplit=1)[0]
    return text if any(sign in first for sign in "._@/") else text[0].upper() + text[1:]
