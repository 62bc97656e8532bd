"""The lines under the line of a step: its brief, parameters, result and further attributes.

A block quote is the step's result; one that begins with `**Failed:**`, `**Skipped:**` or
`**Note:**` is its feedback. A fenced `yaml` block holds parameters. A brief that Markdown would
misread (it holds a quote, a `yaml` block or a key line itself) is written into a fence called
`brief`.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import TYPE_CHECKING, NamedTuple

from pydantic import JsonValue

from replan.plan.markdown.attributes import Attributes
from replan.plan.markdown.lines import dedent, is_blank, trim_blank
from replan.plan.markdown.phrases import read_key_line
from replan.plan.markdown.title import UnplacedMistake, bad_number, repeated
from replan.plan.model import PlanStep, StepStatus
from replan.values import same

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token


class Placed(NamedTuple):
    """A complaint and the line of the body, counted from 0, that it is about."""

    line: int
    complaint: UnplacedMistake


@dataclass(slots=True)
class Body:
    brief: str = ""
    parameters: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    result: str = ""
    feedback: str = ""
    # What its key lines say (`- depends on: 1`).
    attributes: Attributes = field(default_factory=Attributes)
    # Where the key lines are, counted from 0 within the body.
    key_lines: list[int] = field(default_factory=list[int])
    # The lines of each block quote, likewise.
    quotes: list[range] = field(default_factory=list[range])
    complaints: list[Placed] = field(default_factory=list[Placed])  # the mistakes in it


_FEEDBACK = re.compile(r"\*\*(?:Failed|Skipped|Note):\*\*(?: |$)", re.MULTILINE)
_RESULT = re.compile(r"\*\*Result:\*\*(?: |$)", re.MULTILINE)
_QUOTE_MARK = re.compile(r"[ ]{0,3}> ?")
_FENCE_END = re.compile(r"[ ]{0,3}(`{3,}|~{3,})[ \t]*")
_LIST_MARKER = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+")
_MARKS = {StepStatus.FAILED: "Failed", StepStatus.SKIPPED: "Skipped"}
_LONGEST_KEPT = 2_000


@cache
def block_parser() -> "MarkdownIt":
    """Return the CommonMark parser that finds blocks and leaves the text within them alone."""
    from markdown_it import MarkdownIt  # noqa: PLC0415 - only documents need it

    markdown = MarkdownIt("commonmark")
    markdown.core.ruler.enableOnly(["normalize", "block"])
    return markdown


def read_body(lines: Sequence[str]) -> Body:
    if all(map(is_blank, lines)):
        return Body()
    read = _read_body if sum(map(len, lines)) > _LONGEST_KEPT else _kept_body
    return read(tuple(lines))


def _read_body(lines: tuple[str, ...]) -> Body:
    return _BodyReader(dedent(lines)).read()


# A change of one step leaves the others as they were; whoever reads a body does not change it.
_kept_body = lru_cache(maxsize=4_096)(_read_body)


def write_body(step: PlanStep) -> list[str]:
    """Write the lines under a step, not indented, so that they are read back unchanged."""
    lines = _joined(step, step.brief.split("\n"))
    return (
        lines
        if not step.brief or _reads_back(step, lines)
        else _joined(step, _fence("brief", step.brief))
    )


def write_quotes(step: PlanStep) -> list[str]:
    quotes: list[list[str]] = []
    if step.result:
        named = _FEEDBACK.match(step.result) or _RESULT.match(step.result)
        quotes.append(_quote(("**Result:** " if named else "") + step.result))
    if step.feedback:
        quotes.append(_quote(f"**{_MARKS.get(step.status, 'Note')}:** {step.feedback}"))
    return _spaced(quotes)


def _joined(step: PlanStep, brief: list[str]) -> list[str]:
    return _spaced([brief if step.brief else [], _parameters(step), write_quotes(step)])


def _parameters(step: PlanStep) -> list[str]:
    if not step.parameters:
        return []
    from replan.plan.markdown.parameters import write_parameters  # noqa: PLC0415 - few have any

    return _fence("yaml", write_parameters(step.parameters))


def _spaced(parts: list[list[str]]) -> list[str]:
    lines: list[str] = []
    for part in filter(None, parts):
        lines += ["", *part] if lines else part
    return lines


def _reads_back(step: PlanStep, lines: list[str]) -> bool:
    body = read_body(lines)
    return (
        (body.brief, body.result, body.feedback) == (step.brief, step.result, step.feedback)
        and same(body.parameters, step.parameters)
        and not body.attributes
        and not body.complaints
    )


def _fence(info: str, text: str) -> list[str]:
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return [fence + info, *text.split("\n"), fence]


def _quote(text: str) -> list[str]:
    return [f"> {line}" if line else ">" for line in text.split("\n")]


class _BodyReader:
    """Walks over the blocks of a body and classifies its lines."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._tokens = block_parser().parse("\n".join(lines))
        self._body = Body()
        self._used_lines: dict[int, bool] = {}
        """Lines that are not free text; true if their removal separates the text around them."""
        self._verbatim: list[str] = []
        self._has_parameters = False

    def read(self) -> Body:
        for token in self._tokens:
            if token.level == 0 and token.map is not None:
                self._read_block(token, *token.map)
            elif token.type == "list_item_open" and token.level == 1 and token.map is not None:
                start, end = token.map
                if not trim_blank(self._lines[start + 1 : end]):
                    self._read_key_line(start)
        self._body.brief = "\n\n".join([*self._free_text(), *self._verbatim])
        return self._body

    def _read_block(self, token: "Token", start: int, end: int) -> None:
        info = token.info.split()[:1] if token.type == "fence" else []
        if token.type == "blockquote_open":
            self._read_quote(start, end)
        elif info in (["yaml"], ["yml"]):
            self._read_parameters(token, start, end)
        elif info == ["brief"]:
            self._verbatim.append("\n".join(self._fenced(start, end)))
            self._use(range(start, end))
        elif token.type == "paragraph_open":
            for at in range(start, end):
                self._read_key_line(at)

    def _read_key_line(self, at: int) -> None:
        line = self._lines[at]
        marker = _LIST_MARKER.match(line)
        phrase = read_key_line(line[marker.end() :] if marker else line)
        if phrase is None or phrase.kind == "unknown":
            return
        self._body.key_lines.append(at)
        self._used_lines[at] = False
        if phrase.attributes is None:
            self._complain(at, bad_number(self._lines[at].strip()))
            return
        name = self._body.attributes.conflict(phrase.attributes)
        if name is not None:
            self._complain(at, repeated(name, self._lines[at].strip()))
        self._body.attributes |= phrase.attributes

    def _read_quote(self, start: int, end: int) -> None:
        while end > start and is_blank(self._lines[end - 1]):
            end -= 1
        lines = [_QUOTE_MARK.sub("", line, count=1) for line in self._lines[start:end]]
        text = "\n".join(lines)
        feedback = _FEEDBACK.match(text)
        named = feedback or _RESULT.match(text)
        text = text[named.end() :] if named else text
        if feedback:
            self._body.feedback = "\n\n".join(filter(None, [self._body.feedback, text]))
        else:
            self._body.result = "\n\n".join(filter(None, [self._body.result, text]))
        self._body.quotes.append(range(start, end))
        self._use(range(start, end))

    def _read_parameters(self, token: "Token", start: int, end: int) -> None:
        self._use(range(start, end))
        if self._has_parameters:
            reason = "This step has more than one yaml block."
            self._mistake(start, "several_parameters", reason, "Put all parameters into one.")
            return
        self._has_parameters = True
        from replan.plan.markdown.parameters import (  # noqa: PLC0415 - few steps have any
            ParametersError,
            read_parameters,
        )

        try:
            self._body.parameters = read_parameters(token.content)
        except ParametersError as error:
            reason = f"The parameters cannot be read. {error.problem}"
            fix = "Write one `name: value` a line; quote a value that contains `: `, `#` or `@`."
            self._mistake(min(start + 1 + error.line, end - 1), "bad_parameters", reason, fix)

    def _fenced(self, start: int, end: int) -> list[str]:
        opening = self._lines[start].lstrip()
        mark = opening[: len(opening) - len(opening.lstrip(opening[0]))]
        last = _FENCE_END.fullmatch(self._lines[end - 1]) if end - start > 1 else None
        closed = last is not None and last[1].startswith(mark)
        return self._lines[start + 1 : end - 1 if closed else end]

    def _use(self, lines: range) -> None:
        self._used_lines.update(dict.fromkeys(lines, True))

    def _free_text(self) -> Iterator[str]:
        piece: list[str] = []
        for at, line in enumerate(self._lines):
            if at not in self._used_lines:
                piece.append(line)
            elif self._used_lines[at]:
                yield from _text(piece)
                piece = []
        yield from _text(piece)

    def _mistake(self, at: int, code: str, reason: str, fix: str) -> None:
        self._complain(at, UnplacedMistake(code, self._lines[at].strip(), reason, fix))

    def _complain(self, at: int, complaint: UnplacedMistake) -> None:
        self._body.complaints.append(Placed(at, complaint))


def _text(piece: list[str]) -> Iterator[str]:
    kept = trim_blank(piece)
    if kept:
        yield "\n".join(kept)
