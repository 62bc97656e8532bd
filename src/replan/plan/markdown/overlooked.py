"""Find text that looks like a part of a plan but was not read as one."""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal

from replan.base.values import Value
from replan.plan.encoding import NAME
from replan.plan.markdown.lines import is_blank, outside_fences
from replan.plan.markdown.outline import continues_text
from replan.plan.markdown.reading import Block, read_document
from replan.plan.model import PlanStep
from replan.plan.option_table import read_group

Kind = Literal[
    "dependency", "name", "number", "option", "nested_task", "prose", "retries", "timeout"
]

_LONGEST_LOOKED_AT = 2_000
_LONGEST_SHOWN = 80
_MEANING: dict[Kind, str] = {
    "dependency": "looks like a dependency and was read as text; write (after 1, 2)",
    "name": "looks like a specialist and was read as text; "
    "write it at the end of the step's line, before the options",
    "number": "looks like a number and was read as text; number the steps 1, 2, 3",
    "option": "looks like an option and was read as text; write it in parentheses at the end of "
    "the step's line",
    "nested_task": "looks like a task and was read as details of step {step}; "
    "write it without indentation",
    "prose": "is in no step, so nobody is given it; indent it below the step that it is about",
    "retries": "does not count: only a person's document gives retries to work that is "
    "declared unsafe",
    "timeout": "does not count: a model's plan gives a step no more than `step_timeout`",
}

_WAITING = (
    r"(?:\b(?:after|awaits|based on|blocked by|depend(?:s|ing) on|needs|once|requires"
    r"|wait(?:s|ing)? (?:for|on))\b|之后|之後|以后|依赖|等待|需要|完成后|根据|基于)"
)
_CHINESE_STEP = r"(?:第\s?(?:\d{1,6}|[一二三四五六七八九十百]{1,3})\s?步|步骤\s?\d{1,6})"
# What waits for a numbered step says so wherever it stands.
_WAITS_FOR = (
    rf"{_WAITING}\s?(?:steps?\s?#?|步骤\s?|第\s?|#)?\d{{1,6}}(?!\d)|[(（]after\s#?\d{{1,6}}(?!\d)"
    rf"|(?:{_WAITING}|在|等){_CHINESE_STEP}|{_CHINESE_STEP}[^,;，；。:：]{{0,6}}(?:完成|[之以]?[后後])"
)
# The line of a step may say it of what it does not number; what a bracket says ends with it.
_IN_TITLE = re.compile(
    rf"[(（\[][^()（）\[\]]*(?:{_WAITING}|\bsteps?\s#?\d|{_CHINESE_STEP})[^()（）\[\]]*[)）\]](?!\()"
    rf"|(?:[—–→]|->|(?<=\s)-(?=\s))\s{{0,3}}{_WAITING}"
    rf"|[,;，；]\s{{0,3}}{_WAITING}[^,;]*[\d\"“]|{_WAITS_FOR}",
    re.IGNORECASE,
)
_IN_BRIEF = re.compile(
    rf"{_WAITS_FOR}|\A[\s*+\-_]*{_WAITING}(?:\s\w{{1,20}}){{0,2}}[*_]*\s*[:：]", re.IGNORECASE
)
_SEQUENCE = re.compile(
    r"(?:then|finally|lastly|afterwards|subsequently)(?!\w)|next,|然后|接着|最后，", re.IGNORECASE
)
_BRACKETS = re.compile(r"(?<!\])\([^()（）]*\)|（[^()（）]*）|\[[^\[\]]*\](?!\()")
_NUMBER = re.compile(r"\d+")
_PARTED_NUMBER = re.compile(r"\d++(?:\.\d++)+(?=[.)]?\s)")
_OPTIONAL = re.compile(r"\A(?:optional|可选)\s?[:：]", re.IGNORECASE)
_CODE = re.compile(r"`[^`]*`")
_NAME = re.compile(rf"(?<![\w.+\-@/])@{NAME}")
_TASK = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+\[[ ~xX!-]\](?:\s|$)")


