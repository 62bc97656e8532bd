"""The words in which people ask about tables, in English and in Chinese."""

import re
from collections.abc import Mapping, Sequence

from replan_local.analyst.question import Aggregate, Operator, Period

AGGREGATES: Mapping[str, Aggregate] = {
    "total": "sum",
    "sum": "sum",
    "average": "avg",
    "mean": "avg",
    "avg": "avg",
    "median": "median",
    "minimum": "min",
    "min": "min",
    "maximum": "max",
    "max": "max",
    "count": "count",
    "number": "count",
    "many": "count",
    "distinct": "distinct",
    "unique": "distinct",
    "different": "distinct",
}
HIGHEST = frozenset(
    re.findall(
        r"\S+",
        "top best highest largest biggest most greatest first",
    )
)
LOWEST = frozenset(re.findall(r"\S+", "bottom worst lowest smallest least fewest last"))
PERIODS: Mapping[str, Period] = {
    "day": "day",
    "week": "week",
    "month": "month",
    "quarter": "quarter",
    "year": "year",
}
MONTHS: Mapping[str, int] = {
    name: number
    for number, name in enumerate(
        (
            *("january", "february", "march", "april", "may", "june"),
            *("july", "august", "september", "october", "november", "december"),
        ),
        start=1,
    )
}
ADVERBS: Mapping[str, Period] = {
    "daily": "day",
    "weekly": "week",
    "monthly": "month",
    "quarterly": "quarter",
    "yearly": "year",
    "annual": "year",
    "annually": "year",
}
BY = frozenset(re.findall(r"\S+", "by per each every across grouped"))
ORDER = frozenset(re.findall(r"\S+", "sort sorted order ordered rank ranked"))
CONDITION = frozenset(re.findall(r"\S+", "where whose only when"))
OPERATORS: tuple[tuple[tuple[str, ...], Operator], ...] = (
    (("is", "not"), "!="),
    (("at", "least"), ">="),
    (("at", "most"), "<="),
    (("greater", "than"), ">"),
    (("more", "than"), ">"),
    (("less", "than"), "<"),
    ((">=",), ">="),
    (("<=",), "<="),
    (("!=",), "!="),
    (("<>",), "!="),
    (("==",), "="),
    (("=",), "="),
    ((">",), ">"),
    (("<",), "<"),
    (("is",), "="),
    (("equal",), "="),
    (("over",), ">"),
    (("above",), ">"),
    (("below",), "<"),
    (("under",), "<"),
)
NOISE = frozenset(
    re.findall(
        r"\S+",
        ", a according against aggregate aggregated all along also amount an analyse analysis "
        "analyze and any are as ascending at based be between both bought break breakdown "
        "business calculate can chart check column company compare compared compute data "
        "dataset derive descending determine difference display do doe down during each "
        "earned entry extract figure file find for from generate generated get give group "
        "grouping has have highest how i identify in include including into is it item its "
        "level list load loading look made me my need now obtain of on one or our out output "
        "over overall overview perform please present produce provide query record report "
        "respectively result return row run share sheet show so sold some sort sorted spent "
        "split spreadsheet summarise summarize summary table tell than that the their them "
        "then there these this to trend two us use using v value versus vs want was we were "
        "what when where which who whole with within year you your",
    )
)
PROFILE = re.compile(
    r"\b(?:profil\w*|describe|overview|inspect|schema|structure|what\s+is\s+in|columns)\b|概览|概况|描述",
    re.IGNORECASE,
)
GROUPS = re.compile(r"\b(?:by|per|each|every)\b|按|每|各", re.IGNORECASE)
COMPARE = re.compile(
    r"\b(?:compar\w+|versus|vs|against|contrast|differences?\s+between)\b|比较|对比", re.IGNORECASE
)
EARLIER = re.compile(
    r"\b(?:both|them|these|those|results?|findings|above|two|it|steps?)\b|两者|上述|以上|结果",
    re.IGNORECASE,
)
_CHINESE = (
    (r"按月|每月", " monthly "),
    (r"按年|每年", " yearly "),
    (r"按季度?|每季度?", " quarterly "),
    (r"按天|按日|每天|每日", " daily "),
    (r"前\s*(\d+)", r" top \1 "),
    (r"按|每个?|各", " by "),
    (r"总计|合计|总和|总", " total "),
    (r"平均", " average "),
    (r"中位数", " median "),
    (r"最大", " max "),
    (r"最小", " min "),
    (r"数量|计数|个数", " count "),
    (r"和|与|及", " and "),
    (r"统计|计算|分析|列出|的|中|里|请", " "),
)


def in_english(text: str) -> str:
    """Put the Chinese words that matter here into English; the rest stays."""
    for word, meaning in _CHINESE:
        text = re.sub(word, meaning, text)
    return text


def operator_at(words: Sequence[str], place: int) -> tuple[Operator | None, int]:
    """The comparison that stands at a place, and how many words it has; none and 0 without one."""
    for spelt, operator in OPERATORS:
        if tuple(words[place : place + len(spelt)]) == spelt:
            return operator, len(spelt)
    return None, 0
