"""Find text that looks like a part of a plan but was not read as one, and the reverse."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Literal

from replan.plan.markdown import words
from replan.plan.markdown.lines import is_blank, outside_fences
from replan.plan.markdown.reading import Block, Reading, read_document
from replan.plan.model import PlanStep, Value

Kind = Literal[
    "dependency", "name", "nested_task", "other_heading", "other_list", "retries", "timeout"
]

_LONGEST_LOOKED_AT = 2_000
_MEANING: dict[Kind, str] = {
    "dependency": "looks like a dependency and was read as text; write (after 1, 2)",
    "name": "looks like a specialist and was read as text; "
    "write it at the end of the step's line, before the attributes",
    "nested_task": "looks like a task and was read as details of step {step}; "
    "write it without indentation",
    "other_heading": "stands below another heading and was read as step {step}; "
    "write it without brackets if it is none",
    "other_list": "looks like a task, stands below another heading and was read as text; "
    "give it a number if it is a step",
    "retries": "does not count: only a person's document gives retries to work that is "
    "declared unsafe",
    "timeout": "does not count: a model's plan gives a step no more than `step_timeout`",
}


class ParseWarning(Value):
    """A piece of a document that may have been meant differently."""

    line: int  # where it is, counted from 1
    kind: Kind  # what it looks like
    step: int  # the step that it was read as a part of; 0 if it is not part of one
    text: str  # the piece

    def __str__(self) -> str:
        return f"line {self.line}: '{self.text}' {_MEANING[self.kind].format(step=self.step)}"


def overlooked(text: str) -> tuple[ParseWarning, ...]:
    """Find what a document may have meant differently, in the order of its lines."""
    reading = read_document(text)
    found = [*_below_other_headings(reading), *_outside_steps(reading)]
    for block in reading.blocks:
        found += _in_title(block)
        found += _in_details(block, reading)
    return tuple(sorted(found, key=lambda each: each.line))


def _in_title(block: Block) -> Iterator[ParseWarning]:
    text = _CODE.sub(_blanked, block.step.description[:_LONGEST_LOOKED_AT])
    at = block.item.start + 1
    pieces = [*_dependencies_in(text)]
    for piece in pieces:
        yield ParseWarning(line=at, kind="dependency", step=block.step.id, text=piece)
    for name in _NAME.findall(text):
        yield ParseWarning(line=at, kind="name", step=block.step.id, text=name)
    if block.step.id > 1 and not pieces and (word := sequence_word(block.step)):
        yield ParseWarning(line=at, kind="dependency", step=block.step.id, text=word)


def sequence_word(step: PlanStep) -> str:
    """The first word of a step that suggests a dependency, if the step has none."""
    found = None if step.awaits else _sequence_pattern().match(step.description)
    return found[0] if found else ""


def _in_details(block: Block, reading: Reading) -> Iterator[ParseWarning]:
    """What the lines below a step's line may mean; lines in fences are code."""
    if not block.step.brief:
        return
    start = block.item.start + block.head
    lines = [line.text for line in reading.lines[start : block.item.end]]
    outside = outside_fences(lines)
    for at, line in enumerate(lines):
        if outside[at] and not is_blank(line) and line.strip() in block.step.brief:
            yield from _in_detail(line, start + at + 1, block.step.id)


def _in_detail(line: str, at: int, step: int) -> Iterator[ParseWarning]:
    text = _CODE.sub(_blanked, line[:_LONGEST_LOOKED_AT])
    if _TASK.match(text):
        yield ParseWarning(line=at, kind="nested_task", step=step, text=line.strip())
        return
    if _waiting_line().match(text):
        yield ParseWarning(line=at, kind="dependency", step=step, text=line.strip())
    for name in _NAME.findall(text):
        yield ParseWarning(line=at, kind="name", step=step, text=name)


def _below_other_headings(reading: Reading) -> Iterator[ParseWarning]:
    """Steps below another heading that are written differently from those below the first one."""
    headings = [at for at, line in enumerate(reading.lines) if _HEADING.match(line.text)]
    sections = [_last_before(block.item.start, headings) for block in reading.blocks]
    usual = [b for b, above in zip(reading.blocks, sections, strict=True) if above == sections[0]]
    are_numbered = all(block.explicit for block in usual)
    are_named = all(block.step.specialists for block in usual)
    for block, above in zip(reading.blocks, sections, strict=True):
        is_odd = (are_numbered and not block.explicit) or (are_named and not block.step.specialists)
        if above != sections[0] and is_odd:
            text = reading.lines[block.item.start].text.strip()
            at = block.item.start + 1
            yield ParseWarning(line=at, kind="other_heading", step=block.step.id, text=text)


