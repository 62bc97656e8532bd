"""Find text that looks like a part of a plan but was not read as one."""

import re
from collections.abc import Iterator
from typing import Literal

from replan.plan.encoding import NAME
from replan.plan.markdown.lines import is_blank, outside_fences
from replan.plan.markdown.outline import continues_text
from replan.plan.markdown.reading import Block, read_document
from replan.plan.model import PlanStep, Value
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


def overlooked(text: str) -> tuple[ParseWarning, ...]:
    """Find what a document may have meant differently, in the order of its lines."""
    reading = read_document(text)
    found: list[ParseWarning] = []
    numbers: list[ParseWarning] = []
    for at, block in reading.placed():
        found += _in_title(block.step, at + 1)
        found += _in_details(block, at + 1)
        number = _PARTED_NUMBER.match(block.step.description)
        if number and not block.explicit:
            numbers.append(
                ParseWarning(line=at + 1, kind="number", step=block.step.id, text=number[0])
            )
    found += numbers if len(numbers) > 1 else []
    return tuple(sorted(found, key=lambda each: each.line))


def prose_between(text: str) -> Iterator[ParseWarning]:
    """Find the paragraphs between the steps of a document; a person may want them there."""
    for start, block in [*read_document(text).placed()][:-1]:
        lines = [line.text for line in block.gap]
        free = zip(lines, outside_fences(lines), strict=True)
        found = (at for at, (line, is_text) in enumerate(free) if is_text and continues_text(line))
        if (at := next(found, None)) is not None:
            line, shown = start + len(block.lines) + at + 1, lines[at].strip()[:_LONGEST_SHOWN]
            yield ParseWarning(line=line, kind="prose", step=block.step.id, text=shown)


def sequence_word(step: PlanStep) -> str:
    """The first word of a step that suggests a dependency, if the step has none."""
    found = None if step.awaits else _SEQUENCE.match(step.description)
    return found[0] if found else ""


def _dependency(text: str, step: PlanStep, pattern: re.Pattern[str]) -> str:
    """What a text says about waiting for steps, unless the step waits for those that it numbers."""
    known = {step.id, *step.awaits}
    for match in pattern.finditer(text):
        numbers = {int(number) for number in _NUMBER.findall(match[0])}
        if not numbers or numbers - known:
            return text[match.start() :].strip()
    return ""


def _in_title(step: PlanStep, at: int) -> Iterator[ParseWarning]:
    text = _CODE.sub(_blanked, step.description[:_LONGEST_LOOKED_AT])
    piece = _dependency(text, step, _IN_TITLE) or (sequence_word(step) if step.id > 1 else "")
    if piece:
        yield ParseWarning(line=at, kind="dependency", step=step.id, text=piece)
    for option in (*_BRACKETS.findall(text), *_OPTIONAL.findall(text)):
        phrases = read_group(option.strip("()（）[]:："))
        if option not in piece and any(phrase.is_read for phrase in phrases):
            yield ParseWarning(line=at, kind="option", step=step.id, text=option)
    for name in _NAME.findall(text):
        yield ParseWarning(line=at, kind="name", step=step.id, text=name)


def _in_details(block: Block, start: int) -> Iterator[ParseWarning]:
    """What the lines of a step's brief may mean; lines in fences are code."""
    lines = [line.text for line in block.lines[block.head :]]
    others = {*block.said.key_lines, *block.said.quoted}
    for at, (line, is_text) in enumerate(
        zip(lines, outside_fences(lines), strict=True), block.head
    ):
        if is_text and at not in others and not is_blank(line):
            yield from _in_detail(line[:_LONGEST_LOOKED_AT], start + at, block.step)


def _in_detail(line: str, at: int, step: PlanStep) -> Iterator[ParseWarning]:
    text = _CODE.sub(_blanked, line)
    if _TASK.match(text):
        yield ParseWarning(line=at, kind="nested_task", step=step.id, text=line.strip())
        return
    if _dependency(text, step, _IN_BRIEF):
        yield ParseWarning(line=at, kind="dependency", step=step.id, text=line.strip())
    for name in _NAME.findall(text):
        yield ParseWarning(line=at, kind="name", step=step.id, text=name)


def _blanked(match: re.Match[str]) -> str:
    return " " * len(match[0])