class ParseWarning(Value):
    """A piece of a document that may have been meant differently."""

    line: int  # where it is, counted from 1
    kind: Kind  # what it looks like
    step: int  # the step that it was read as a part of
    text: str  # the piece

    def __str__(self) -> str:
        return f"line {self.line}: '{self.text}' {_MEANING[self.kind].format(step=self.step)}"


# Who reads a plan complains of a part of it, and who makes the plan tells all of it.
@lru_cache(maxsize=8)
def overlooked(text: str) -> tuple[ParseWarning, ...]:
    """Find what a document may have meant differently, in the order of its lines."""
    found = [
        ParseWarning(line=at + place + 1, kind=kind, step=block.step.id, text=piece)
        for at, block in read_document(text).placed()
        for place, kind, piece in _in_block(block)
    ]
    # One number with parts may be a version; several are a way to number.
    if sum(warning.kind == "number" for warning in found) == 1:
        found = [warning for warning in found if warning.kind != "number"]
    return tuple(sorted(found, key=lambda warning: warning.line))


def prose_between(text: str) -> Iterator[ParseWarning]:
    """Find the paragraphs between the steps of a document; a person may want them there."""
    for start, block in [*read_document(text).placed()][:-1]:
        lines = [line.text for line in block.gap]
        free = zip(lines, outside_fences(lines), strict=True)
        found = (at for at, (line, is_text) in enumerate(free) if is_text and continues_text(line))
        if (at := next(found, None)) is not None:
            line, shown = start + len(block.lines) + at + 1, lines[at].strip()[:_LONGEST_SHOWN]
            yield ParseWarning(line=line, kind="prose", step=block.step.id, text=shown)


def _in_block(block: Block) -> Iterator[tuple[int, Kind, str]]:
    """The pieces of a step that may mean something, each with its line and what it looks like."""
    yield from ((0, *found) for found in _in_title(block))
    if len(block.lines) == block.said.head:
        return
    lines = [line.text for line in block.lines[block.said.head :]]
    others = {*block.said.key_lines, *block.said.quoted}
    # Lines in fences are code.
    free = zip(lines, outside_fences(lines), strict=True)
    for at, (line, is_text) in enumerate(free, block.said.head):
        if is_text and at not in others and not is_blank(line):
            for found in _in_detail(line[:_LONGEST_LOOKED_AT], block.step):
                yield (at, *found)


def _in_title(block: Block) -> Iterator[tuple[Kind, str]]:
    step = block.step
    text = _CODE.sub(_blanked, step.description[:_LONGEST_LOOKED_AT])
    piece = _dependency(text, step, _IN_TITLE)
    if not (piece or step.awaits or step.id == 1) and (word := _SEQUENCE.match(step.description)):
        piece = word[0]
    if piece:
        yield "dependency", piece
    for option in (*_BRACKETS.findall(text), *_OPTIONAL.findall(text)):
        phrases = read_group(option.strip("()（）[]:："))
        if option not in piece and any(phrase.is_read for phrase in phrases):
            yield "option", option
    for name in _NAME.findall(text):
        yield "name", name
    if not block.explicit and (number := _PARTED_NUMBER.match(step.description)):
        yield "number", number[0]


def _in_detail(line: str, step: PlanStep) -> Iterator[tuple[Kind, str]]:
    text = _CODE.sub(_blanked, line)
    if _TASK.match(text):
        yield "nested_task", line.strip()
        return
    if _dependency(text, step, _IN_BRIEF):
        yield "dependency", line.strip()
    for name in _NAME.findall(text):
        yield "name", name


def _dependency(text: str, step: PlanStep, pattern: re.Pattern[str]) -> str:
    """What a text says about waiting for steps, unless the step waits for those that it numbers."""
    known = {step.id, *step.awaits}
    for match in pattern.finditer(text):
        numbers = {int(number) for number in _NUMBER.findall(match[0])}
        if not numbers or numbers - known:
            return text[match.start() :].strip()
    return ""


def _blanked(match: re.Match[str]) -> str:
    return " " * len(match[0])