def _outside_steps(reading: Reading) -> Iterator[ParseWarning]:
    inside = {at for each in reading.blocks for at in range(each.item.start, each.item.end)}
    lines = [line.text for line in reading.lines if reading.blocks]
    outside = outside_fences(lines)
    for at, line in enumerate(lines):
        if outside[at] and at not in inside and _TASK.match(line):
            yield ParseWarning(line=at + 1, kind="other_list", step=0, text=line.strip())


def _last_before(line: int, headings: Sequence[int]) -> int:
    """The line of the nearest heading above a line; -1 without one."""
    at = bisect_left(headings, line)
    return headings[at - 1] if at else -1


def _dependencies_in(text: str) -> Iterator[str]:
    for bracket in _BRACKETS.finditer(text):
        if _waiting_pattern().search(bracket[0]) or _STEP_NUMBER.search(bracket[0]):
            yield bracket[0]
    outside = _BRACKETS.sub(_blanked, text)
    clause = _waiting_clause().search(outside) if _MAY_WAIT.search(outside) else None
    if clause is not None:
        yield text[clause.start() :].strip()


def _blanked(match: re.Match[str]) -> str:
    return " " * len(match[0])


@cache
def _waiting_words() -> str:
    """A pattern for any word that says that a step waits."""
    ordered = sorted(words.listed("waiting"), key=len, reverse=True)
    return "|".join(_word_pattern(word) for word in ordered)


def _word_pattern(word: str) -> str:
    pattern = re.escape(word).replace(r"\ ", r"\s++")
    return rf"\b{pattern}\b" if word.isascii() or (word[0].isalpha() and " " in word) else pattern


@cache
def _sequence_pattern() -> re.Pattern[str]:
    """A pattern for any of the words; only some scripts put a blank after a word."""
    found = sorted(words.listed("sequence"), key=len, reverse=True)
    ends = ("" if _DENSE.search(word) else r"(?!\w)" for word in found)
    patterns = [re.escape(word) + end for word, end in zip(found, ends, strict=True)]
    return re.compile("|".join([*patterns, _behind_a_step()]), re.IGNORECASE)


@cache
def _waiting_pattern() -> re.Pattern[str]:
    return re.compile(_waiting_words(), re.IGNORECASE)


@cache
def _waiting_line() -> re.Pattern[str]:
    """A line of details such as `Needs: the two above`."""
    return re.compile(
        rf"[\s*+\-_]*(?:{_waiting_words()})(?:\s\w{{1,20}}){{0,2}}[*_]*\s*[:：]", re.IGNORECASE
    )


@cache
def _behind_a_step() -> str:
    """A pattern for an order in Chinese, which may begin a step: `在第一步之后`, `根据步骤 2`."""
    return (
        rf"(?:{_waiting_words()}|根据|根據|基于|基於|等)[于於]?{_CHINESE_STEP}"
        rf"|[在等]?{_CHINESE_STEP}[^,;，；。:：]{{0,6}}(?:完成|[之以]?[后後])"
    )


@cache
def _waiting_clause() -> re.Pattern[str]:
    """A clause at the end: after a dash, or after a comma with a number or quoted words."""
    word = _waiting_words()
    return re.compile(
        rf"(?:[—–]|(?<=\s)-{{1,2}}(?=\s)|->|→)\s*(?:{word}).*$"
        rf"|[,;，；]\s*(?:{word})[^,;]*(?:\d|[\"“„«「']).*$"
        rf"|(?:{word})\s*(?:{words.STEP})\s*#?\d"
        rf"|{_behind_a_step()}",
        re.IGNORECASE,
    )


_CHINESE_STEP = (
    r"(?:第\s*(?:\d{1,6}|[一二三四五六七八九十百]{1,3})\s*个?(?:步|任务|任務)|步[骤驟]\s*\d)"
)
_BRACKETS = re.compile(r"(?<!\])\([^()（）]*\)|（[^()（）]*）|\[[^\[\]]*\](?!\()")
_STEP_NUMBER = re.compile(rf"(?:{words.STEP})\s*#?\d", re.IGNORECASE)
# What each clause that says an order has beside its words, of which there are hundreds.
_MAY_WAIT = re.compile(
    rf"[—–→]|->|(?<=\s)-{{1,2}}(?=\s)|[,;，；][^,;]*[\d\"“„«「']|(?:{words.STEP})\s*#?\d"
    rf"|{_CHINESE_STEP}",
    re.IGNORECASE,
)
_DENSE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_CODE = re.compile(r"`[^`]*`")
_NAME = re.compile(rf"(?<![\w.+\-@/])@{words.NAME}")
_TASK = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+\[[ ~xX!-]\](?:\s|$)")
_HEADING = re.compile(r"[ ]{0,3}#{1,6}[ \t]")
